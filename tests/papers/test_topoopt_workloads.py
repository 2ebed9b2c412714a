"""The models of TopoOpt's study: parameters and bytes as its published code and data have them (NSDI 2023).

Parameter counts are exact. Those of DLRM (dedicated, all-to-all, shared), CANDLE and BERT (shared), VGG16 and NCF
with 32 tables were checked by its readers against the bytes in the published task graphs and traffic matrices; the
rest follows from the same formulas.
"""

import numpy as np
import pytest
from bare_demands import demands_of
from tiny_seats import priced

from ropewalk.codesign.seats import space_of
from ropewalk.errors import WorkloadError
from ropewalk.workload import zoo
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.zoo.topoopt import JOBS

DENSE = {
    "topoopt-dlrm-dedicated": 306_264_065,
    "topoopt-dlrm-all-to-all": 339_818_497,
    "topoopt-dlrm-shared": 76_585_985,
    "topoopt-candle-dedicated": 23_610_605_571,
    "topoopt-candle-shared": 1_188_171_779,
    "topoopt-candle-testbed": 785_420_291,
    "topoopt-bert-dedicated": 201_376_769,
    "topoopt-bert-shared": 56_642_305,
    "topoopt-bert-testbed": 100_688_897,
    "topoopt-ncf-dedicated:tables=32": 134_252_546,
    "topoopt-ncf-dedicated": 167_809_026,
    "topoopt-vgg16-dedicated": 289_352_488,
    "topoopt-vgg16-shared": 289_352_488,
}
TABLES = {
    "topoopt-dlrm-dedicated": 327.68e9,
    "topoopt-dlrm-all-to-all": 655.36e9,
    "topoopt-dlrm-shared": 163.84e9,
}


def table_parameters(workload):
    return sum(
        op.parameters() for layer in workload.layers for op in layer.operators if isinstance(op, SparseTable)
    )  # fmt: skip


@pytest.mark.parametrize("name", DENSE)
def test_parameters_beside_the_tables_are_exact(name):
    workload = zoo.build(name, 2)
    assert workload.parameters() - table_parameters(workload) == DENSE[name]


@pytest.mark.parametrize("name", TABLES)
def test_bytes_of_the_tables_are_exact(name):
    assert 4 * table_parameters(zoo.build(name, 2)) == TABLES[name]


def test_ncf_has_four_tables_for_each_of_its_tables():
    workload = zoo.build("topoopt-ncf-dedicated", 2)
    assert sum(layer.kind == "table" for layer in workload.layers) == 4 * 64


@pytest.mark.parametrize(("batch", "size"), [(64, 262_144), (256, 1_048_576)])
def test_a_pair_of_servers_with_a_table_each_exchanges_4096_bytes_a_sample_of_a_gpu(batch, size):
    """One table of width 128 a server: rows forward and gradients back, 2 * 4 GPUs * batch * 128 * 4 bytes."""
    workload = zoo.build("topoopt-dlrm-all-to-all", batch)
    pricer = priced(workload, batch * 128 * 4, gpus=4)
    demands = demands_of(workload, space_of(pricer, 128).seating(space_of(pricer, 128).start), 4.0, pricer.batch)
    apart = ~np.eye(128, dtype=bool)
    assert set(demands.pairs[apart].tolist()) == {float(size)}
    assert [(len(group.servers), group.size_bytes) for group in demands.sums] == [(128, 4.0 * 339_818_497)]


@pytest.mark.parametrize(
    ("name", "summed"),
    [
        ("topoopt-dlrm-shared", 285_351_940 + 20_992_000),
        ("topoopt-candle-shared", 872_611_852 + 1_027_244_032 + 2_852_831_232),
        ("topoopt-bert-shared", 226_569_220),
        ("topoopt-vgg16-shared", 1_157_409_952),
    ],
)
def test_sums_on_sixteen_servers_have_the_bytes_of_the_published_task_graphs(name, summed):
    """The published graphs sum over groups of several sizes; the start of the search sums the same bytes over all."""
    job = JOBS[name]
    workload = zoo.build(name, job.batch)
    pricer = priced(workload, job.global_batch, gpus=job.gpus)
    space = space_of(pricer, job.servers)
    demands = demands_of(workload, space.seating(space.start), 4.0, job.global_batch)
    assert [(len(group.servers), group.size_bytes) for group in demands.sums] == [(16, float(summed))]


def test_models_without_tables_send_nothing_between_pairs_when_all_layers_sit_alike():
    for name in ("topoopt-bert-shared", "topoopt-vgg16-shared"):
        job = JOBS[name]
        workload = zoo.build(name, job.batch)
        space = space_of(priced(workload, job.global_batch, gpus=job.gpus), job.servers)
        assert demands_of(workload, space.seating(space.start), 4.0, job.global_batch).pair_bytes == 0


def test_every_entry_says_how_the_study_runs_it():
    listed = {name for name in list(zoo.ZOO) if name.startswith("topoopt-")}
    assert listed == set(JOBS)
    assert JOBS["topoopt-dlrm-dedicated"].global_batch == 65536
    assert JOBS["topoopt-candle-testbed"].global_batch == 120


def test_sizes_that_make_no_model_are_refused():
    with pytest.raises(WorkloadError, match="3 heads do not divide hidden=1024: change one of them"):
        zoo.build("topoopt-bert-dedicated:heads=3", 1)
    with pytest.raises(WorkloadError, match="the stack 'bottom' has an input and no layer"):
        zoo.build("topoopt-dlrm-dedicated:bottom=2048", 1)
