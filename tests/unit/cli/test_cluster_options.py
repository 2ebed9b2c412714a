"""Clusters from the command line: the same words in every command."""

import json

import pytest

COMMANDS = ("simulate", "overlap", "pipeline", "plan", "collective", "fabric")
PLACE = {
    "cluster", "device", "gpus_per_server", "nics", "bandwidth", "nvlink_bandwidth", "fabric", "hop_latency", "rails",
}  # fmt: skip
MODEL = {"batch", "seq", "dtype", "optimiser"}


def options_of(name):
    from typer.main import get_command

    from ropewalk.cli import app

    return {option.name: option for option in get_command(app).commands[name].params}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_on_gpus_describes_a_cluster_in_the_same_words(command):
    usual, found = options_of("simulate"), options_of(command)
    assert set(found) >= PLACE
    for name in PLACE:
        assert (found[name].opts, found[name].default, found[name].help) == (
            usual[name].opts, usual[name].default, usual[name].help,
        )  # fmt: skip


@pytest.mark.parametrize("command", ["overlap", "pipeline", "plan", "cost"])
def test_every_command_that_trains_a_model_says_so_in_the_same_words(command):
    usual, found = options_of("simulate"), options_of(command)
    for name in MODEL & set(found):
        assert (found[name].opts, found[name].default) == (usual[name].opts, usual[name].default)
    assert {"batch", "seq", "dtype"} <= set(found)


@pytest.mark.parametrize(
    ("arguments", "hosts", "name"),
    [
        (("--cluster", "dgx-h100:2"), 16, "16 GPUs, 8 per server, by rail on leaf-spine:8x2x2"),
        (("2x4", "--device", "a100", "--nics", 2), 8, "8 GPUs, 4 per server with 2 NICs, on leaf-spine:2x2x2"),
        (("torus:2x2", "--cluster", "2x2"), 4, "4 GPUs, 2 per server, on torus:2x2"),
        (("torus:2x2", "--bandwidth", "40Gbps"), 4, "torus:2x2"),
        (("examples/cluster.yaml",), 32, "32 GPUs, 8 per server, by rail on leaf-spine:8x4x4"),
    ],
)
def test_the_fabric_of_a_cluster_is_shown(ropewalk, arguments, hosts, name):
    answer = ropewalk("fabric", *arguments, "--json")
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["hosts"], found["name"]) == (hosts, name)


def test_a_collective_runs_on_the_servers_of_a_cluster(ropewalk):
    answer = ropewalk("collective", "allreduce", "--cluster", "2x2", "--device", "a100", "--sizes", "", "--json")
    assert answer.code == 0, answer.stderr
    assert json.loads(answer.stdout)["fabric"] == "4 GPUs, 2 per server, on leaf-spine:2x2x2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a fabric such as torus:4x4, or a cluster with --cluster"),
        (("torus:2x2", "--nics", 2), "--nics would have no effect: torus:2x2 is a fabric of plain hosts"),
        (("torus:2x2", "--cluster", "2x2", "--fabric", "switch:4"), "there are two networks"),
        (("--cluster", "2x2", "--hosts", 4), "--hosts would have no effect"),
        (("--cluster", "nowhere:4"), "there is no cluster 'nowhere:4'"),
    ],
)
def test_what_is_no_place_is_refused(ropewalk, arguments, message):
    answer = ropewalk("fabric", *arguments)
    assert answer.code == 2
    assert message in answer.stderr
    assert answer.stdout == ""


def test_a_cluster_file_that_contradicts_itself_is_one_message_in_every_command(ropewalk, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "device: h1000\nservers: [{count: 2, gpus: 8, nics: 3, nic_bandwidth: -5Gbps, gpu: 4}]\n"
        "network: leaf-spine\nports: {degree: 0}\n"
    )
    page = tmp_path / "page.html"
    for command in (
        ("simulate", "vgg16"),
        ("overlap", "vgg16"),
        ("pipeline", "vgg16"),
        ("plan", "vgg16"),
        ("collective", "allreduce"),
        ("fabric",),
    ):
        answer = ropewalk(*command, "--cluster", bad, "--page", page)
        assert answer.code == 2
        for part in ("bad.yaml: ", "findings", "two networks", "ports.degree: is 0", "did you mean gpus?", "h1000"):
            assert part in answer.stderr, command
        assert answer.stdout == ""
        assert not page.exists()


LIMITED = {
    "simulate": ("--gpus", 2, "--batch", 2, "--seq", 64),
    "plan": ("--cluster", "1x2", "--batch", 2, "--seq", 64),
    "cost": ("--batch", 1, "--seq", 64),
}
SMALL = "gpt:layers=2,hidden=128,heads=4,vocabulary=512"


@pytest.mark.parametrize("command", LIMITED)
def test_gpus_are_held_to_their_published_limit_unless_told_otherwise(ropewalk, command):
    def asked(*more):
        found = ropewalk(command, SMALL, *LIMITED[command], "--json", *more).json
        step = found.get("training", found)
        return step["power_limit_w"], step["clock"] <= 1.0, step["stack"], step["cost_source"].partition("), ")[2]

    assert asked() == (700, True, "eager", "at 100 % of the full clock under 700 W, eager stack")
    assert asked("--power", "500W")[0] == 500
    assert asked("--power", "none") == (None, True, "eager", "at full clock, eager stack")
    assert asked("--device", "a100")[0] is None


@pytest.mark.parametrize("command", ["simulate", "plan", "cost", "pipeline", "overlap"])
def test_the_screen_says_clock_and_stack(ropewalk, command):
    options = LIMITED.get(command, ("--cluster", "1x2", "--batch", 2, "--seq", 64))
    shown = " ".join(ropewalk(command, SMALL, *options).stdout.split())
    assert "of the full clock under 700 W, eager stack" in shown


def test_plans_for_ports_are_held_too_and_say_so(ropewalk):
    small = ("plan", "vgg16", "--servers", 4, "--degree", 2, "--gpus-per-server", 1, "--budget", 20, "--rounds", 1)
    found = ropewalk(*small, "--compare", "none", "--power", "300W", "--json")
    assert "of the full clock under 300 W" in found.json["cost_source"], found.stderr
