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
        (("1x1",), "one GPU, which communicates with nothing"),
        (("1x8", "-c", "all_recude"), "did you mean all_reduce?"),
        (("1x8", "-b", "1GB", "-e", "1MB"), "is below the smallest"),
        (("1x8", "-f", "1"), "does not increase sizes: give 2 or more"),
    ],
)
def test_input_that_cannot_be_answered_is_refused_with_a_remedy(run, given, said):
    code, _, err = run(*given)
    assert code == 2
    assert said in err


def pairs(slow):
    """Pairs along the rails of four servers and inside one of them, where NIC 3 of server 0 may be slow."""
    rails = [(f"gpu{a}.{rail} gpu{b}.{rail}", rail) for rail in (2, 3) for a, b in ((0, 1), (0, 2), (1, 2), (2, 3))]
    lines = [f"{ranks},{slow if rail == 3 and 'gpu0' in ranks else 46.0}" for ranks, rail in rails]
    return "\n".join(["ranks,busbw", *lines, "gpu0.2 gpu0.3,360", "gpu0.3 gpu0.4,362"])


def test_a_slow_nic_is_named_and_the_exit_code_is_1(run, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(pairs(11.5))
    code, out, err = run("dgx-h100:4", "--read", path, "--page", tmp_path / "page.html")
    assert code == 1, err
    assert out.splitlines()[:2] == [
        "unhealthy: 2 of 10 measurements are slower than in a healthy cluster",
        "best explained by cable gpu0.3-leaf3 (NIC 3 of server 0) at 25 % of its speed",
    ]
    assert "Cable gpu0.3-leaf3 (NIC 3 of server 0)" in (tmp_path / "page.html").read_text()


def test_a_healthy_cluster_has_exit_code_0(run, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(pairs(45.5))
    code, out, err = run("dgx-h100:4", "--read", path, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["healthy"]
    assert found["measured"][0]["groups"] == [["gpu0.2", "gpu1.2"]]
    assert found["causes"] == []


def test_what_cannot_be_read_is_refused(run, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("all is well")
    assert run("dgx-h100:4", "--read", path)[0] == 2
    assert run("dgx-h100:4", "--read", tmp_path / "none.txt")[0] == 2
    code, _, err = run("dgx-h100:4", "--measured", "all_reduce")
    assert code == 2
    assert "add --read" in err


def test_a_page_of_what_is_expected(run, tmp_path):
    code, _, err = run("2x8", "-b", "1MiB", "-e", "4MiB", "--page", tmp_path / "page.html")
    assert code == 0, err
    assert "Expected nccl-tests results on 16 GPUs" in (tmp_path / "page.html").read_text()
