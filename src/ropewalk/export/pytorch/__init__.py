"""A plan as a PyTorch script that trains a module of one's own: DDP, FSDP2 and torch.distributed.pipelining.

The script is `train.py` beside this file with the plan written into it. It needs PyTorch and nothing of ropewalk.
"""

from __future__ import annotations

from pprint import pformat
from typing import Any

from ropewalk.documents import packaged_text
from ropewalk.errors import ProofError
from ropewalk.export.job import PlannedJob
from ropewalk.export.torch_pipeline import compute_only
from ropewalk.plans import Plan

PLACE = "PLAN: dict[str, Any] = {}\n"
"""The line of the script that the plan takes the place of."""


def pytorch_script(plan: Plan) -> str:
    """The script.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> made = pytorch_script(Plan(ModelUse("gpt2"), read_cluster("1x2"), Strategy(data=2)))
    >>> "bucket_cap_mb" in made and PLACE not in made
    True
    """
    script = packaged_text("ropewalk.export.pytorch", "train.py")
    if script.count(PLACE) != 1:
        raise ProofError("train.py has no place for the plan, or several: leave the line `PLAN = {}` once")
    decided = pformat(settings(PlannedJob(plan)), sort_dicts=False, width=110, compact=True)
    return script.replace(PLACE, f"PLAN: dict[str, Any] = {decided}\n")


def settings(job: PlannedJob) -> dict[str, Any]:
    """What the script needs to know of a plan."""
    strategy, order = job.strategy, job.strategy.order
    layers = job.workload.layers
    found: dict[str, Any] = {
        "model": job.plan.model.name,
        "data": strategy.data,
        "tensor": strategy.tensor,
        "pipeline": strategy.pipeline,
        "zero": strategy.zero,
        "regather": strategy.regather,
        "micro_batch": strategy.micro_batch,
        "micro_batches": strategy.micro_batches,
        "precision": job.plan.model.precision,
        "gradient_bytes": int(job.gradient_bytes),
        "optimiser": strategy.optimiser,
        "bucket_bytes": order.bucket_bytes,
        "launches": launches(job),
        "overlap": order.overlap,
        "recompute": strategy.recompute,
        "recomputed": [number for number, layer in enumerate(layers) if strategy.recompute_of(layer) == "full"],
        "layers": len(layers),
    }
    if strategy.pipeline > 1:
        table = strategy.timetable
        found["cuts"] = [job.pieces.of(piece).start for piece in range(job.pieces.count)]
        found["homes"] = table.device_of_piece.tolist()
        found["passes"] = compute_only(table).split()
    return found


def launches(job: PlannedJob) -> list[list[int]] | None:
    """Layers whose gradients are reduced together, in order; None where buckets of one size say it."""
    order = job.strategy.order
    if not isinstance(order.fusion, tuple):
        count = len(job.workload.layers)
        return None if order.fusion else [[layer] for layer in reversed(range(count))]
    number = {layer.name: at for at, layer in enumerate(job.workload.layers)}
    return [[number[name] for name, _ in launch] for launch in order.fusion]


def unfilled(job: PlannedJob) -> str | None:
    """Why DDP, which fills buckets from the last layer to the first, cannot make the launches; None where it can."""
    listed = launches(job) if isinstance(job.strategy.order.fusion, tuple) else None
    if listed is None:
        return None
    if any(part != 1.0 for launch in job.strategy.order.fusion for _, part in launch):  # type: ignore[union-attr]
        return "cannot reduce parts of layers (plan launches of whole layers)"
    order = [layer for launch in listed for layer in sorted(launch, reverse=True)]
    if order != sorted(order, reverse=True):
        return "fills buckets from the last layer to the first (plan launches of neighbours, or use `overlap --run`)"
    return None
