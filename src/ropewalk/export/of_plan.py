"""What a plan can be written as for other tools: one table, from a name to a function of the plan and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk.choices import Choice, Choices
from ropewalk.errors import InputError, PlanError, ProofError
from ropewalk.files import write_whole

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


def _no_megatron(plan: Plan) -> str | None:
    from ropewalk.export.megatron import refusal

    return refusal(plan)


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
        raise ProofError(f"timetable {table.name}: the file that is read back runs other passes than were written")
    return text


def _no_torch_pipeline(plan: Plan) -> str | None:
    from ropewalk.export.torch_pipeline.write import check_expressible

    if plan.strategy.pipeline < 2:
        return "needs a pipeline of two stages or more, and this plan has none"
    try:
        check_expressible(plan.strategy.timetable)
    except InputError as problem:
        return f"cannot say this timetable ({problem})"
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
    return "needs a network that was designed, and this plan runs on one that exists" if plan.designed is None else None


def _chakra(plan: Plan, prefix: Path) -> list[Path]:
    from ropewalk.export.chakra import write_chakra
    from ropewalk.training.planned import step_of

    return write_chakra(step_of(plan), prefix)


EXPORTS: Choices[Choice[Exporter]] = Choices(
    "export",
    (
        Choice(
            "megatron", _text(_megatron), "arguments of Megatron-LM", applies=_no_megatron,
            where="uniform degrees, 1F1B with or without interleaving",
        ),
        Choice(
            "torch-pipeline", _text(_torch_pipeline), "the timetable as a CSV file of torch.distributed.pipelining",
            applies=_no_torch_pipeline, where="pipelines with as many replicas for each stage",
        ),
        Choice(
            "torch-pipeline-comms", _text(_torch_pipeline_comms), "the same with every send, receive, gather of "
            "parameters and reduction of gradients spelled out", applies=_no_torch_pipeline,
            where="pipelines with as many replicas for each stage",
        ),
        Choice("chakra", _chakra, "the step as Chakra execution traces, one file per rank"),
        Choice("cluster", _text(_cluster), "the cluster as a cluster file (YAML)"),
        Choice("fabric", _fabric, "the network as a fabric file (.yaml, .json or .graphml)"),
        Choice("patch", _text(_patch), "which port goes where on the patch panels (CSV)", applies=_not_designed,
               where="networks that were designed"),
        Choice("tables", _text(_tables), "forwarding tables of all servers (CSV)", applies=_not_designed,
               where="networks that were designed"),
    ),
    error=PlanError,
)  # fmt: skip
"""By the name people type."""
