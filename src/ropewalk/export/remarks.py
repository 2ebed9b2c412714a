"""What a framework does otherwise than the plan says, though it can run it, and what it leaves to whoever trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ropewalk.export.job import PlannedJob
from ropewalk.export.megatron import is_written
from ropewalk.export.torchtitan import MODELS, OWN_FLAVOUR
from ropewalk.strategy.order import DDP_BUCKET
from ropewalk.units import show_size

TORCHTITAN_BUCKET = 100 * 2**20


def remarks(job: PlannedJob, framework: str) -> list[str]:
    """In sentences.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse, Plan
    >>> from ropewalk.strategy import Strategy
    >>> job = PlannedJob(Plan(ModelUse("gpt2"), read_cluster("1x8"), Strategy(data=8)))
    >>> remarks(job, "deepspeed")
    ['DeepSpeed reduces gradients after the backward pass at ZeRO stage 0; the plan overlaps them.']
    """
    return list(REMARKS[framework](job))


def _megatron(job: PlannedJob) -> Iterator[str]:
    if not is_written(job.family):
        yield f"pretrain_gpt.py has no {job.plan.model.name}: add the sizes of the model to the arguments."
    elif job.strategy.optimiser in ("sgd", "momentum"):
        yield "Megatron-LM trains such models with Adam; the arguments ask for SGD."


def _torchtitan(job: PlannedJob) -> Iterator[str]:
    strategy = job.strategy
    if job.zoo_name not in MODELS:
        yield (
            f"torchtitan has no {job.plan.model.name}: register a TrainSpec {job.workload.name!r} with a flavour "
            f"{OWN_FLAVOUR!r} whose modules are tok_embeddings, layers, norm and output."
        )
    if strategy.data * strategy.context == 1:
        return
    if job.gradient_bytes != 4:
        yield "torchtitan reduces gradients in 4 bytes each; the plan sends 2, so expect twice the bytes of gradients."
    if strategy.zero:
        yield from _layer_by_layer("torchtitan", job)
    elif job.strategy.order.bucket_bytes != TORCHTITAN_BUCKET:
        yield f"torchtitan's DDP has buckets of 100 MiB; the plan has {show_size(strategy.order.bucket_bytes)}."


def _deepspeed(job: PlannedJob) -> Iterator[str]:
    strategy = job.strategy
    if strategy.pipeline > 1:
        yield (
            f"DeepSpeed cuts the pipeline itself: wrap the layers in PipelineModule(num_stages={strategy.pipeline}); "
            f"the plan begins its stages at layers {', '.join(str(first) for first in job.pieces.firsts)}."
        )
    elif strategy.recompute == "full":
        yield "DeepSpeed leaves recomputation to the module: let its layers call deepspeed.checkpointing.checkpoint."
    if strategy.expert > 1:
        yield "DeepSpeed spreads the experts of Hugging Face models (AutoEP); others use deepspeed.moe.layer.MoE."
    if strategy.tensor > 1:
        yield "DeepSpeed splits the linear layers of Hugging Face models (AutoTP)."
    if not strategy.zero and strategy.data > 1 and strategy.order.overlap:
        yield "DeepSpeed reduces gradients after the backward pass at ZeRO stage 0; the plan overlaps them."


def _pytorch(job: PlannedJob) -> Iterator[str]:
    strategy = job.strategy
    if strategy.pipeline > 1:
        yield f"build() returns an nn.Sequential of {len(job.workload.layers)} layers, or give its cuts by --cuts."
    if strategy.tensor > 1:
        sequence = ", with SequenceParallel between them" if strategy.sequence_parallel else ""
        yield f"tensor_plan(module) names the layers that are split{sequence}."
    if strategy.zero and strategy.data > 1:
        yield from _layer_by_layer("FSDP2", job)


def _layer_by_layer(who: str, job: PlannedJob) -> Iterator[str]:
    size = job.strategy.order.bucket_bytes
    if job.strategy.zero == 1 and size not in (0, DDP_BUCKET):
        yield f"{who} reduces gradients layer by layer; the plan has buckets of {show_size(size)}."


REMARKS: dict[str, Callable[[PlannedJob], Iterator[str]]] = {
    "megatron": _megatron,
    "torchtitan": _torchtitan,
    "deepspeed": _deepspeed,
    "pytorch": _pytorch,
}
