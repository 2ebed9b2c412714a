"""Options that were given and would change nothing are refused, not passed over."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from ropewalk.cli.models import Subject
from ropewalk.errors import InputError

OF_MODELS = (
    "batch", "micro_batch", "seq", "dtype", "stack", "optimiser", "gpus", "dp", "tp", "pp", "ep", "cp", "cp_exchange",
    "sp", "zero", "tp_overlap", "fp8_params", "overlap_param_gather", "overlap_grad_reduce", "fold_experts",
    "shared_overlap", "schedule", "interleave", "recompute",
    "rank_order", "order", "bucket", "partition", "credit", "stream", "across_steps", "jitter", "straggler", "failed",
    "memory_check", "detail", "dispatch",
)  # fmt: skip
"""Options that say how a model is trained: in a trace and in a task graph that is settled."""
OF_CLUSTERS = ("device", "gpus_per_server", "nics", "nvlink_bandwidth", "rails")
"""Options that describe servers: without a cluster, a task graph runs on the hosts of a fabric."""
OF_OVERHEADS = ("launch", "round_latency", "efficiency", "mix")
"""Options that say what collectives cost beyond their bytes: a task graph knows none, a plan has decided it."""
OF_STEPS = ("algorithm", "collectives", "chakra", *OF_OVERHEADS)
"""Options that say how collectives run: a task graph knows none."""
OF_PLANS = ("jitter", "straggler", "failed", "memory_check", "detail")
"""Options that ask what if of a plan as of a model; all others a plan has decided."""
IDLE = {
    Subject.TASK_GRAPH: (
        (*OF_MODELS, *OF_STEPS, *OF_CLUSTERS, "plan"),
        "a task graph has no collectives and fixes its own computations: leave it out"
    ),
    Subject.CHAKRA: (
        (*OF_MODELS, "hosts", "plan"),
        "a Chakra trace fixes its own computations and collectives: leave it out",
    ),
    Subject.PLAN: (
        (*(name for name in OF_MODELS if name not in OF_PLANS), *OF_CLUSTERS, "cluster", "bandwidth", "fabric",
         "hop_latency", "hosts", "seed", *OF_OVERHEADS),
        "the plan fixes it: leave it out, or simulate the model instead of the plan",
    ),
    Subject.MODEL: (("hosts",), "the number of GPUs sets the size of the fabric: give --gpus instead"),
}  # fmt: skip
"""Options that would change nothing, by what is simulated, and why."""


def refuse_idle_options(context: typer.Context, subject: Subject, *, on_a_cluster: bool) -> None:
    """Refuse options of `simulate` that what is simulated leaves out of account."""
    idle, reason = IDLE[subject]
    if subject is Subject.TASK_GRAPH and on_a_cluster:
        idle = (*(name for name in idle if name not in OF_CLUSTERS), "hosts")
    refuse(given(context, idle), reason)
    if subject is Subject.MODEL and given(context, ("failed",)):
        raise InputError(
            "--failed applies to a plan: for a model, list what has failed in a cluster file and pass it with --cluster"
        )


def given(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Those of the parameters that somebody typed, as they are typed."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [f"--{name.replace('_', '-')}" for name, source in sources.items() if source and source.name != "DEFAULT"]


def refuse(options: list[str], reason: str) -> None:
    """Refuse options that were given without effect."""
    if options:
        raise InputError(f"{', '.join(options)} would have no effect: {reason}")
