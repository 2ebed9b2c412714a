import pytest

from ropewalk.errors import ClusterError
from ropewalk.export.cluster import (
    links_csv,
    links_json,
    node_list,
    rank_file,
    rank_table,
    read_links,
    read_rank_file,
    read_rank_table,
    slurm_host_file,
    slurm_host_list,
)
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import plant

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=2)
CLOS = Allocation(
    "a", (6, 7, 0, 1), "clos", (1, 0), (3, 1), ((1, 3), (1, 1), (0, 3), (0, 1)), (3, 1, 3, 1), (1, 1, 0, 0)
)
ONE_LEAF = Allocation("b", (2, 3), "server", (0,), (), (), (-1, -1), (0, 0))


def test_nodes_stand_in_the_order_of_ranks():
    assert node_list(SMALL, CLOS) == "server3\nserver0\n"
    assert slurm_host_list(SMALL, CLOS) == "server[3,0]\n"
    assert slurm_host_file(SMALL, CLOS) == "server3\nserver3\nserver0\nserver0\n"


def test_rank_files_come_back_as_gpus(tmp_path):
    for cores in (1, 12):
        (tmp_path / "r").write_text(rank_file(SMALL, CLOS, cores))
        assert read_rank_file(tmp_path / "r", SMALL) == CLOS.gpus
    (tmp_path / "t.csv").write_text(rank_table(SMALL, CLOS))
    assert read_rank_table(tmp_path / "t.csv", SMALL) == CLOS.gpus


def test_the_rank_table_says_leaf_and_spine():
    assert rank_table(SMALL, CLOS).splitlines()[1] == "0,server3,0,leaf1,spine3"
    assert rank_table(SMALL, ONE_LEAF).splitlines()[1] == "0,server1,0,leaf0,"


def test_reserved_links_come_back_from_both_kinds_of_file(tmp_path):
    (tmp_path / "l.csv").write_text(links_csv(SMALL, CLOS))
    (tmp_path / "l.json").write_text(links_json(SMALL, CLOS))
    wanted = [(0, 1, 0), (0, 3, 0), (1, 1, 0), (1, 3, 0)]
    assert read_links(tmp_path / "l.csv", SMALL) == read_links(tmp_path / "l.json", SMALL) == wanted


def test_a_job_on_one_leaf_reserves_nothing():
    assert links_csv(SMALL, ONE_LEAF) == "leaf,spine,cable\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank 0=server0\n", "line 1: 'rank 0=server0' is not like"),
        ("rank 0=server0 slot=0\nrank 0=server0 slot=1\n", "line 2: rank 0 occurs twice"),
        ("rank 1=server0 slot=0\n", "not 0 to 0"),
        ("rank 0=server9 slot=0\n", "does not have 'server9'"),
        ("rank 0=server0 slot=2\n", "does not have 'GPU 2 of server0'"),
    ],
)
def test_rank_files_of_others_are_refused(tmp_path, text, message):
    (tmp_path / "r").write_text(text)
    with pytest.raises(ClusterError) as problem:
        read_rank_file(tmp_path / "r", SMALL)
    assert message in str(problem.value)


def test_links_of_another_plant_are_refused(tmp_path):
    (tmp_path / "l.csv").write_text("leaf,spine,cable\nleaf7,spine0,0\n")
    with pytest.raises(ClusterError, match="leaf7"):
        read_links(tmp_path / "l.csv", SMALL)
    (tmp_path / "l.csv").write_text("leaf,spine\n")
    with pytest.raises(ClusterError, match="write leaf,spine,cable"):
        read_links(tmp_path / "l.csv", SMALL)
