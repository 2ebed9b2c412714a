"""What a plan can be written as for other tools: one table, from a name to a function of the plan and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk.choices import Choice, Choices
from ropewalk.errors import InputError, PlanError, ProofError
from ropewalk.files import write_whole
from ropewalk.strategy.frameworks import FRAMEWORKS

if TYPE_CHECKING:
    from ropewalk.plans import Plan
    from ropewalk.timetable import Timetable

Exporter = Callable[["Plan", Path], list[Path]]
"""Writes a plan to a path and says which files there are now; all of them or none."""


def _text(content: Callable[[Plan], str]) -> Exporter:
    def write(plan: Plan, path: Path) -> list[Path]:
        write_whole(path, content(plan))
        return [path]

    return write


def _megatron(plan: Plan) -> str:
    from ropewalk.export.megatron import megatron_arguments

    return megatron_arguments(plan)


def _torchtitan(plan: Plan) -> str:
    from ropewalk.export.torchtitan import torchtitan_toml

    return torchtitan_toml(plan)


def _deepspeed(plan: Plan) -> str:
    from ropewalk.export.deepspeed import deepspeed_json

    return deepspeed_json(plan)


def _pytorch(plan: Plan) -> str:
    from ropewalk.export.pytorch import pytorch_script

    return pytorch_script(plan)


def _not_on(framework: str) -> Callable[[Plan], str | None]:
    """Why a framework cannot run a plan by its own file alone."""

    def refusal(plan: Plan) -> str | None:
        from ropewalk.export.job import PlannedJob
        from ropewalk.export.megatron import own_order
        from ropewalk.export.pytorch import unfilled
        from ropewalk.strategy.placement import DEFAULT_ORDER

        job = PlannedJob(plan)
        reason = job.refusal(framework)
        if reason is None and framework == "pytorch":
            reason = unfilled(job)
        if reason is not None or job.laid_out_as(DEFAULT_ORDER):
            return reason
        if framework == "megatron" and own_order(job) is not None:
            return None
        return f"cannot place ranks as {job.order} by itself (--to run writes a rank file for it)"

    return refusal


def _ranks(plan: Plan) -> str:
    from ropewalk.export.ranks import ranks_csv

    return ranks_csv(plan)


def _no_ranks(plan: Plan) -> str | None:
    return "needs uniform degrees, and this plan has parts with different degrees" if plan.strategy.parts else None


def _tuner(plan: Plan) -> str:
    from ropewalk.export.nccl.of_plan import tuner_rows_of, tuner_table

    table = tuner_table(tuner_rows_of(plan))
    if table is None:
        raise PlanError(
            "tuner table: no group of this plan reaches over servers, so there is nothing to configure in NCCL"
        )
    return table


def _run(plan: Plan, folder: Path) -> list[Path]:
    from ropewalk.export.run_folder import write_run_folder

    return write_run_folder(plan, folder)


def _torch_pipeline(plan: Plan) -> str:
    from ropewalk.export.torch_pipeline import compute_only, read_compute_only

    return _read_back(plan.strategy.timetable, compute_only, read_compute_only)


def _torch_pipeline_comms(plan: Plan) -> str:
    from ropewalk.export.torch_pipeline import compute_comms, read_compute_comms

    return _read_back(plan.strategy.timetable, compute_comms, read_compute_comms)


def _read_back(table: Timetable, write: Callable[[Timetable], str], read: Callable[[str], Timetable]) -> str:
    """What is written for a timetable, proved by reading it: the same passes in the same order on every device."""
    text = write(table)
    found = read(text)
    if list(table.rows()) != list(found.rows()):
        raise ProofError(f"timetable {table.name}: the file read back differs from the one written")
    return text


def _no_torch_pipeline(plan: Plan) -> str | None:
    from ropewalk.export.torch_pipeline.write import check_expressible

    if plan.strategy.pipeline < 2:
        return "needs a pipeline of two or more stages, and this plan has none"
    try:
        check_expressible(plan.strategy.timetable)
    except InputError as problem:
        return f"cannot express this timetable ({problem})"
    return None


def _cluster(plan: Plan) -> str:
    import yaml

    from ropewalk.fabric.expression import is_path
    from ropewalk.hardware import as_json

    cluster = plan.cluster
    if isinstance(cluster.network, str) and is_path(cluster.network):
        cluster = replace(cluster, network=str(Path(cluster.network).absolute()))  # wherever the text goes
    return yaml.safe_dump(as_json(cluster), sort_keys=False)


def _fabric(plan: Plan, path: Path) -> list[Path]:
    from ropewalk.fabric.files import write_fabric

    write_fabric(plan.fabric(), path)
    return [path]


def _patch(plan: Plan) -> str:
    from ropewalk.export.wiring import patch_csv

    assert plan.designed is not None
    return patch_csv(plan.designed.wiring, single_panel=plan.cluster.ports.single_panel)


def _tables(plan: Plan) -> str:
    from ropewalk.export.wiring import tables_csv
    from ropewalk.routing.listed import routes_listed

    assert plan.designed is not None
    return tables_csv(routes_listed(plan.designed.fabric(), plan.designed.routes))


def _not_designed(plan: Plan) -> str | None:
    return "needs a wired network, and this plan runs on an existing one" if plan.designed is None else None


def _runs_nowhere(plan: Plan) -> str | None:
    """Why there is nothing to start and nothing to wire."""
    from ropewalk.export.job import PlannedJob

    job = PlannedJob(plan)
    why_not = {FRAMEWORKS[name].label: job.refusal(name) for name in FRAMEWORKS}
    if plan.designed is not None or None in why_not.values():
        return None
    return f"has no framework for this plan ({'; '.join(f'{name} {reason}' for name, reason in why_not.items())})"


def _chakra(plan: Plan, prefix: Path) -> list[Path]:
    from ropewalk.export.chakra import write_chakra
    from ropewalk.training.planned import step_of

    return write_chakra(step_of(plan), prefix)


@dataclass(frozen=True, kw_only=True)
class Export(Choice[Exporter]):
    """What a plan can be written as."""

    folder: bool = False
    """Is it a folder of files, and not a file or several with one prefix?"""


def _framework(name: str, content: Callable[[Plan], str], about: str) -> Export:
    return Export(name, _text(content), about, applies=_not_on(name), where=FRAMEWORKS[name].where)


EXPORTS: Choices[Export] = Choices(
    "export",
    (
        Export("run", _run, "a folder with everything to start the job, and a README", folder=True,
               applies=_runs_nowhere, where="plans that a framework runs, wired networks"),
        _framework("megatron", _megatron, "arguments of Megatron-LM"),
        _framework("torchtitan", _torchtitan, "job configuration of torchtitan (TOML)"),
        _framework("deepspeed", _deepspeed, "configuration of DeepSpeed (JSON)"),
        _framework("pytorch", _pytorch, "a script that trains your own module: DDP, FSDP2, pipelines"),
        Export("ranks", _text(_ranks), "rank file: GPU and server of every rank (CSV)", applies=_no_ranks,
               where="uniform degrees"),
        Export("nccl-tuner", _text(_tuner), "NCCL's algorithm for every group, for its tuner plugin (CSV)",
               applies=_no_ranks, where="uniform degrees"),
        Export(
            "torch-pipeline", _text(_torch_pipeline), "the timetable as a CSV file of torch.distributed.pipelining",
            applies=_no_torch_pipeline, where="pipelines with equally many replicas per stage",
        ),
        Export(
            "torch-pipeline-comms", _text(_torch_pipeline_comms), "the same with every send, receive, parameter "
            "all-gather and gradient reduction", applies=_no_torch_pipeline,
            where="pipelines with equally many replicas per stage",
        ),
        Export("chakra", _chakra, "the step as Chakra execution traces, one file per rank"),
        Export("cluster", _text(_cluster), "the cluster as a cluster file (YAML)"),
        Export("fabric", _fabric, "the network as a fabric file (.yaml, .json or .graphml)"),
        Export("patch", _text(_patch), "patch list of the panels (CSV)", applies=_not_designed,
               where="wired networks"),
        Export("tables", _text(_tables), "forwarding tables of all servers (CSV)", applies=_not_designed,
               where="wired networks"),
    ),
    error=PlanError,
)  # fmt: skip
"""By the name people type."""
