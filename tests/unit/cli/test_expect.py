"""`ropewalk expect` from outside: tables as nccl-tests prints them, and input that is refused."""

import json
from functools import partial

import pytest


@pytest.fixture
def run(ropewalk):
    """(exit code, standard output, standard error) of the command."""
    return partial(ropewalk, "expect")


def test_a_line_for_every_size_as_nccl_tests_prints_it(run):
    code, out, err = run("dgx-h100:1", "-c", "all_reduce", "-b", "8B", "-e", "128B", "-f", "4")
    assert code == 0, err
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in lines] == ["8", "32", "128"]
    assert "# all_reduce_perf" in out


def test_all_collectives_as_json_each_with_an_interval(run):
    code, out, err = run("2x8", "--device", "a100", "-b", "1GiB", "-e", "1GiB", "--json")
    assert code == 0, err
    rows = json.loads(out)["expected"]
    assert [row["benchmark"] for row in rows] == [
        "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv",
    ]  # fmt: skip
    assert all(row["busbw_low"] < row["busbw"] < row["busbw_high"] for row in rows)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "name the cluster, such as dgx-h100:4"),
        (("4x8", "--cluster", "2x8"), "both name a cluster: leave one of them out"),
        (("1x1",), "one GPU, which has nobody to talk to"),
        (("1x8", "-c", "all_recude"), "did you mean all_reduce?"),
        (("1x8", "-b", "1GB", "-e", "1MB"), "is below the smallest"),
        (("1x8", "-f", "1"), "does not step on: give 2 or more"),
    ],
)
def test_input_that_cannot_be_answered_is_refused_with_a_remedy(run, given, said):
    code, _, err = run(*given)
    assert code == 2
    assert said in err
