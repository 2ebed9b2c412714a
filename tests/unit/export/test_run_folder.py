"""The folder that starts a job: complete or absent, every GPU with its rank, a script that Slurm can run."""

from __future__ import annotations

import csv
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ropewalk.errors import InputError, PlanError
from ropewalk.export import run_folder
from ropewalk.export.job import PlannedJob
from ropewalk.export.meetings import meetings_of
from ropewalk.export.mscclpp import read_mscclpp
from ropewalk.export.nccl import read_tuner
from ropewalk.export.of_plan import EXPORTS
from ropewalk.export.ranks import ranks_csv, ranks_per_node, seats_of
from ropewalk.export.slurm import batch_script
from ropewalk.fabric.wiring import GroupRings, Wiring
from ropewalk.hardware import Cluster, Ports, Servers, read_cluster
from ropewalk.plans import Communication, Designed, ModelUse, Plan, read_plan
from ropewalk.strategy import Part, Strategy
from ropewalk.strategy.strategy import SERVER

SMALL = ModelUse("llama:layers=6,hidden=64,heads=4,vocabulary=256", 32)
RING = Wiring(4, 2, True, 1e9, 0.0, (GroupRings(4, (1,)),), ((0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)), 2, 0)


def small(cluster: str = "2x4", placement: str | None = None, algorithm: str = "ring", **strategy: Any) -> Plan:
    talk = Communication(algorithm=algorithm)
    return Plan(SMALL, read_cluster(cluster), Strategy(**strategy), placement=placement, communication=talk)


def written(plan: Plan, folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in EXPORTS.fitting("run", plan).make(plan, folder)]


def test_the_folder_holds_what_every_framework_needs(tmp_path: Path) -> None:
    plan = small(data=4, pipeline=2, micro_batches=4, zero=1)
    names = written(plan, tmp_path / "job")
    assert names[0] == "README.md"
    assert set(names) == {
        "README.md", "deepspeed.json", "job.slurm", "launch.sh", "megatron.args", "nccl.env",
        "plan.json", "ranks.csv", "torchtitan.toml", "train.py",
    }  # fmt: skip
    page = (tmp_path / "job" / "README.md").read_text()
    assert "FRAMEWORK=megatron sbatch job.slurm" in page
    assert all(f"`{name}`" in page for name in names[1:])
    assert read_plan(tmp_path / "job" / "plan.json") == plan
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job"]


