"""The plan file: what is written is read back, and what contradicts itself is refused with everything that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ropewalk.errors import InputError, PlanError
from ropewalk.fabric import LeafSpine
from ropewalk.fabric.files import write_fabric
from ropewalk.fabric.fingerprint import fingerprint
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.hardware import Cluster, Given, Ports, Servers, held, read_cluster
from ropewalk.plans import (
    Communication,
    Designed,
    ModelUse,
    Plan,
    Prediction,
    dumps,
    is_plan,
    loads,
    read_plan,
    write_plan,
)
from ropewalk.sim.level import LevelUse
from ropewalk.strategy import LayerChoice, Strategy
from ropewalk.task.transport import Transport

PLAIN = Plan(ModelUse("gpt2"), read_cluster("2x8"), Strategy(data=16))
RING = Wiring(4, 2, True, 1e9, 0.0, (GroupRings(4, (1,)),), ((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)), 2, 0)
WIRED = Plan(
    ModelUse("dlrm", precision="tf32"),
    Cluster((Servers(4, 4, "a100", 300e9, 2, 1e9),), Ports(2)),
    Strategy(data=4, choices=(LayerChoice("block*", recompute="full"),), gradient_bytes=4.0),
    made_by="plan",
    communication=Communication("coin", transport=Transport(1e-6, cap_inside=2e9), seed=3),
    designed=Designed(RING, ((0.5, (0, 1, 2)), (0.5, (0, 3, 2)), (1.0, (0, 1)))),
    prediction=Prediction(0.5, 0.4, 0.1, 1e9, LevelUse("packet", "tcp"), "layer", "measured"),
    study={"history": [{"round": 1, "seconds": 0.6}]},
)


@pytest.mark.parametrize("plan", [PLAIN, WIRED])
def test_a_plan_is_read_back_as_it_was_written(plan: Plan, tmp_path: Path) -> None:
    write_plan(plan, tmp_path / "plan.json")
    read = read_plan(tmp_path / "plan.json")
    assert read == plan
    assert dumps(read) == (tmp_path / "plan.json").read_text()


def test_a_plan_is_told_from_other_documents_by_its_first_key() -> None:
    assert is_plan(dumps(PLAIN))
    assert not is_plan('{"tasks": [], "format": "ropewalk plan 2"}')


def changed(plan: Plan, **entries: object) -> str:
    return json.dumps(json.loads(dumps(plan)) | entries)


OTHER_CLUSTER = json.loads(dumps(PLAIN))["cluster"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is not a plan: give a file written by --plan"),
        ('{"servers": 3}', "is not a plan"),
        (changed(PLAIN, format="ropewalk plan 9"), "'ropewalk plan 9', not 'ropewalk plan 2'"),
        (changed(PLAIN, cluster=3), "cluster is 3: give an object"),
        (changed(PLAIN, strategy={"data": "many"}), "strategy.data is 'many': give a whole number"),
        (changed(PLAIN, strategies={}, model={}), r"2 findings(.|\n)*strategies(.|\n)*model.name is missing"),
        (changed(PLAIN, strategy={"data": 64}), "its strategy has 64 ranks, but its cluster 16 GPUs"),
        (dumps(PLAIN).replace('"micro_batches": ', '"micro_batches": ' + "9" * 5000), "has 5001 digits"),
        (changed(WIRED, designed=None), "ports to be wired, but no wiring"),
        (changed(WIRED, cluster=OTHER_CLUSTER), "its wiring connects 4 servers, but its cluster has 2"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        loads(text)


def test_a_plan_of_an_earlier_version_names_the_command_that_writes_it_again() -> None:
    question = {"model": "dlrm", "servers": 16, "degree": 4, "bandwidth": 12.5e9, "precision": "tf32", "device": "a100"}
    with pytest.raises(
        PlanError, match="ropewalk plan dlrm --servers 16 --degree 4 --device a100 --dtype tf32 --bandw"
    ):
        loads(json.dumps({"format": "ropewalk plan 1", "question": question}))


def test_routes_over_a_cable_that_is_gone_are_refused() -> None:
    assert WIRED.designed is not None
    lost = replace(WIRED.designed, wiring=replace(RING, cables=RING.cables[:-1]))
    with pytest.raises(PlanError, match="needs a link from server0 to server3, which does not exist"):
        loads(dumps(replace(WIRED, designed=lost)))


def test_a_network_that_lost_a_link_since_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    write_fabric(LeafSpine(2, 2, 2).build(), path)
    cluster = read_cluster("2x2", Given(network=str(path), device="h100"))
    plan = Plan(ModelUse("gpt2"), cluster, Strategy(data=4), made_for=fingerprint(cluster.fabric()))
    assert loads(dumps(plan)) == plan
    smaller = replace(plan, cluster=replace(cluster, failed=("leaf0-spine1",)))
    with pytest.raises(PlanError, match=r"links now, but had .* write the plan again"):
        loads(dumps(smaller))


def test_files_that_a_plan_names_are_found_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("work", "plans", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    write_fabric(LeafSpine(2, 2, 2).build(), "network.yaml")
    made = Plan(
        ModelUse("nets/net.py:Net"), read_cluster("2x2", Given(network="network.yaml", device="h100")), Strategy(data=4)
    )
    write_plan(made, "../plans/plan.json")
    assert read_plan("../plans/plan.json") == made
    monkeypatch.chdir(tmp_path / "elsewhere")
    read = read_plan("../plans/plan.json")
    assert (read.model.name, read.cluster.network) == ("../work/nets/net.py:Net", "../work/network.yaml")
    assert read_cluster("../plans/plan.json") == held(read.cluster, "none")
    write_plan(read, "../plans/again.json")
    assert Path("../plans/again.json").read_bytes() == Path("../plans/plan.json").read_bytes()


def test_the_cluster_of_a_plan_keeps_the_clock_of_the_plan(tmp_path: Path) -> None:
    for device, kept in (("h100", "h100@none"), ("h100@700W", "h100@700W"), ("a100", "a100")):
        made = Plan(ModelUse("gpt2"), read_cluster("1x2", Given(device=device)), Strategy(data=2))
        write_plan(made, tmp_path / "plan.json")
        assert read_plan(tmp_path / "plan.json").cluster.device == device
        assert held(read_cluster(tmp_path / "plan.json")).device == kept
