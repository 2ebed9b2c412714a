"""ByteScheduler (Peng et al., SOSP 2019): its worked example, its measured bars, and where it pays."""

import json
from math import inf
from pathlib import Path
from statistics import median

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import StrategyError
from ropewalk.overlap.gains import Gain, study
from ropewalk.overlap.link import ExchangeKind, Link
from ropewalk.overlap.policy import Discipline, OverlapPolicy, fifo
from ropewalk.overlap.scheduler import schedule, step_seconds
from ropewalk.overlap.tensors import Tensors, from_layers, tensors_of
from ropewalk.overlap.tuner import cost_of, exhaustive, space_of
from ropewalk.workload.zoo import build

CASES = json.loads((Path(__file__).parents[1] / "data" / "communication_order.json").read_text(encoding="utf-8"))
EXAMPLE = from_layers(CASES["size_bytes"], backward_s=CASES["backward_s"], forward_s=CASES["forward_s"])


@pytest.mark.parametrize("row", CASES["rows"])
def test_the_worked_example_ends_when_it_should_tensor_by_tensor(row: dict[str, object]) -> None:
    """Three layers of 2 s per direction,  tensors of 3, 6 and 3 s; exact, from a simulation written independently."""
    link = Link(CASES["bandwidth"], float(str(row["start_up_s"])), kind=ExchangeKind(str(row["kind"])))
    partition = inf if row["partition_bytes"] is None else float(str(row["partition_bytes"]))
    run = schedule(EXAMPLE, link, OverlapPolicy(partition, discipline=Discipline[str(row["order"])]))
    assert run.step_s == row["step_s"]
    assert run.available_s.tolist() == row["available_s"]


def test_the_advertised_example_is_44_percent_faster() -> None:
    server = Link(1.0, kind=ExchangeKind.PARAMETER_SERVER)
    before, after = schedule(EXAMPLE, server, fifo()), schedule(EXAMPLE, server, OverlapPolicy(1))
    assert before.step_s / after.step_s == pytest.approx(1.444, abs=5e-4)
    assert after.pieces.tensor[after.order].tolist() == [2, 2, 1, 1, 0, 0, 0, 1, 1, 1, 1, 2]


def test_priority_without_partition_gains_nothing_in_the_example() -> None:
    assert schedule(EXAMPLE, Link(1.0), OverlapPolicy()).step_s == schedule(EXAMPLE, Link(1.0), fifo()).step_s == 20.0


BARS = [
    ("vgg16", 16, 671, 1520, 1579),
    ("vgg16", 32, 1416, 2839, 3159),
    ("vgg16", 64, 2740, 5422, 6325),
    ("resnet50", 16, 2530, 2930, 3311),
    ("resnet50", 32, 5190, 5788, 6628),
    ("resnet50", 64, 11000, 11590, 13270),
]
"""Images a second: GPUs, baseline, scheduled, linear scaling; bars of the project's README (MXNet, parameter servers
over RDMA, 8 V100 a server, 32 images a GPU), read off the figure to about 1 %."""
BATCH = 32
START_UP_S = 50e-6


def slowest_link_that_explains(tensors: Tensors, step_s: float) -> Link:
    """The speed at which whole tensors in ready order take this long: what the servers really moved."""
    low, high = 1e7, 1e11
    while high / low > 1 + 1e-9:
        middle = (low * high) ** 0.5
        link = Link(middle, START_UP_S, START_UP_S, ExchangeKind.PARAMETER_SERVER)
        low, high = (middle, high) if step_seconds(tensors, link, fifo()) > step_s else (low, middle)
    return Link(high, START_UP_S, START_UP_S, ExchangeKind.PARAMETER_SERVER)


@pytest.mark.parametrize(("model", "gpus", "base", "scheduled", "linear"), BARS)
def test_the_speed_that_explains_the_baseline_predicts_the_scheduled_bar(
    model: str, gpus: int, base: float, scheduled: float, linear: float
) -> None:
    """One number is fitted (the speed, to the baseline), one predicted: within 15 %.

    VGG16 comes out 14, 2 and 1 % too slow. ResNet50 comes out 12 to 14 % too fast: measured steps stay that far from
    linear although their network is idle most of the time. Hooks and threads are in no model of the network; users of
    the released code report 7 % for them alone.
    """
    priced = tensors_of(build(model, batch=BATCH), pricer("v100", "fp32"))
    tensors = priced.scaled(gpus * BATCH / linear / priced.compute_s)
    link = slowest_link_that_explains(tensors, gpus * BATCH / base)
    best = exhaustive(cost_of(tensors, link), space_of(tensors)).best
    assert gpus * BATCH / best.step_s == pytest.approx(scheduled, rel=0.15)
    assert gpus * BATCH / best.step_s > base


@pytest.fixture(scope="module")
def rows() -> list[Gain]:
    return study(gbps=(10.0, 25.0), workers=(16, 64))


def test_parameter_servers_gain_far_more_than_all_reduce(rows: list[Gain]) -> None:
    """Over models that the network limits: pushes and pulls that wait for each other slow the baseline."""
    by_kind = {
        kind: [row.gain for row in rows if row.kind is kind and row.model != "ResNet50"] for kind in ExchangeKind
    }
    assert median(by_kind[ExchangeKind.PARAMETER_SERVER]) > 3 * median(by_kind[ExchangeKind.ALL_REDUCE])


def test_the_best_pieces_are_some_megabytes_for_servers_and_tens_for_all_reduce(rows: list[Gain]) -> None:
    limited = [row for row in rows if row.gain > 0.01 and row.model in ("BERT-large", "GPT-2", "Transformer")]
    assert len(limited) == 24
    for row in limited:
        if row.kind is ExchangeKind.PARAMETER_SERVER:
            assert 1e6 < row.partition_bytes < 10e6
        else:
            assert min(row.partition_bytes, row.credit_bytes) > 10e6


def test_where_computing_hides_the_network_there_is_nothing_to_gain() -> None:
    for row in study(["ResNet50"], gbps=[100.0], workers=[8, 16]):
        assert row.gain == pytest.approx(0, abs=1e-3)
        assert row.scheduled_s == pytest.approx(row.compute_s, rel=2e-3)


def test_no_row_of_the_study_loses_to_the_baseline_or_beats_the_computation(rows: list[Gain]) -> None:
    assert len(rows) == 5 * 2 * 2 * 2
    for row in rows:
        assert row.gain > -1e-3
        assert row.scheduled_s >= row.compute_s


def test_the_study_refuses_workers_that_do_not_fill_servers_and_models_it_does_not_know() -> None:
    with pytest.raises(StrategyError, match="give a multiple of 4 from 8"):
        study(workers=[4])
    with pytest.raises(StrategyError, match="use one of VGG16"):
        study(["VGG17"])