def test_a_folder_of_an_earlier_export_is_replaced_and_any_other_is_left_alone(tmp_path: Path) -> None:
    written(small(data=8, zero=3), tmp_path / "job")
    written(small(data=8), tmp_path / "job")
    assert "ZeRO stage 0" in (tmp_path / "job" / "README.md").read_text()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="it holds other files: name a new folder"):
        written(small(data=8), tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_plan_that_no_framework_runs_is_refused_with_all_reasons(tmp_path: Path) -> None:
    plan = small(data=4, pipeline=2, micro_batches=4, zero=3)
    with pytest.raises(PlanError, match=r"Megatron-LM cannot run zero 3 in a pipeline .*; DeepSpeed cannot run zero 3"):
        written(plan, tmp_path / "job")
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_where_a_file_cannot_be_made(tmp_path: Path) -> None:
    plan = small(data=4, pipeline=2, micro_batches=4, zero=1, stages=(0, 99))
    with pytest.raises(InputError, match="stages begin at layers"):
        written(plan, tmp_path / "job")
    assert not list(tmp_path.iterdir())


def test_a_wiring_comes_with_its_patch_list_even_where_nobody_runs_the_strategy(tmp_path: Path) -> None:
    seats = tuple(Part(number, number, (0, 1, 2, 3)) for number in range(8))
    wired = Plan(
        SMALL, Cluster((Servers(4, 4, "a100", 300e9, 2, 1e9),), Ports(2)),
        Strategy(parts=seats, grain=SERVER, workers=4),
        designed=Designed(RING, ((1.0, (0, 1)),)),
    )  # fmt: skip
    assert set(written(wired, tmp_path / "job")) == {"README.md", "patch.csv", "plan.json", "tables.csv"}
    assert "No framework runs this strategy" in (tmp_path / "job" / "README.md").read_text()


def test_ranks_in_another_order_sit_on_the_gpus_of_their_coordinates() -> None:
    plan = small(data=2, tensor=2, pipeline=2, micro_batches=2, placement="tp-pp-dp")
    rows = list(csv.DictReader(ranks_csv(plan).splitlines()))
    assert [int(row["rank"]) for row in rows] == [0, 1, 4, 5, 2, 3, 6, 7]
    for row in rows:  # the number of a rank in the order of frameworks
        assert int(row["rank"]) == int(row["tp"]) + 2 * int(row["dp"]) + 4 * int(row["pp"])


def test_what_has_failed_has_no_rank() -> None:
    cluster = replace(read_cluster("3x4"), failed=("server1", "gpu2.1"))
    seats = seats_of(Plan(SMALL, cluster, Strategy(data=7)))
    assert [(seat.node, seat.slot, seat.server, seat.gpu) for seat in seats[3:]] == [
        (0, 3, "server0", 3), (1, 0, "server2", 0), (1, 1, "server2", 2), (1, 2, "server2", 3),
    ]  # fmt: skip
    assert ranks_per_node(Plan(SMALL, cluster, Strategy(data=7))) == [4, 3]


def test_the_launcher_gives_every_process_the_rank_of_its_gpu(tmp_path: Path) -> None:
    plan = small(data=4, pipeline=2, micro_batches=4, zero=1, placement="tp-pp-dp")
    written(plan, tmp_path / "job")
    show = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE"
    found = [
        subprocess.run(
            ["bash", tmp_path / "job" / "launch.sh", "bash", "-c", show], check=True, capture_output=True, text=True,
            env={"SLURM_NODEID": str(node), "SLURM_LOCALID": str(slot), "PATH": "/usr/bin:/bin"},
        ).stdout.split()
        for node, slot in ((0, 0), (0, 1), (1, 3))
    ]  # fmt: skip
    assert found == [["0", "0", "8", "4"], ["4", "1", "8", "4"], ["7", "3", "8", "4"]]


def test_the_batch_script_is_bash_and_asks_for_the_nodes_of_the_plan(tmp_path: Path) -> None:
    uneven = Plan(SMALL, replace(read_cluster("2x4"), failed=("gpu1.0",)), Strategy(data=7))
    for plan, asked in ((small(data=8), "#SBATCH --ntasks-per-node=4"), (uneven, "--distribution=arbitrary")):
        text = batch_script(PlannedJob(plan), ("megatron", "torchtitan", "deepspeed", "pytorch"))
        (tmp_path / "job.slurm").write_text(text)
        subprocess.run(["bash", "-n", tmp_path / "job.slurm"], check=True)
        assert asked in text
        assert "#SBATCH --nodes=2" in text


def test_nccl_is_told_the_collective_of_every_group(tmp_path: Path) -> None:
    plan = small(data=4, tensor=2, algorithm="data=double-tree")
    written(plan, tmp_path / "job")
    rows = {
        (row.collective, row.ranks): (row.algorithm, row.nodes) for row in read_tuner(tmp_path / "job/nccl-tuner.csv")
    }
    assert rows == {("allreduce", 4): ("tree", 2)}  # inside a server NCCL is left to choose by size
    assert "export NCCL_ALGO=allreduce:ring,tree" in (tmp_path / "job/nccl.env").read_text()


def test_a_plan_within_a_server_has_nothing_to_tell_the_tuner(tmp_path: Path) -> None:
    inside = small(cluster="1x4", data=2, tensor=2)
    assert "nccl-tuner.csv" not in written(inside, tmp_path / "job")
    with pytest.raises(PlanError, match="no group of this plan reaches over servers"):
        EXPORTS.fitting("nccl-tuner", inside).make(inside, tmp_path / "table.csv")


def test_two_collectives_that_nccl_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    plan = small(cluster="1x4", data=2, tensor=2, algorithm="data=double-tree")
    with pytest.raises(PlanError, match="which NCCL cannot tell apart: plan one collective for both"):
        written(plan, tmp_path / "job")
    assert not list(tmp_path.iterdir())


def test_collectives_that_nccl_does_not_have_are_mscclpp_plans(tmp_path: Path) -> None:
    plan = small(data=4, tensor=2, algorithm="data=halving-doubling")
    assert "mscclpp/data-allreduce-4.json" in written(plan, tmp_path / "job")
    assert len(read_mscclpp(tmp_path / "job/mscclpp/data-allreduce-4.json").gpus) == 4
    assert "MSCCLPP_EXECUTION_PLAN_DIR=$PWD/mscclpp" in (tmp_path / "job/nccl.env").read_text()


def test_collectives_that_mscclpp_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    plan = small(cluster="1x4", data=2, tensor=2, algorithm="tensor=halving-doubling")
    with pytest.raises(PlanError, match=r"halving-doubling for tensor and ring for data, which MSCCL\+\+ cannot tell"):
        written(plan, tmp_path / "job")
    assert not list(tmp_path.iterdir())


def test_rings_along_designed_cables_are_mscclpp_plans(tmp_path: Path) -> None:
    cluster = Cluster((Servers(4, 2, "a100", 300e9, 2, 1e9),), Ports(2))
    hops = tuple((1.0, (server, (server + step) % 4)) for server in range(4) for step in (1, 3))
    wired = Plan(SMALL, cluster, Strategy(data=8), designed=Designed(RING, hops))
    names = written(wired, tmp_path / "job")
    assert {"mscclpp/data-allreduce-8.json", "patch.csv", "tables.csv", "train.py"} <= set(names)
    assert "rings along cables for data" in (tmp_path / "job/nccl.env").read_text()


def test_meetings_say_sizes_and_seats() -> None:
    tensor, data = meetings_of(small(data=4, tensor=2))
    assert (tensor.purpose, tensor.servers, tensor.groups) == ("tensor", (2,), 4)
    assert (data.purpose, data.servers, data.groups) == ("data", (2, 2), 2)
    assert 0 < data.least_bytes <= data.most_bytes


def test_a_folder_is_there_until_the_new_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, made = tmp_path / "job", tmp_path / ".job.x"
    for folder, text in ((target, "old"), (made, "new")):
        folder.mkdir()
        (folder / "run.sh").write_text(text)
    replace = os.replace

    def interrupted(source: Path, to: Path) -> None:
        if source == made:
            raise KeyboardInterrupt
        replace(source, to)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_folder._take_place(made, target)
    assert (target / "run.sh").read_text() == "old"
    monkeypatch.undo()
    run_folder._take_place(made, target)
    assert (target / "run.sh").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["job"]
