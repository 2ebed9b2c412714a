"""`--mix` says the same in every command, and what it cannot mean is refused with what to write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ropewalk.cli import app
from ropewalk.errors import InputError

GRAPH = Path(__file__).parents[3] / "examples" / "two-layer-step.yaml"
RING = ("simulate", "gpt2:layers=2", "--cluster", "1x4", "--batch", "16", "--algorithm", "ring")


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def step_s(*more: str) -> float:
    found = run(*RING, *more, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)["step_time_s"]


def test_a_slow_adder_makes_a_step_longer_and_a_gpu_does_not():
    usual = step_s()
    assert step_s("--mix", "gpu") == step_s("--mix", "free") == usual
    assert step_s("--mix", "1GB/s") > usual
    assert step_s("--mix", "cpu:1GB/s") == step_s("--mix", "1GB/s")


def test_a_sync_table_says_who_adds_up():
    found = run("sync", "--logical", "ring", "--physical", "switch:4", "--size", "4MB", "--mix", "cpu:5GB/s")
    assert "cpu:5 GB/s" in found.output


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((*RING, "--mix", "cpu"), "--mix cpu:5GB/s"),
        ((*RING, "--mix", "network:5GB/s"), "overlap --through in-network"),
        ((*RING, "--mix", "fast"), "5GB/s"),
        ((*RING, "--reduce", "5GB/s"), "--mix 5GB/s"),
        (("sync", "--mix", "gpu"), "write --mix gpu:5GB/s"),
        (("collective", "allreduce", "ring:4", "--mix", "cpu"), "write --mix cpu:5GB/s"),
        (("collective", "allreduce", "switch:4", "--in-network", "--mix", "5GB/s"), "write --mix network:5GB/s"),
        (("overlap", "vgg16", "--reduce", "5GB/s"), "--mix 5GB/s"),
        ((*RING[:-1], "nccl", "--mix", "5GB/s"), "use --algorithm ring"),
        (("simulate", str(GRAPH), "--fabric", "switch:4", "--mix", "5GB/s"), "--mix would have"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_remedy(arguments, part):
    found = run(*arguments)
    assert isinstance(found.exception, InputError)
    assert part in str(found.exception)
