"""A strategy as the command line of Megatron-LM.

Only what Megatron-LM can run is written: uniform degrees, 1F1B with or without interleaving, the distributed
optimiser or Megatron-FSDP.
What it cannot run is refused with what would have to change; nothing is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.plans import Plan
from ropewalk.strategy.asked import asked_of
from ropewalk.strategy.frameworks import FRAMEWORKS
from ropewalk.strategy.placement import DEFAULT_ORDER

ORDERS = {DEFAULT_ORDER: (), "tp-cp-ep-pp-dp": ("--use-tp-pp-dp-mapping",)}
PRECISIONS = {"bf16": ("--bf16",), "fp16": ("--fp16",), "fp32": (), "tf32": ()}
OPTIMISERS = {"adamw": "adam", "adamw_fused": "adam", "sgd": "sgd", "momentum": "sgd"}
RECOMPUTES = {
    "none": (),
    "selective": ("--recompute-activations",),
    "full": ("--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"),
}
FSDP = ("--use-distributed-optimizer", "--use-megatron-fsdp", "--no-gradient-accumulation-fusion",
        "--ckpt-format fsdp_dtensor")  # fmt: skip
SHARDINGS = {
    0: (),
    1: ("--use-distributed-optimizer",),
    2: (*FSDP, "--data-parallel-sharding-strategy optim_grads"),
    3: (*FSDP, "--data-parallel-sharding-strategy optim_grads_params"),
}
MASTER_GRADIENT_BYTES = 4


def refusal(plan: Plan) -> str | None:
    """What of the plan Megatron-LM cannot run; None where it runs all of it."""
    return next(_obstacles(plan), None)


def _obstacles(plan: Plan) -> Iterator[str]:
    yield from FRAMEWORKS["megatron"].make(asked_of(plan.strategy, algorithm=plan.communication.algorithm))
    if plan.strategy.stages is not None:
        yield "cannot run cuts of its own choice, as this plan has: they need a layout by hand"
    if _order(plan) not in ORDERS:
        yield f"cannot lay ranks out as {_order(plan)} (Megatron-LM has {' and '.join(ORDERS)})"


def _order(plan: Plan) -> str:
    from ropewalk.strategy import Placement

    return "-".join(Placement(plan.strategy, plan.placement or DEFAULT_ORDER).names)


def megatron_arguments(plan: Plan) -> str:
    """The arguments, one per line.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> print(megatron_arguments(Plan(ModelUse("gpt2"), read_cluster("2x8"), Strategy(data=2, tensor=8))).split()[:2])
    ['--tensor-model-parallel-size', '8']
    """
    strategy = plan.strategy
    lines = [
        f"--tensor-model-parallel-size {strategy.tensor}",
        f"--pipeline-model-parallel-size {strategy.pipeline}",
        f"--context-parallel-size {strategy.context}",
        f"--expert-model-parallel-size {strategy.expert}",
        f"--micro-batch-size {strategy.micro_batch}",
        f"--global-batch-size {strategy.global_batch}",
        *PRECISIONS[plan.model.precision],
        *RECOMPUTES[strategy.recompute],
        *ORDERS[_order(plan)],
        f"--optimizer {OPTIMISERS[strategy.optimiser]}",
    ]
    if plan.model.sequence is not None:
        lines.append(f"--seq-length {plan.model.sequence}")
    if strategy.sequence_parallel:
        lines.append("--sequence-parallel")
    if strategy.interleave > 1:
        lines.append(f"--num-virtual-stages-per-pipeline-rank {strategy.interleave}")
    lines += SHARDINGS[strategy.zero]
    if strategy.order.overlap:
        # Megatron-LM counts a bucket in parameters.
        size = strategy.gradient_bytes or MASTER_GRADIENT_BYTES
        lines += ["--overlap-grad-reduce", f"--ddp-bucket-size {int(strategy.order.bucket_bytes // size)}"]
    return "\n".join(lines) + "\n"
