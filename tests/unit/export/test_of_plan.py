"""A plan as files of other tools: what can be said is written, what cannot be said is refused with a remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ropewalk.errors import PlanError
from ropewalk.export.chakra import read_chakra
from ropewalk.export.of_plan import EXPORTS
from ropewalk.export.torch_pipeline import read_compute_comms, read_compute_only
from ropewalk.fabric.expression import fabric
from ropewalk.fabric.fingerprint import fingerprint
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.hardware import Cluster, Ports, Servers, read_cluster
from ropewalk.plans import Designed, ModelUse, Plan
from ropewalk.strategy import Strategy

MODEL = ModelUse("gpt:layers=4,hidden=64,heads=4,vocabulary=256", 32)
PIPED = Plan(MODEL, read_cluster("1x8"), Strategy(data=2, tensor=2, pipeline=2, micro_batches=4, zero=1))
RING = Wiring(4, 2, True, 1e9, 0.0, (GroupRings(4, (1,)),), ((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)), 2, 0)
WIRED = Plan(
    ModelUse("dlrm"),
    Cluster((Servers(4, 4, "a100", 300e9, 2, 1e9),), Ports(2)),
    Strategy(data=4),
    designed=Designed(RING, ((0.5, (0, 1, 2)), (0.5, (0, 3, 2)), (1.0, (0, 1)))),
)


def exported(to: str, plan: Plan, path: Path) -> list[Path]:
    return EXPORTS.fitting(to, plan).make(plan, path)


def test_megatron_is_told_degrees_batches_and_the_optimiser(tmp_path: Path) -> None:
    exported("megatron", PIPED, tmp_path / "args")
    words = (tmp_path / "args").read_text().split()
    for flag, value in (
        ("--tensor-model-parallel-size", "2"),
        ("--pipeline-model-parallel-size", "2"),
        ("--micro-batch-size", "1"),
        ("--global-batch-size", "8"),
        ("--seq-length", "32"),
    ):
        assert words[words.index(flag) + 1] == value
    assert "--use-distributed-optimizer" in words


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schedule": "zb-h1"}, "it runs 1f1b, interleaved and 1f1b-overlap"),
        (
            {"zero": 3},
            r"cannot run zero 3 in a pipeline \(Megatron-FSDP has none; take zero 1 or pipeline 1\): use one of",
        ),
        ({"recompute": "stage"}, "cannot recompute whole stages"),
    ],
)
def test_what_megatron_cannot_run_is_refused(change: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=said):
        exported("megatron", replace(PIPED, strategy=replace(PIPED.strategy, **change)), tmp_path / "args")
    assert not (tmp_path / "args").exists()


def test_the_timetable_for_pytorch_is_that_of_the_plan(tmp_path: Path) -> None:
    exported("torch-pipeline", PIPED, tmp_path / "schedule.csv")
    read = read_compute_only((tmp_path / "schedule.csv").read_text())
    assert [read.row(device) for device in range(2)] == [PIPED.strategy.timetable.row(device) for device in range(2)]
    exported("torch-pipeline-comms", PIPED, tmp_path / "comms.csv")
    spelled_out = (tmp_path / "comms.csv").read_text()
    assert "0SEND_F0" in spelled_out
    assert list(read_compute_comms(spelled_out).rows()) == list(PIPED.strategy.timetable.rows())
    with pytest.raises(PlanError, match="needs a pipeline of two or more stages"):
        exported("torch-pipeline", WIRED, tmp_path / "none.csv")


def test_the_trace_holds_the_step_of_every_rank(tmp_path: Path) -> None:
    assert len(exported("chakra", PIPED, tmp_path / "step")) == 9
    assert read_chakra(str(tmp_path / "step")).ranks == 8


def test_cluster_and_network_read_back(tmp_path: Path) -> None:
    exported("cluster", PIPED, tmp_path / "cluster.yaml")
    assert read_cluster(str(tmp_path / "cluster.yaml")) == PIPED.cluster
    exported("fabric", PIPED, tmp_path / "fabric.yaml")
    assert fingerprint(fabric(str(tmp_path / "fabric.yaml"))) == fingerprint(PIPED.fabric())


def test_cables_and_tables_of_a_designed_network(tmp_path: Path) -> None:
    exported("patch", WIRED, tmp_path / "patch.csv")
    assert len((tmp_path / "patch.csv").read_text().splitlines()) == 1 + len(RING.cables)
    exported("tables", WIRED, tmp_path / "tables.csv")
    assert "server0,-,server2,server1,0.5" in (tmp_path / "tables.csv").read_text().splitlines()
    with pytest.raises(PlanError, match="needs a wired network"):
        exported("patch", PIPED, tmp_path / "none.csv")
