"""Tables for the tuner plugin: columns in its order, sizes without gaps, nothing that NCCL would not do."""

import pytest

from ropewalk.errors import InputError
from ropewalk.export.nccl import TunerRow, algorithm_advice, read_tuner, to_csv, tuner_advice, tuner_rows, write_tuner

TREE, RING = ("tree", "ll"), ("ring", "simple")


def test_rows_have_the_columns_of_the_plugin_in_its_order():
    rows = tuner_rows(
        "allreduce", {1: {TREE: 1.0, RING: 2.0}, 101: {TREE: 3.0, RING: 2.0}}, channels=8, nodes=2, ranks=16
    )
    assert to_csv(rows).splitlines() == [
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff",
        "allreduce,0,51,tree,ll,8,2,16,-1,-1",
        "allreduce,52,18446744073709551615,ring,simple,8,2,16,-1,-1",
    ]


def test_the_flattest_of_several_that_cross_at_one_place_takes_over():
    nvls = ("nvls", "simple")
    times = {0: {TREE: 0.0, RING: 5.0, nvls: 9.0}, 100: {TREE: 100.0, RING: 6.0, nvls: 3.0}}
    assert [row.algorithm for row in tuner_rows("allreduce", times)] == ["tree", "ring", "nvls"]


def test_one_sample_decides_for_all_sizes():
    assert [(row.min_bytes, row.algorithm) for row in tuner_rows("allgather", {8: {RING: 1.0}})] == [(0, "ring")]


def test_what_nccl_does_not_have_is_refused():
    with pytest.raises(InputError, match="NCCL has no tree allgather: use one of ring"):
        tuner_rows("allgather", {8: {TREE: 1.0}})
    with pytest.raises(InputError, match="'alltoall' is unknown"):
        tuner_rows("alltoall", {8: {RING: 1.0}})
    with pytest.raises(InputError, match="no times"):
        tuner_rows("allreduce", {})
    with pytest.raises(InputError, match="same algorithms at every size"):
        tuner_rows("allreduce", {8: {RING: 1.0}, 9: {TREE: 1.0}})


def test_rows_that_nccl_would_not_understand_are_not_written(tmp_path):
    with pytest.raises(InputError, match="3 findings"):
        write_tuner([TunerRow("allreduce", 9, 8, "ring", "fast", channels=0)], tmp_path / "t.conf")
    assert not (tmp_path / "t.conf").exists()


def test_tables_of_8_columns_and_comments_are_read(tmp_path):
    (tmp_path / "t.conf").write_text("# mine\n\nallreduce, 0, 9,tree, ll,-1,1,-1\n")
    assert read_tuner(tmp_path / "t.conf") == [TunerRow("allreduce", 0, 9, "tree", "ll", -1, 1, -1)]


def test_lines_that_the_plugin_would_guess_are_findings(tmp_path):
    (tmp_path / "t.conf").write_text("collective_type,min\nallreduce,0,x,ring,ll,1,1,1\nallgather,0,9,tree,ll,1,1,1\n")
    with pytest.raises(InputError, match="3 findings") as told:
        read_tuner(tmp_path / "t.conf")
    for part in ("line 1: has 2 columns", "line 2: sizes", "line 3: NCCL has no tree allgather"):
        assert part in str(told.value)


def test_advice_for_several_collectives_survives_a_shell():
    rows = [TunerRow("allreduce", 0, 9, "nvls_tree", "simple"), TunerRow("allgather", 0, 9, "ring", "ll")]
    assert algorithm_advice(rows) == [
        'NCCL_ALGO="allreduce:nvlstree;allgather:ring"',
        'NCCL_PROTO="allreduce:simple;allgather:ll"',
    ]
    assert algorithm_advice([]) == []
    assert tuner_advice("t.conf")[1] == "NCCL_TUNER_CONFIG_FILE=t.conf"
