"""Does a strategy fit the model and the GPUs? Every finding names what to change."""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.errors import Findings, StrategyError
from ropewalk.strategy.context import EXCHANGES
from ropewalk.strategy.meanwhile import shared_between
from ropewalk.strategy.memory import OPTIMISER_BYTES
from ropewalk.strategy.part_checks import parts_findings, uneven_samples
from ropewalk.strategy.recompute import has_module, modules_of, unknown
from ropewalk.strategy.seating import seating_of
from ropewalk.strategy.shares import attends
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.adapted import bare
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Product
from ropewalk.workload.exchange import Meeting
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import GATHER, RING, ULYSSES, Operator, Role
from ropewalk.workload.scan import Scan
from ropewalk.workload.workload import Workload

SAID_BY_SEATS = (
    "data", "tensor", "pipeline", "expert", "fold_experts", "shared_overlap", "context", "zero", "gather_ahead",
    "recompute", "choices", "stages",
)  # fmt: skip
"""Fields of a strategy that seats of servers decide layer by layer."""
MOST_MICRO_BATCHES = 100_000
"""Of a data rank in a step; more is a slip, and no memory holds their passes."""


def check(strategy: Strategy, workload: Workload, gpus: int | None = None) -> None:
    """Refuse a strategy that cannot be carried out, with all the reasons at once.

    `gpus` is how many there are; leave it out where the strategy decides that.
    """
    findings = Findings(StrategyError, f"strategy for {workload.name}")
    for finding in _numbers(strategy):
        findings.add(finding)
    findings.raise_if_any()  # the other checks divide by these numbers
    if strategy.grain == SERVER:
        for finding in _seats(strategy, workload, gpus):
            findings.add(finding)
        findings.raise_if_any()
        return
    for rule in (_words(strategy), _gpu_count(strategy, gpus), _pipeline(strategy, workload), _order(strategy)):
        for finding in rule:
            findings.add(finding)
    if strategy.parts:
        for finding in parts_findings(strategy, workload):
            findings.add(finding)
        findings.raise_if_any()  # the other checks are those of each part
    views = dict.fromkeys(strategy.on_stages()) if strategy.parts else (strategy,)
    for finding in dict.fromkeys(finding for view in views for finding in degree_findings(view, workload)):
        findings.add(finding)
    findings.raise_if_any()


def _seats(plan: Strategy, workload: Workload, servers: int | None) -> Iterator[str]:
    """Is every layer seated, on servers that there are, with nothing else decided?"""
    usual = Strategy()
    for name in SAID_BY_SEATS:
        if getattr(plan, name) != getattr(usual, name):
            yield f"{name} is {getattr(plan, name)!r}, but placements per server fix it layer by layer: leave it out"
    if len(plan.parts) != len(workload.layers):
        yield f"{len(plan.parts)} parts for {len(workload.layers)} layers: give every layer its own part"
    if not plan.order.is_plain:
        yield "seats of servers reduce gradients as they are ready: take an order of plain buckets, buckets or fifo"
    try:
        seating_of(plan)
    except StrategyError as error:
        yield str(error)
        return
    for one, layer in zip(plan.parts, workload.layers, strict=False):
        yield from uneven_samples(one, plan.micro_batch, layer.name)
    if servers is not None and plan.ranks > servers:
        yield f"seats are on {plan.ranks} servers, but there are {servers}: write the plan again for this cluster"


def degree_findings(plan: Strategy, workload: Workload) -> Iterator[str]:
    """Does what ranks share divide over them?"""
    yield from _tensor(plan, workload)
    yield from _scans(plan, workload)
    yield from _experts(plan, workload)
    yield from _context(plan, workload)
    yield from _tables(plan, workload)
    yield from _choices(plan, workload)
    yield from _modules(plan, workload)


def _modules(plan: Strategy, workload: Workload) -> Iterator[str]:
    """Are there the parts that shall be computed again?"""
    if unknown(plan.recompute) or plan.recompute == "selective":
        return
    for name in modules_of(plan.recompute):
        if not any(has_module(layer.operators, name) for layer in workload.layers):
            where = ", or take --stack megatron" if name == "moe_act" and workload.stack != "megatron" else ""
            yield f"no layer of {workload.name} has {name} to recompute: leave it out{where}"
    if "shared_experts" in modules_of(plan.recompute) and plan.shared_overlap:
        yield "shared experts that hide the token exchange are not recomputed: leave one of the two out"


