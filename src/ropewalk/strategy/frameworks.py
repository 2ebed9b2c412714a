"""Which training frameworks can run a strategy as it stands, and why the others cannot.

What each framework does is taken from its own sources, read for these versions:

- Megatron-LM and Megatron Core 0.16 to 0.20: `megatron/training/arguments.py` (`validate_args`),
  `core/model_parallel_config.py`, `core/pipeline_parallel/schedules.py` (1F1B and interleaved 1F1B, nothing else),
  `core/transformer/pipeline_parallel_layer_layout.py` (any contiguous cut), `user-guide/features/megatron_fsdp.md` and
  `custom_fsdp.md` (ZeRO-2 and 3 are Megatron-FSDP's, documented with tensor, expert and context parallelism).
- torchtitan 0.2.2, the last that reads job configurations in TOML: `config/job_config.py`,
  `distributed/pipeline_parallel.py`, `distributed/parallel_dims.py`, `models/llama3/infra/parallelize.py`.
- DeepSpeed 0.19: `runtime/pipe/engine.py` (ZeRO-2 and 3 are refused in pipelines), `runtime/pipe/schedule.py` (1F1B),
  `runtime/tensor_parallel/config.py` (AutoTP), `module_inject/auto_ep_config.py`, `runtime/zero/config.py`.
- PyTorch 2.13: `torch/distributed/pipelining/stage.py` (gradients are reduced once, behind the last backward pass; DDP
  and passes that are split do not go together), `schedules.py` (any timetable from a CSV file, one copy of the model).

>>> {name: why is None for name, why in runnable(Strategy(data=2, pipeline=4, schedule="zb-h1")).items()}
{'megatron': False, 'torchtitan': False, 'deepspeed': False, 'pytorch': False}
>>> runnable(Strategy(data=2, pipeline=4, zero=1, schedule="zb-h1"))["pytorch"] is None
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from ropewalk.choices import Choice, Choices
from ropewalk.errors import StrategyError
from ropewalk.strategy.asked import StrategyFacts, asked_of
from ropewalk.strategy.strategy import Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.workload import Workload

Rule = Callable[[StrategyFacts], Iterator[str]]
"""What of a strategy a framework cannot do, each finding with what it can; none where it runs all of it."""

PRECISIONS = {
    "megatron": ("bf16", "fp16", "tf32", "fp32", "fp8", "fp8-delayed", "fp8-block", "mxfp8", "nvfp4"),
    "torchtitan": ("bf16", "tf32", "fp32"),
    "deepspeed": ("bf16", "fp16", "tf32", "fp32"),
    "pytorch": ("bf16", "tf32", "fp32"),
}
"""Of each framework; the script for plain PyTorch scales no losses, as fp16 needs."""
ADAM_AND_SGD = ("adamw", "adamw_fused", "sgd", "momentum")


def _anywhere(asked: StrategyFacts) -> Iterator[str]:
    """What no framework runs."""
    if asked.unequal == "seats":
        yield (
            "cannot place single layers on different servers (all ranks hold the same layers, or those of their stage)"
        )
    if asked.unequal == "parts":
        yield "cannot run stages with different replica counts (every stage has the same degrees)"
    if asked.layers == "tensor":
        yield "cannot leave single layers unsplit (tensor parallelism applies to all)"
    if asked.serving:
        yield f"cannot run the collective {asked.serving} (all ranks of a group train; use one without servers)"


def _megatron(asked: StrategyFacts) -> Iterator[str]:
    if asked.model == "other":
        yield "supports only transformers of sequential blocks, not this model"
    if asked.schedule not in ("1f1b", "interleaved", "1f1b-overlap") or asked.own_rows:
        yield f"cannot run the schedule {asked.schedule} (it runs 1f1b, interleaved and 1f1b-overlap)"
    elif asked.schedule == "1f1b-overlap" and not asked.expert:
        yield "overlaps passes only to hide expert communication (use 1f1b)"
    elif asked.schedule == "1f1b-overlap" and asked.pipeline and asked.pieces_each == 1:
        yield "overlaps passes only in interleaved pipelines (interleave)"
    elif asked.pieces_each > 1 and not asked.whole_groups:
        yield "interleaves micro-batches in groups of the number of stages (give a multiple of the pipeline degree)"
    if asked.zero > 1 and asked.pipeline:
        yield f"cannot run zero {asked.zero} in a pipeline (Megatron-FSDP has none; take zero 1 or pipeline 1)"
    if asked.zero == 3 and not asked.regather:
        yield "gathers weights again for the backward pass (Megatron-FSDP shards after every forward pass)"
    if asked.expert and asked.tensor and not asked.sequence_parallel:
        yield "needs sequence parallelism for experts on tensor ranks (turn it on)"
    if asked.context and not asked.halves:
        yield "cuts a sequence into two pieces per context rank (give a multiple of twice the context degree)"
    if asked.recompute == "stage":
        yield "cannot recompute whole stages (it has none, selective, full and parts of blocks)"
    if asked.layers == "recompute":
        yield "cannot recompute layers by name (all, or as many blocks at the head of every piece)"
    yield from _buckets(asked)
    if asked.optimiser == "adamw_cpu" and not asked.zero:
        yield "keeps the optimiser's state in host memory only under its distributed optimiser (use zero 1)"
    elif asked.optimiser not in (*ADAM_AND_SGD, "adamw_mixed", "adamw_cpu"):
        yield f"cannot run the optimiser {asked.optimiser} (it has adamw and sgd)"


def _of_megatron(asked: StrategyFacts) -> Iterator[str]:
    """What Megatron-LM alone does."""
    if asked.meanwhile:
        yield "computes shared experts after the others (leave shared_overlap out, or take Megatron-LM)"
    if asked.ahead:
        yield "gathers updated weights after the update (leave gather_ahead out, or take Megatron-LM)"


def _torchtitan(asked: StrategyFacts) -> Iterator[str]:
    yield from _of_megatron(asked)
    if asked.model == "other":
        yield "supports only transformers of sequential blocks, not this model"
    if asked.tensor and not asked.sequence_parallel:
        yield "always uses sequence parallelism between tensor-parallel regions (turn sequence parallelism on)"
    if asked.context == "ulysses":
        yield "has no all-to-all of heads (take the context exchange gather or ring)"
    if asked.expert and asked.context and not asked.folded:
        yield "spreads experts over context ranks as well (fold experts, or take context 1 or expert 1)"
    if asked.context and not asked.halves:
        yield "cuts a sequence into two pieces per context rank (give a multiple of twice the context degree)"
    if asked.replicas and asked.zero == 0 and (asked.tensor or asked.pipeline or asked.context or asked.expert):
        yield "runs DDP with pure data parallelism only (use zero 1 in a pipeline, zero 3 elsewhere)"
    elif asked.replicas and asked.zero == 0 and asked.accumulates:
        yield "runs DDP with one micro-batch only, or reduces gradients in each (use zero 3)"
    if asked.zero in (1, 2) and not asked.pipeline and asked.accumulates:
        yield f"cannot run zero {asked.zero} over several micro-batches (FSDP2 shards weights too; use zero 3)"
    yield from _torch_pipelines(asked)
    if asked.recompute not in ("none", "full"):
        yield f"cannot run {asked.recompute} recomputation as it was priced (it keeps attention; use none or full)"
    if asked.layers in ("recompute", "heads"):
        yield "cannot recompute layers by name (it has one setting for all)"
    yield from _buckets(asked)
    if asked.optimiser not in ("adamw", "adamw_fused"):
        yield f"cannot run the optimiser {asked.optimiser} (it has adamw)"


def _deepspeed(asked: StrategyFacts) -> Iterator[str]:
    yield from _of_megatron(asked)
    if asked.schedule != "1f1b" or asked.own_rows:
        yield f"cannot run the schedule {asked.schedule} (its pipelines run 1f1b)"
    if asked.own_cut:
        yield "cuts pipelines by its own methods (uniform, by parameters, by type; leave the stages out)"
    if asked.zero > 1 and asked.pipeline:
        yield f"cannot run zero {asked.zero} in a pipeline (use zero 1 or pipeline 1)"
    if asked.tensor and (asked.pipeline or asked.zero == 3):
        yield "splits tensors (AutoTP) outside pipelines and up to zero 2 (take tensor 1)"
    if asked.sequence_parallel:
        yield "has no sequence parallelism between tensor-parallel regions (turn it off)"
    if asked.context:
        yield "has no ring attention (its Ulysses exchanges heads; use context 1)"
    if asked.expert and (asked.pipeline or asked.tensor):
        yield "spreads experts over data ranks only (use pipeline 1 and tensor 1)"
    elif asked.folded:
        yield "does not fold experts over tensor and context ranks (leave fold_experts out)"
    if asked.recompute not in ("none", "full"):
        yield f"cannot choose {asked.recompute} recomputation (use none or full)"
    if asked.layers in ("recompute", "heads"):
        yield "cannot recompute layers by name (it has one interval for all)"
    yield from _buckets(asked)
    if asked.optimiser == "adamw_cpu" and not asked.zero:
        yield "keeps the optimiser's state in host memory only under ZeRO (use zero 1, 2 or 3)"
    elif asked.optimiser not in (*ADAM_AND_SGD, "adamw_cpu"):
        yield f"cannot run the optimiser {asked.optimiser} (it has adamw and sgd)"


def _pytorch(asked: StrategyFacts) -> Iterator[str]:
    if asked.expert or asked.folded:
        yield "does not spread experts over ranks (use expert 1, Megatron-LM or torchtitan)"
    if asked.context:
        yield "has no context parallelism for custom modules (use context 1, Megatron-LM or torchtitan)"
    if asked.replicas and asked.tensor and asked.zero == 0:
        yield "cannot run DDP over tensor-parallel modules (use zero 1)"
    yield from _torch_pipelines(asked)
    if asked.replicas and asked.zero == 0 and _splits_backward(asked):
        yield f"cannot run DDP with {asked.schedule}, whose gradients of weights come later (use zero 1)"
    if asked.recompute not in ("none", "full", "stage"):
        yield "cannot find the core of attention or other parts in a custom module (use none, full or stage)"
    if asked.order.startswith("other"):
        yield f"cannot reduce gradients in this order ({asked.order[7:]}; DDP has buckets, all before the update)"
    elif asked.order == "launches" and (asked.zero or asked.pipeline or asked.tensor):
        yield "cannot reduce gradients in custom launches (only DDP can, with pure data parallelism)"


def _torch_pipelines(asked: StrategyFacts) -> Iterator[str]:
    """What torch.distributed.pipelining leaves out; it runs any timetable of one copy of the model from a CSV file."""
    if not asked.pipeline:
        return
    if asked.zero > 1:
        yield (
            f"cannot run zero {asked.zero} in a pipeline (weights and gradients stay whole from the first pass to the "
            "last; use zero 1)"
        )
    named = TIMETABLES.get(asked.schedule)
    if not asked.own_rows and (named is None or named.copies > 1):
        yield f"cannot run the schedule {asked.schedule} (its stages hold one copy of the model)"
    if asked.schedule == "interleaved" and not asked.whole_groups:
        yield "interleaves micro-batches in groups of the number of stages (give a multiple of the pipeline degree)"


def _splits_backward(asked: StrategyFacts) -> bool:
    named = TIMETABLES.get(asked.schedule)
    return asked.pipeline and (asked.own_rows or (named is not None and named.splits_backward))


def _buckets(asked: StrategyFacts) -> Iterator[str]:
    if asked.order != "buckets":
        what = "in custom launches" if asked.order == "launches" else f"in this order ({asked.order[7:]})"
        yield f"cannot reduce gradients {what}: it fills buckets in order of readiness"


def _framework(name: str, rule: Rule, about: str, where: str, title: str) -> Choice[Rule]:
    def every(asked: StrategyFacts) -> Iterator[str]:
        yield from _anywhere(asked)
        if asked.precision not in PRECISIONS[name]:
            yield f"cannot train in {asked.precision} (take one of {', '.join(PRECISIONS[name])})"
        yield from rule(asked)

    def applies(asked: StrategyFacts) -> str | None:
        return next(every(asked), None)

    return Choice(name, every, about, applies=applies, where=where, title=title)


FRAMEWORKS: Choices[Choice[Rule]] = Choices(
    "framework",
    (
        _framework("megatron", _megatron, "Megatron-LM, by command-line arguments",
                   "uniform degrees, 1F1B with or without interleaving", "Megatron-LM"),
        _framework("torchtitan", _torchtitan, "torchtitan, by a job configuration in TOML",
                   "uniform degrees with sequence parallelism, any timetable of one copy of the model", "torchtitan"),
        _framework("deepspeed", _deepspeed, "DeepSpeed, by a configuration in JSON",
                   "data parallelism at any ZeRO stage, 1F1B pipelines at ZeRO-1", "DeepSpeed"),
        _framework("pytorch", _pytorch, "plain PyTorch, by a script: DDP, FSDP2 and torch.distributed.pipelining",
                   "data, tensor and pipeline parallelism of a custom module", "PyTorch"),
    ),
    error=StrategyError,
)  # fmt: skip
"""Frameworks by the names that people type; `make` is the rule, `applies` its first finding."""


def runnable(
    strategy: Strategy, workload: Workload | None = None, *, algorithm: str = "ring", precision: str = "bf16"
) -> dict[str, str | None]:
    """By framework, why it cannot run a strategy, None where it can.

    >>> for name, why in runnable(Strategy(data=8, zero=3, tensor=8)).items():
    ...     print(name, why)
    megatron None
    torchtitan always uses sequence parallelism between tensor-parallel regions (turn sequence parallelism on)
    deepspeed splits tensors (AutoTP) outside pipelines and up to zero 2 (take tensor 1)
    pytorch None
    """
    return dict(_answers(asked_of(strategy, workload, algorithm=algorithm, precision=precision)))


def is_runnable(asked: StrategyFacts) -> bool:
    """Can any framework run what is asked? For many candidates, build what they ask from their columns.

    >>> is_runnable(StrategyFacts(replicas=True, pipeline=True, zero=1, schedule="zb-v", pieces_each=2))
    True
    >>> is_runnable(StrategyFacts(pipeline=True, schedule="dualpipe"))
    False
    """
    return any(why is None for why in _answers(asked).values())


@lru_cache(maxsize=4096)
def _answers(asked: StrategyFacts) -> dict[str, str | None]:
    return {name: framework.applies(asked) for name, framework in FRAMEWORKS.items()}
