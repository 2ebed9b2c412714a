"""A strategy: over how many GPUs a model is split, in which ways, and in what order its micro-batches run."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeVar

from ropewalk.strategy.order import Order
from ropewalk.strategy.part import Part
from ropewalk.timetable.gpipe import gpipe_on_one
from ropewalk.timetable.named import TIMETABLES, timetable
from ropewalk.timetable.table import Timetable
from ropewalk.timetable.written import timetable_of_rows
from ropewalk.workload.operator import GATHER, Split, part
from ropewalk.workload.workload import Layer

GPU, SERVER = "gpu", "server"
"""Grains: what acts as one worker."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class LayerChoice:
    """What layers whose name matches a pattern do differently; None: as the strategy says."""

    pattern: str
    """A name, or several: `block*`, `*.head`."""
    tensor: int | None = None
    """1: the layer is not split, every tensor rank does all of it; otherwise the degree of the strategy."""
    recompute: str | None = None


@dataclass(frozen=True)
class Strategy:
    """Degrees of parallelism and how a step is run with them.

    There are data * context * tensor * pipeline ranks. Experts are spread over `expert` of the data ranks, so the
    expert degree divides the data degree and takes no ranks of its own. Folded experts are spread over tensor and
    context ranks too, neighbours first.

    Stages with their own numbers of replicas (Fan et al., DAPPLE, 2021) are `parts`. Then there is one pipeline, and
    the degrees above are 1: every micro-batch is split over the replicas of each part. Where it does not divide, all
    replicas take as long as the fullest one. Where a schedule keeps two copies of the model (DualPipe), parts are those
    of the first copy; the second one lies on the same ranks from the last part to the first, so a stage has the
    replicas of two parts, and half of the micro-batches go through each of them.

    >>> Strategy(data=2, tensor=8).ranks
    16
    >>> Strategy(pipeline=2, parts=(Part(0, 5, (0, 1, 2)), Part(6, 11, (3,)))).ranks
    4
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    context: int = 1
    fold_experts: bool = False
    """Experts stay whole and are spread over tensor, context and data ranks alike (Liu et al., MoE Parallel Folding,
    2025; Megatron-Core's `--expert-tensor-parallel-size 1`); otherwise tensor ranks share out each expert."""
    shared_overlap: bool = False
    """Shared experts are computed while tokens travel to the others and back (Megatron-Core's
    `--moe-shared-expert-overlap`)."""
    context_exchange: str = GATHER
    """How ranks that share a sequence meet in attention: a name in `context.EXCHANGES`."""
    sequence_parallel: bool = False
    """What lies between split regions is split along the sequence over the tensor ranks, in parts that have several."""
    zero: int = 0
    """What data ranks keep only their share of (Rajbhandari et al., ZeRO, 2020): 1 the optimiser's state, 2 gradients
    too, 3 weights too (PyTorch's FSDP)."""
    micro_batch: int = 1
    """Samples of one micro-batch on one data rank; with parts, over all replicas of a part."""
    micro_batches: int = 1
    """Micro-batches of each data rank in a step."""
    schedule: str = "1f1b"
    """In which order a pipeline stage takes its micro-batches: a name in `timetable.TIMETABLES`."""
    interleave: int = 1
    """Pieces of the model, far from each other, that each stage holds; other schedules than `interleaved` know it."""
    recompute: str = "none"
    """What is computed again in the backward pass instead of kept: `none`, `selective`, `full`, `stage`, or parts of
    blocks with commas between them (`recompute.MODULES`)."""
    order: Order = field(default_factory=Order)
    """In which groups, pieces and order gradients are reduced."""
    prefetch: bool = True
    """Under ZeRO-3 the weights of the next layer are gathered while a layer computes; otherwise before it starts."""
    gather_ahead: bool = False
    """Under ZeRO-1 updated weights are gathered bucket by bucket while the next forward pass has begun (Megatron-Core's
    `--overlap-param-gather`); otherwise all of them behind the update."""
    regather: bool = True
    """Under ZeRO-3 weights are given up behind the forward pass of their layer and gathered again to go back;
    otherwise they are kept until then (FSDP's SHARD_GRAD_OP)."""
    tensor_overlap: bool = True
    """Where the stack can, tensor ranks exchange activations while products work on them in chunks (Megatron-Core's
    `--tp-comm-overlap`): under sequence parallelism, inside a server."""
    scatter_gather: bool = True
    """Between stages each tensor rank sends its part of the activations and the receivers gather them; otherwise each
    sends all of it. Under sequence parallelism each has only its part anyway."""
    optimiser: str = "adamw"
    master_weights: bool = True
    """Weights in less than 32 bits have a copy in 32 bits that the optimiser updates."""
    narrow_weights: bool = False
    """Weights of products in 8 or 4 bits have narrow copies alone, and ZeRO-1 and 2 gather updated ones in 8 bits where
    a tensor has one scale (Megatron-Core's `--fp8-param-gather`)."""
    gradient_bytes: float | None = None
    """Bytes of a gradient, kept and sent; as those of a weight unless given (Megatron-LM keeps 4)."""
    choices: tuple[LayerChoice, ...] = ()
    """What single layers do differently; the last one that matches counts."""
    stages: tuple[int, ...] | None = None
    """The first layer of each stage (of each piece, where stages hold several); balanced by cost unless given."""
    parts: tuple[Part, ...] = ()
    """One for each piece of the model, in its order; none where all stages have the degrees above."""
    grain: str = GPU
    """What a worker of a part is: a GPU, or a server whose GPUs act as one. With servers every layer is a part by
    itself, on any of them (Wang et al., TopoOpt, 2023; see `seating`)."""
    workers: int | None = None
    """Workers that there are, where some may have no part; as many as the parts name unless given."""
    rows: tuple[str, ...] = ()
    """The passes of each stage, such as `0F0 0F1 0B0 0B1`, where the schedule was made for this very plan; `schedule`
    is then only its name."""

    @property
    def ranks(self) -> int:
        if self.workers is not None:
            return self.workers
        if self.parts:
            return 1 + max((worker for one in self.parts for worker in one.workers), default=-1)
        return self.data * self.context * self.tensor * self.pipeline

    @property
    def pieces_each(self) -> int:
        """Pieces of the model on each stage."""
        if self.rows:
            return len(self.timetable.device_of_piece) // max(1, self.pipeline)
        named = TIMETABLES.get(self.schedule)
        return self.interleave if named is None or named.any_pieces else named.pieces_each

    @property
    def pieces(self) -> int:
        """Contiguous pieces that the model is cut into; the timetable says which stage holds which."""
        return self.pipeline * self.pieces_each

    @property
    def timetable(self) -> Timetable:
        """What every stage runs in which order; where ranks are servers, what each runs of its own layers."""
        if self.rows:
            return timetable_of_rows(self.schedule, self.rows, self.micro_batches)
        if self.grain == SERVER and self.parts:
            return gpipe_on_one(len(self.parts), self.micro_batches)
        return timetable(self.schedule, self.pipeline, self.micro_batches, self.pieces_each)

    @property
    def copies(self) -> int:
        """Copies of the model that the stages of one pipeline keep: two under DualPipe."""
        if self.rows:
            return 1
        named = TIMETABLES.get(self.schedule)
        return 1 if named is None else named.copies

    @property
    def splits_backward(self) -> bool:
        """Are gradients of weights put off?"""
        if self.rows:
            return self.timetable.splits_backward
        named = TIMETABLES.get(self.schedule)
        return named is not None and named.splits_backward

    @property
    def side_by_side(self) -> bool:
        """Do a forward and a backward pass run side by side?"""
        named = TIMETABLES.get(self.schedule)
        return not self.rows and named is not None and named.side_by_side

    @property
    def replicas(self) -> int:
        """Ranks that hold the same weights: data and context parallelism copy them, and so do some timetables."""
        return self.data * self.context * self.copies

    @property
    def expert_ranks(self) -> int:
        """Ranks of a stage, in all pipelines, over which experts may be spread."""
        return self.data * (self.context * self.tensor if self.fold_experts else 1)

    @property
    def expert_replicas(self) -> int:
        """Ranks that hold the same experts.

        >>> Strategy(data=8, tensor=2, expert=4).expert_replicas, Strategy(
        ...     data=8, tensor=2, expert=4, fold_experts=True).expert_replicas
        (2, 4)
        """
        return self.replicas * (self.tensor if self.fold_experts else 1) // self.expert

    @property
    def global_batch(self) -> int:
        """Samples of a step."""
        return self.data * self.micro_batch * self.micro_batches

    @property
    def homes(self) -> tuple[int, ...]:
        """By piece of the model, of all its copies, the stage that holds it.

        Where ranks are servers, a stage is the layers that the same servers share in the same manner; a server may be
        in several.
        """
        if self.grain != SERVER or not self.parts:
            return tuple(self.timetable.device_of_piece.tolist())
        number: dict[tuple[object, ...], int] = {}
        return tuple(number.setdefault((one.workers, one.manner), len(number)) for one in self.parts)

    @property
    def stage_parts(self) -> tuple[Part, ...]:
        """By stage, the first of its parts: those of one stage have the same workers."""
        first = dict(zip(reversed(self.homes[: len(self.parts)]), reversed(self.parts), strict=True))
        return tuple(first[stage] for stage in sorted(first))

    def on_stages(self, gpus: int = 1) -> tuple[Strategy, ...]:
        """By stage, the degrees that its ranks see: those of its part, with the micro-batch of the fullest replica.

        Where a rank has several GPUs, they share its samples.
        """
        if not self.parts:
            return (self,) * self.pipeline
        homes, parts = self.homes, self.stage_parts
        every = [homes[homes.index(stage) :: len(self.parts)] for stage in range(len(parts))]
        holders = [sum(parts[home].replicas for home in copies) for copies in every]
        return tuple(self.on_part(one, gpus, many) for one, many in zip(parts, holders, strict=True))

    def on_part(self, one: Part, gpus: int = 1, holders: int | None = None) -> Strategy:
        """The degrees that the ranks of one part see; `holders` have its weights, in all copies of the model."""
        changed = {
            "data": one.replicas,
            "tensor": one.together,
            "sequence_parallel": self.sequence_parallel and one.together > 1,
            "expert": one.experts,
            "micro_batch": part(part(self.micro_batch, one.replicas), gpus),
            "holders": one.replicas if holders is None else holders,
        }
        return OnStage(**{**vars(self), **changed, "parts": ()})

    def split_of(self, layer: Layer) -> Split:
        """How this layer is split."""
        tensor = self._choice(layer, "tensor", self.tensor)
        exchange = self.context_exchange if self.context > 1 else GATHER
        sequence, folded = self.sequence_parallel and tensor > 1, self.fold_experts and tensor * self.context > 1
        return Split(tensor, sequence, self.expert, self.context, exchange, folded, self.shared_overlap)

    def recompute_of(self, layer: Layer) -> str:
        """What of this layer is computed again in the backward pass."""
        return self._choice(layer, "recompute", self.recompute)

    def _choice(self, layer: Layer, name: str, usual: Value) -> Value:
        for choice in reversed(self.choices):
            chosen: Value | None = getattr(choice, name)
            if chosen is not None and fnmatchcase(layer.name, choice.pattern):
                return chosen
        return usual

    def said(self) -> str:
        """The strategy in a few words.

        >>> again = tuple(LayerChoice(name, recompute="full") for name in ("h.0", "h.1"))
        >>> Strategy(data=2, tensor=8, sequence_parallel=True, micro_batches=4, choices=again).said()
        'dp 2, tp 8, sequence parallel, full recomputation of 2 layers, 4 micro-batches of 1'
        """
        degrees = {"dp": self.data, "tp": self.tensor, "pp": self.pipeline, "cp": self.context, "ep": self.expert}
        words = [f"{name} {degree}" for name, degree in degrees.items() if degree > 1] or ["1 GPU"]
        if self.grain == SERVER:
            sizes = sorted({len(one.workers) for one in self.parts}, reverse=True)
            words = [f"{self.ranks} servers", f"seats of {' and '.join(map(str, sizes))}"]
        elif self.parts:
            sets = dict.fromkeys(one.workers for one in self.parts)
            words = [f"{':'.join(str(len(workers)) for workers in sets)} GPU{'s' if self.ranks > 1 else ''}"]
        if self.fold_experts and self.tensor * self.context > 1:
            words.append("folded experts")
        if self.shared_overlap:
            words.append("shared experts overlapped")
        if self.context > 1 and self.context_exchange != GATHER:
            words.append(f"{self.context_exchange} attention")
        if self.sequence_parallel:
            words.append("sequence parallel")
        if self.zero:
            words.append(f"zero {self.zero}" + (" gathered ahead" if self.gather_ahead else ""))
        if self.pipeline > 1:
            words.append(self.schedule + (f" x {self.interleave}" if self.interleave > 1 else ""))
        if self.recompute != "none":
            words.append(f"{self.recompute.replace(',', '+')} recomputation")
        words += self._recomputed_otherwise()
        many = "micro-batch" if self.micro_batches == 1 else "micro-batches"
        return ", ".join([*words, f"{self.micro_batches} {many} of {self.micro_batch}"])

    def _recomputed_otherwise(self) -> list[str]:
        """Layers that are recomputed otherwise than the rest: how many, or which where a pattern stands for them."""
        patterns: dict[str, list[str]] = {}
        for choice in self.choices:
            if choice.recompute not in (None, self.recompute):
                patterns.setdefault("no" if choice.recompute == "none" else choice.recompute, []).append(choice.pattern)
        return [
            f"{kind} recomputation of "
            + (" and ".join(some) if len(some) == 1 or any("*" in one for one in some) else f"{len(some)} layers")
            for kind, some in patterns.items()
        ]


@dataclass(frozen=True)
class OnStage(Strategy):
    """A strategy as the ranks of one of its parts see it."""

    holders: int = 1
    """Ranks that hold the same weights, in all copies of the model."""

    @property
    def replicas(self) -> int:
        return self.holders