def _numbers(plan: Strategy) -> Iterator[str]:
    for name in ("data", "tensor", "pipeline", "expert", "context", "micro_batch", "micro_batches", "interleave"):
        value = getattr(plan, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            yield f"{name} is {value!r}: give a whole number, 1 or more"
        elif name == "micro_batches" and value > MOST_MICRO_BATCHES:
            yield f"{value} micro-batches are too many: give {MOST_MICRO_BATCHES} larger ones or fewer"
    if plan.zero not in (0, 1, 2, 3):
        yield f"zero is {plan.zero!r}: give 0, 1, 2 or 3"
    if plan.rows:
        try:
            _ = plan.timetable
        except StrategyError as error:
            yield str(error).replace("timetable", "schedule", 1)
    if plan.gradient_bytes is not None and not plan.gradient_bytes > 0:
        yield f"gradient_bytes is {plan.gradient_bytes!r}: give 2 or 4"


def _words(plan: Strategy) -> Iterator[str]:
    if plan.schedule not in TIMETABLES and not plan.rows:
        yield TIMETABLES.unknown(plan.schedule)
    if unknown(plan.recompute):
        yield unknown(plan.recompute)
    if plan.optimiser not in OPTIMISER_BYTES:
        yield f"there is no optimiser {plan.optimiser!r}: use one of {', '.join(OPTIMISER_BYTES)}"
    if plan.zero and max(plan.replicas, plan.expert_replicas) == 1 and all(one.replicas == 1 for one in plan.parts):
        yield f"zero {plan.zero} shards state over data ranks, but there is one: set zero to 0 or raise data"


def _gpu_count(plan: Strategy, gpus: int | None) -> Iterator[str]:
    if gpus is None or plan.ranks == gpus:
        return
    if plan.parts:
        if plan.ranks > gpus:
            yield f"its parts name rank {plan.ranks - 1}, but there are {gpus} GPUs: count from 0 to {gpus - 1}"
        return
    degrees = {"data": plan.data, "tensor": plan.tensor, "pipeline": plan.pipeline, "context": plan.context}
    product = " x ".join(f"{name} {degree}" for name, degree in degrees.items())
    fixes = [
        f"set {name} to {gpus * degree // plan.ranks}"
        for name, degree in degrees.items()
        if gpus * degree % plan.ranks == 0
    ]
    wanted = " or ".join(fixes[:2]) if fixes else f"choose degrees whose product is {gpus}"
    yield f"{product} = {plan.ranks} ranks, but there are {gpus} GPUs: {wanted}, or ask for {plan.ranks} GPUs"


def _pipeline(plan: Strategy, workload: Workload) -> Iterator[str]:
    layers = len(workload.layers)
    if plan.pieces > layers:
        pieces = f"{plan.pipeline} stages" + (f" of {plan.interleave} pieces" if plan.interleave > 1 else "")
        yield f"{layers} layers do not fill {pieces}: lower pipeline or interleave to {layers} pieces or fewer"
    yield from _schedule(plan)
    if plan.stages is not None:
        rising = all(first < after for first, after in zip(plan.stages, plan.stages[1:], strict=False))
        if len(plan.stages) != plan.pieces or plan.stages[:1] != (0,) or not rising or plan.stages[-1] >= layers:
            yield (
                f"stages begin at layers {list(plan.stages)}: give {plan.pieces} rising numbers from 0 on, "
                f"all below {layers}"
            )


def _schedule(plan: Strategy) -> Iterator[str]:
    """What the timetable wants of stages, pieces and micro-batches."""
    if plan.rows:
        if plan.timetable.devices != plan.pipeline:
            yield f"schedule {plan.schedule} has {len(plan.rows)} rows for {plan.pipeline} stages: give one each"
        return
    named = TIMETABLES.get(plan.schedule)
    if named is None:
        return  # named among the words
    if plan.interleave not in (1, plan.pieces_each):
        pieces = "one piece" if named.pieces_each == 1 else f"{named.pieces_each} pieces"
        yield f"schedule {plan.schedule} runs {pieces} on each stage: set interleave to 1 or schedule to interleaved"
    if plan.pieces_each > 1 and plan.pipeline == 1:
        yield f"schedule {plan.schedule} needs a pipeline of 2 stages or more: raise pipeline or use 1f1b"
    elif plan.schedule == "interleaved" and plan.micro_batches % plan.pipeline:
        near = -(-plan.micro_batches // plan.pipeline) * plan.pipeline
        yield (
            f"schedule interleaved runs micro-batches in groups of {plan.pipeline}, but there are "
            f"{plan.micro_batches}: give {near}"
        )
    else:
        try:
            _ = plan.timetable
        except StrategyError as error:
            yield str(error).replace("timetable", "schedule", 1)


def _tensor(plan: Strategy, workload: Workload) -> Iterator[str]:
    if plan.sequence_parallel and plan.tensor == 1:
        yield "sequence parallelism splits over tensor ranks, but there is only one: raise tensor or turn it off"
    if plan.tensor == 1:
        return
    if not any(layer.meets(Meeting.LEAVE) for layer in workload.layers):
        yield (
            f"no layer of {workload.name} can be split over {plan.tensor} tensor ranks: "
            "set tensor to 1 and use data or pipeline parallelism"
        )
    if plan.sequence_parallel and workload.sequence % plan.tensor:
        yield (
            f"a sequence of {workload.sequence} tokens does not split over {plan.tensor} tensor ranks: "
            "give a multiple or turn sequence parallelism off"
        )
    split = {id(layer.operators): layer.operators for layer in workload.layers if plan.split_of(layer).tensor > 1}
    heads = {
        (op.heads, op.kv_heads) if isinstance(op, FusedAttention) else (op.count // workload.batch,) * 2
        for operators in split.values()
        for op in map(bare, operators)
        if isinstance(op, FusedAttention) or (isinstance(op, Product) and op.role is Role.INSIDE)
    }
    for count, shared in sorted(heads):
        if count % plan.tensor:
            fits = ", ".join(str(ways) for ways in range(1, min(count, 64) + 1) if count % ways == 0)
            yield f"{count} attention heads do not split over {plan.tensor} tensor ranks: use one of {fits}"
        elif shared % plan.tensor and plan.tensor % shared:
            yield (
                f"{shared} key-value heads neither divide over {plan.tensor} tensor ranks nor replicate evenly: "
                "use a divisor or a multiple"
            )


def _different(workload: Workload) -> Iterator[Operator]:
    """The operators of all layers, of those that have the same ones once: a search checks many strategies."""
    for operators in {id(layer.operators): layer.operators for layer in workload.layers}.values():
        yield from map(bare, operators)


def _scans(plan: Strategy, workload: Workload) -> Iterator[str]:
    """Do groups of states split over tensor ranks?"""
    groups = {op.groups for op in _different(workload) if isinstance(op, Scan)}
    for count in sorted(groups):
        if count % plan.tensor:
            yield f"{count} groups of states do not split over {plan.tensor} tensor ranks: set tensor to a divisor"


def _experts(plan: Strategy, workload: Workload) -> Iterator[str]:
    if plan.fold_experts:
        yield from _folded(plan, workload)
    if plan.shared_overlap:
        yield from _meanwhile(plan, workload)
    if plan.expert == 1:
        return
    if plan.expert_ranks % plan.expert:
        ranks = plan.expert_ranks
        over = "tensor, context and data ranks" if plan.fold_experts else "data ranks"
        yield (
            f"experts are spread over {ranks} {over}, which expert degree {plan.expert} does not divide: set expert to "
            f"a divisor of {ranks}{_by_folding(plan)}"
        )
    if not any(layer.meets(Meeting.DISPATCH) for layer in workload.layers):
        yield f"{workload.name} has no experts to spread over {plan.expert} ranks: set expert to 1"
    counts = {op.experts for op in _different(workload) if isinstance(op, Experts)}
    for count in sorted(counts):
        if count % plan.expert:
            yield f"{count} experts do not spread over {plan.expert} ranks: set expert to a divisor of {count}"


def _by_folding(plan: Strategy) -> str:
    """What to do besides, where so many ranks could share out whole experts."""
    if plan.fold_experts or plan.data * plan.context * plan.tensor % plan.expert:
        return ""
    also = " and turn sequence parallelism on" if plan.tensor > 1 and not plan.sequence_parallel else ""
    return f", or fold experts over tensor and context ranks too (fold_experts){also}"


def _folded(plan: Strategy, workload: Workload) -> Iterator[str]:
    """Can tensor ranks have tokens of their own?"""
    if not any(layer.meets(Meeting.DISPATCH) for layer in workload.layers):
        yield f"{workload.name} has no experts to fold over tensor and context ranks: leave fold_experts out"
    elif plan.tensor > 1 and not plan.sequence_parallel:
        yield (
            "folded experts need different tokens on each tensor rank: turn sequence "
            "parallelism on or leave fold_experts out"
        )


def _meanwhile(plan: Strategy, workload: Workload) -> Iterator[str]:
    """Is there something to compute while tokens travel?"""
    if all(shared_between(layer.operators) is None for layer in workload.layers):
        yield f"{workload.name} has no shared experts: leave shared_overlap out"
    elif plan.expert == 1:
        yield "shared_overlap needs a token exchange, and expert is 1: raise expert or leave shared_overlap out"
    if TIMETABLES.get(plan.schedule) is not None and plan.timetable.paired.any():
        yield (
            f"schedule {plan.schedule} already hides the token exchange behind another micro-batch: leave "
            "shared_overlap out or use 1f1b or interleaved"
        )


def _context(plan: Strategy, workload: Workload) -> Iterator[str]:
    if plan.context == 1:
        return
    if not any(map(attends, workload.layers)):
        yield f"{workload.name} has no attention whose sequence can be cut into {plan.context}: set context to 1"
    elif any(isinstance(bare(op), Scan) for layer in workload.layers for op in layer.operators):
        yield f"scans of {workload.name} need whole sequences, which {plan.context} ranks cut: set context to 1"
    elif any(layer.kind.startswith("vision") for layer in workload.layers):
        yield f"images of {workload.name} are encoded whole, which {plan.context} context ranks cut: set context to 1"
    elif workload.sequence % plan.context:
        yield (
            f"a sequence of {workload.sequence} tokens does not split over {plan.context} context ranks: "
            "give a multiple or another context degree"
        )
    if plan.context_exchange != GATHER:
        yield from _exchange(plan, workload)


def _exchange(plan: Strategy, workload: Workload) -> Iterator[str]:
    """Can the ranks of a sequence meet in attention as they shall?"""
    name, ways = plan.context_exchange, plan.context * plan.tensor
    if name not in EXCHANGES:
        yield EXCHANGES.unknown(name)
        return
    cores = {core for layer in workload.layers if attends(layer) for core in map(bare, layer.operators)
             if isinstance(core, FusedAttention | Product)}  # fmt: skip
    fused = [core for core in cores if isinstance(core, FusedAttention)]
    if len(fused) < len(cores) or not fused:
        yield f"context exchange {name} needs fused attention: give attention=fused, or take gather"
    if name == RING and any(core.window for core in fused):
        yield "context exchange ring passes on all keys, but some layers use windowed attention: use gather or ulysses"
    if name == RING and "core_attn" in modules_of(plan.recompute):
        yield "context exchange ring would pass keys on again where attention is recomputed: use recompute none or full"
    for heads in sorted({core.heads for core in fused}) if name == ULYSSES else ():
        if heads % ways:
            yield (
                f"context exchange ulysses distributes {heads} heads over {plan.context} context x {plan.tensor} "
                "tensor "
                "ranks: use degrees whose product divides them, or gather"
            )


def _tables(plan: Strategy, workload: Workload) -> Iterator[str]:
    if plan.copies > 1 and plan.data > 1 and any(layer.meets(Meeting.TABLES) for layer in workload.layers):
        yield (
            f"schedule {plan.schedule} keeps two copies of embedding tables that are spread over data ranks, and "
            "the gradients of both are never summed: use dualpipev or another schedule with one copy"
        )


def _choices(plan: Strategy, workload: Workload) -> Iterator[str]:
    for choice in plan.choices:
        about = f"the choice for layers {choice.pattern!r}"
        only = type(plan)(tensor=-1, choices=(choice,), recompute="?")
        named = [
            layer for layer in workload.layers if (only.split_of(layer).tensor, only.recompute_of(layer)) != (-1, "?")
        ]
        if not named:
            yield f"{about} matches no layer of {workload.name}: name one such as {workload.layers[0].name!r}"
        if choice.tensor not in (None, 1, plan.tensor):
            yield f"{about} has tensor {choice.tensor}: a layer is split over all {plan.tensor} tensor ranks or 1"
        if choice.tensor == 1 and plan.sequence_parallel:
            yield f"{about} is not split, so sequence parallelism has nowhere to gather it: turn one of them off"
        if choice.recompute is not None and (choice.recompute == "stage" or unknown(choice.recompute)):
            yield (
                f"{about} has recompute {choice.recompute!r}: use none, selective, full, or parts of blocks such as "
                "layernorm,mlp"
            )
        elif choice.recompute is not None and plan.recompute == "stage":
            yield f"{about} recomputes one layer where whole stages are: leave one of the two out"


def _ahead(plan: Strategy) -> Iterator[str]:
    """Is there something to gather, and a beginning of the step to gather it at?"""
    if plan.zero != 1:
        yield (
            f"weights are gathered ahead of the next forward pass under zero 1, not under zero {plan.zero}: set zero "
            "to 1 or leave gather_ahead out"
        )
    if not plan.order.is_plain:
        yield (
            "weights gathered ahead use the gradient buckets: use an order of plain buckets or leave gather_ahead out"
        )
    if plan.copies > 1:
        yield f"schedule {plan.schedule} updates two copies of the model: take 1f1b or leave gather_ahead out"


def _order(plan: Strategy) -> Iterator[str]:
    """Orders of gradients that ZeRO leaves no room for."""
    if plan.zero >= 2 and not plan.order.is_plain:
        yield (
            f"zero {plan.zero} reduces the gradients of every layer in every micro-batch, as they cannot be "
            "accumulated: "
            " set zero to 0 or 1, or use an order of plain buckets"
        )
    if plan.gather_ahead:
        yield from _ahead(plan)
    if plan.zero == 1 and (plan.order.across_steps or plan.order.arrival == "gathered"):
        yield (
            f"zero {plan.zero} gathers weights after the update, so layers cannot start early: set "
            "zero to 0, or use an order with a barrier at the end of the step"
        )
