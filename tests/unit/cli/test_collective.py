"""`ropewalk collective` from outside: exact optima as JSON, files that are proved, and input that is refused."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
from optimum_worlds import known_fabrics

from ropewalk.errors import ProofError
from ropewalk.export.mscclpp import prove_plan, read_mscclpp

KNOWN = {known["name"]: known for known in known_fabrics()}
EXACT = ("dgx1v", "dgx_a100_2box", "mesh4x4", "kautz(2,3)", "ndv2x2", "mixed_a100_h100_2box", "a100_2box_nic_quarter")


@pytest.fixture
def run(ropewalk):
    """(exit code, standard output, standard error) of the command."""
    return partial(ropewalk, "collective")


def compact_file(known, folder):
    """A vector as the compact fabric file that people would write for it."""
    links = [row for u, v, speed in known["duplex"] for row in ([u, v, speed], [v, u, speed])] + known["one_way"]
    others = sorted(set(range(known["vertices"])) - set(known["compute"]))
    record = {"name": known["name"], "compute": known["compute"], "switches": others, "links": links}
    path = folder / "fabric.json"
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize("name", EXACT)
def test_the_optimum_of_a_known_fabric_is_printed_as_its_fraction(name, run, tmp_path):
    known = KNOWN[name]
    code, out, err = run("allgather", compact_file(known, tmp_path), "--no-compare", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["inverse_rate"] == known["expected"]["allgather_inverse_rate"]
    assert answer["exact"]
    assert len(answer["bottleneck"]["ranks"]) == known["expected"]["members_in_cut"]
    assert answer["algbw"] == answer["optimal_algbw"]


def test_shards_may_be_written_as_fractions(run):
    answers = []
    for shards in ("1/3,1,2/3,0", "1,3,2,0"):
        code, out, err = run("allgather", "ring:4", "--shards", shards, "--no-compare", "--json")
        assert code == 0, err
        answers.append(json.loads(out))
    assert answers[0]["inverse_rate"] == answers[1]["inverse_rate"]
    assert answers[0]["trees"] == answers[1]["trees"]


def test_the_answer_has_every_key_that_programs_rely_on(run, tmp_path):
    fabric = compact_file(KNOWN["dgx1v"], tmp_path)
    code, out, err = run("allgather", fabric, "--json", "--sizes", "1kB,1GB")
    assert code == 0, err
    answer = json.loads(out)
    wanted = {"algbw", "inverse_rate", "bottleneck", "trees", "depth", "alternatives"}
    assert wanted <= set(answer)
    assert answer["inverse_rate"] == "7/150"
    assert answer["trees"] >= 8
    assert set(answer["bottleneck"]) == {
        "ranks",
        "hosts",
        "forwarders",
        "links",
        "limits",
        "capacity_bytes_per_s",
        "alone",
    }
    assert answer["alternatives"]["best-ring"] <= answer["algbw"] * (1 + 1e-9)
    assert [at["size_bytes"] for at in answer["by_size"]] == [1000, 10**9]
    assert all(at["seconds"] == min(at["all_seconds"].values()) for at in answer["by_size"])


def test_an_all_reduce_beats_its_two_halves_on_a_mesh(run, tmp_path):
    code, out, _ = run("allreduce", compact_file(KNOWN["mesh4x4"], tmp_path), "--no-compare", "--json")
    assert code == 0
    assert json.loads(out)["optimal_algbw_fraction"] == "1600000000"


def test_hosts_outside_the_group_forward_and_become_ranks_of_traces(run, tmp_path):
    fabric = compact_file(KNOWN["dgx1v"], tmp_path)
    asked = ("allreduce", fabric, "--group", "0,1,2", "--no-compare", "--json", "--export", tmp_path / "traces.et")
    code, out, err = run(*asked)
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["ranks"], answer["algbw"]) == (3, 112.5e9)
    assert len(list(tmp_path.glob("traces.*.et"))) > 3


def test_files_that_cannot_speak_of_relays_are_refused_with_those_beside_them(run, tmp_path):
    fabric = compact_file(KNOWN["dgx1v"], tmp_path)
    asked = ("allreduce", fabric, "--group", "0,1,2", "--no-compare", "--export", tmp_path / "traces.et", "--export")
    for name in ("plan.json", "algo.xml"):
        code, _, err = run(*asked, tmp_path / name)
        assert code == 2
        assert "hosts outside the group forward data in this schedule" in err
        assert "--method best-ring" in err
    assert [path.name for path in tmp_path.iterdir()] == ["fabric.json"]
    code, _, err = run("allreduce", fabric, "--group", "0,1,2", "--method", "best-ring", "--no-compare", "--export",
                       tmp_path / "plan.json")  # fmt: skip
    assert code == 0, err


def test_the_table_names_the_limit_the_schedule_and_the_fastest_by_size(run):
    code, out, err = run("allreduce", "mesh:3x3", "--bandwidth", "10GB/s")
    assert code == 0, err
    text = " ".join(out.split())
    for part in ("optimum 15 GB/s", "traffic from h0 must leave by", "of the optimum", "fastest by size", "ring"):
        assert part in text


@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall"])
def test_every_collective_is_written_for_every_library_that_has_it(kind, run, tmp_path):
    paths = [tmp_path / name for name in ("plan.json", "algo.xml", "traces.et")]
    exports = [part for path in paths for part in ("--export", path)]
    code, _, err = run(kind, "ring:4", "--no-compare", "--segments", 2, *exports)
    assert code == 0, err
    assert err.count("read back and proved") == 3
    assert (tmp_path / "traces.3.et").stat().st_size


def test_files_are_proved_for_the_root_that_was_asked_for(run, tmp_path):
    path = tmp_path / "plan.json"
    code, _, err = run("broadcast", "ring:4", "--group", "3,1,2", "--root", "2", "--method", "best-ring",
                       "--no-compare", "--export", path, "--export", tmp_path / "algo.xml")  # fmt: skip
    assert code == 0, err
    prove_plan(read_mscclpp(path), root=2)
    with pytest.raises(ProofError, match="output 0 of rank"):
        prove_plan(read_mscclpp(path), root=0)


def test_rings_and_a_table_are_written_for_nccl(run, tmp_path):
    code, _, err = run("allreduce", "ring:4", "--method", "best-ring", "--export", tmp_path / "a.graph.xml", "--export",
                       tmp_path / "tuner.csv")  # fmt: skip
    assert code == 0, err
    assert "NCCL_GRAPH_FILE=" in err
    assert err.count("(read back)") == 2
    assert "ring" in (tmp_path / "tuner.csv").read_text()


@pytest.mark.parametrize("options", [("--no-compare",), ()], ids=["alone", "compared"])
def test_the_same_question_gives_the_same_page(options, run, tmp_path):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        assert run("allgather", "ring:4", *options, "--page", page)[0] == 0
    assert pages[0].read_bytes() == pages[1].read_bytes()


DISCONNECTED = {"compute": [0, 1, 2, 3], "links": [[0, 1, 1], [1, 0, 1], [2, 3, 1], [3, 2, 1]]}
TWICE = {"compute": [0, 1, 1], "links": [[0, 1, 1], [1, 0, 1]]}
ZERO = {"compute": [0, 1], "links": [[0, 1, 0], [1, 0, 1]]}


@pytest.mark.parametrize(
    ("record", "part"),
    [
        (DISCONNECTED, "cannot reach each other: add links between them"),
        (TWICE, "node '1' is already listed at compute[1]: remove or rename one of them"),
        (ZERO, "bandwidth 0 is not positive"),
    ],
    ids=["disconnected", "listed twice", "zero capacity"],
)
def test_a_fabric_that_makes_no_sense_is_refused_and_nothing_is_written(record, part, run, tmp_path):
    fabric = tmp_path / "fabric.json"
    fabric.write_text(json.dumps(record))
    code, out, err = run("allreduce", fabric, "--export", tmp_path / "plan.json", "--page", tmp_path / "page.html")
    assert (code, out) == (2, "")
    assert part in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fabric.json"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("gather", "ring:4"), "choose allreduce, allgather, reducescatter, broadcast, reduce, alltoall"),
        (("allreduce", "ring:4", "--group", "0"), "give at least two"),
        (("allreduce", "ring:4", "--group", "0,0,1"), "list every host once"),
        (("allreduce", "ring:4", "--group", "h0,h9"), "give a number below 4 or a name such as h0"),
        (("broadcast", "ring:4", "--group", "0,1", "--root", "3"), "give the root as a host of the group"),
        (("allreduce", "ring:4", "--root", "1"), "allreduce has no root: leave it out"),
        (("allgather", "ring:4", "--shards", "1,1"), "give one for each member"),
        (("allgather", "ring:4", "--shards", "1,1,-1,0"), "numbers of at least 0"),
        (("allgather", "ring:4", "--shards", "1,1,x,0"), "write shards like 1,1,2,0"),
        (("allgather", "ring:4", "--shards", "1,1,1/0,0"), "write shards like 1,1,2,0"),
        (("allgather", "ring:4", "--shards", "1,1,1e400,1e-400"), "write shards like 1,1,2,0"),
        (("allgather", "ring:4", "--shards", "1,1,2,0", "--method", "best-ring"), "supports equal shards only"),
        (("allgather", "ring:4", "--trees-per-root", "1", "--method", "best-ring"), "leave --method or --trees"),
        (("allreduce", "ring:4", "--host-limit", "1Gbps,2Gbps"), "give one for each host"),
        (("allreduce", "ring:4", "--method", "magic"), "there is no collective 'magic': use one of fixed, ring"),
        (("allreduce", "ring:4", "--method", "topoadopt", "--epsilon", "0"), "give a number between 0 and 1"),
        (("alltoall", "ring:4", "--method", "best-ring"), "best-ring is not for all-to-all: choose"),
        (("allreduce", "ring:4", "--size", "0B"), "give at least 1"),
        (("allreduce", "ring:4", "--sizes", "0B,1kB"), "one of the sizes to compare is 0 bytes: give at least 1 each"),
        (("allreduce", "ring:4", "--group", "0,²"), "give a number below 4 or a name such as h0"),
        (("allreduce", "ring:4", "--latency", "5"), "has no unit"),
        (("allreduce", "ring:4", "--export", "x.pdf"), "use one of .graph.xml, .json, .xml, .et, .csv"),
        (("allreduce", "ring:4", "--export", "b.graph.xml"), "add --method best-ring"),
        (("broadcast", "ring:4", "--method", "best-ring", "--export", "b.graph.xml"), "ask for allreduce"),
        (("allreduce", "ring:4", "--no-compare", "--export", "b.csv"), "leave --no-compare out"),
        (("alltoall", "ring:4", "--export", "b.csv"), "leave the table out"),
        (("allreduce", "ring:4", "--export", "a.et"), "choose another name for the plan"),
        (("allreduce", "ring:4", "--in-network"), "leave --in-network out"),
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused_before_anything_is_written(
    arguments, part, run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments, "--export", "a.json")
    assert (code, out) == (2, "")
    assert err.startswith("ropewalk: ")
    assert part in err
    assert list(tmp_path.iterdir()) == []


def test_the_answer_has_the_same_bytes_every_time():
    """In processes of their own, which hash words differently."""
    command = [sys.executable, "-m", "ropewalk", "collective", "allreduce", "torus:3x3", "--sizes", "1MB", "--json"]
    answers = {
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=True
        ).stdout
        for seed in (0, 1, 2)
    }
    assert len(answers) == 1
