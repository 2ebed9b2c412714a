"""What one rank holds of a layer: its operators, its parameters by who else has them, what it keeps for later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ropewalk.device.numbers import Numbers
from ropewalk.strategy.columns import cut, split_by_tensor
from ropewalk.strategy.meanwhile import with_shared_meanwhile
from ropewalk.strategy.part import Manner
from ropewalk.strategy.recompute import again_in, given_up, is_core, modules_of, with_gates_remade
from ropewalk.strategy.server import ONE_GPU, Server
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.workload.adapted import Adapted, bare
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.experts import Experts
from ropewalk.workload.flat import FlatCopies
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.operator import ULYSSES, Operator, Role, Split, part
from ropewalk.workload.table import Embedding, EmbeddingBags
from ropewalk.workload.workload import Layer, Workload
from ropewalk.workload.zoo.stacks import Stack, shares_out, stack_of


@dataclass(frozen=True)
class Share:
    """The part of one rank of a layer; where a rank is a server, that of one of its GPUs."""

    layer: Layer
    """Split: its operators are what the rank does."""
    split: Split
    recompute: str
    parameters: int
    """Those that are trained and held alike by all data and context ranks."""
    expert_parameters: int
    """Those that are trained and held alike by the ranks that have the same experts."""
    table_parameters: int
    """Held by this GPU alone: embedding tables that are spread over data ranks, or over the GPUs of a server."""
    tensors: int
    """Of the parameters that the optimiser updates."""
    tied: int
    """Parameters of an embedding that are used here and counted there."""
    embeddings: tuple[int, ...]
    """Parameters of each embedding it has itself, to find the one that is tied."""
    read: tuple[int, ...] = ()
    """Elements of a micro-batch that it reads of each layer in `layer.inputs`."""
    narrow_experts: int = 0
    """Of the parameters of experts, those of which narrow copies are kept where products are narrow."""
    narrow: int = 0
    """Of all these parameters, those of which narrow copies are kept where products are narrow."""
    sparse: int = 0
    """Of all these parameters, those of tables that are updated row by row in their backward pass: there are never
    gradients of all of them, and the optimiser passes them over."""
    frozen: int = 0
    """Parameters besides that are never updated and held alike by all data and context ranks."""
    frozen_experts: int = 0
    """The same, held alike by the ranks that have the same experts."""
    frozen_tied: int = 0
    """Parameters of a frozen embedding that are used here and counted there."""
    tables_over: int = 1
    """Data ranks over which tables are spread; they exchange what was looked up."""
    server: Server = ONE_GPU
    """What the rank is."""

    @property
    def all_parameters(self) -> int:
        """That are trained."""
        return self.parameters + self.expert_parameters + self.table_parameters

    @property
    def held_parameters(self) -> int:
        """Trained or not."""
        return self.all_parameters + self.frozen + self.frozen_experts

    @property
    def copied_parameters(self) -> int:
        """What every GPU of a server has a copy of."""
        return self.parameters + self.expert_parameters


def share_of(layer: Layer, strategy: Strategy, server: Server = ONE_GPU, manner: Manner = Manner.SAMPLE) -> Share:
    """What one rank does and holds of this layer.

    Where ranks are servers, `manner` says how they share it. Weights that two layers have in common are not summed
    between the seats of the two.
    """
    seated = strategy.grain == SERVER
    split, operators = _split(layer, strategy, manner)
    if strategy.gradient_bytes is not None:
        operators = tuple(op.summed_in(strategy.gradient_bytes) for op in operators)
    tables_over = strategy.data if layer.meets(Meeting.TABLES) and not seated else 1
    if tables_over > 1:
        operators = tuple(_spread(op, tables_over) for op in operators)
    counts = {"dense": 0, "expert": 0, "table": 0}
    frozen = {"dense": 0, "expert": 0, "table": 0}
    sparse = 0
    for sort, op in _by_sort(operators, tables_over > 1, apart=strategy.expert > 1 or not seated):
        inside = manner is Manner.PINNED or (isinstance(op, SparseTable) and not manner.parts_samples)
        mine = part(op.parameters(), server.gpus) if inside else op.parameters()
        counts["table" if inside else sort] += mine - min(mine, op.frozen_parameters())
        frozen[sort] += min(mine, op.frozen_parameters())
        sparse += mine if isinstance(op, SparseTable) else 0
    done = with_shared_meanwhile(operators) if split.meanwhile and split.expert > 1 else operators
    if "moe_act" in modules_of(strategy.recompute_of(layer)):
        done = with_gates_remade(done)
    return Share(
        layer=Layer(layer.name, done, layer.output_elements, layer.inputs, layer.kind),
        split=split,
        recompute=strategy.recompute_of(layer),
        parameters=counts["dense"],
        expert_parameters=counts["expert"],
        table_parameters=counts["table"],
        tensors=sum(op.parameter_tensors() for op in operators if not isinstance(op, SparseTable)),
        tied=0 if seated else _tied(operators, frozen=False),
        narrow=sum(op.narrow_parameters() for op in operators),
        narrow_experts=sum(op.narrow_parameters() for op in operators if isinstance(bare(op), Experts)),
        embeddings=tuple(
            op.parameters() for op in map(bare, operators) if isinstance(op, Embedding) and not op.borrowed
        ),
        sparse=sparse,
        frozen=frozen["dense"] + frozen["table"],
        frozen_experts=frozen["expert"],
        frozen_tied=0 if seated else _tied(operators, frozen=True),
        tables_over=tables_over,
        server=server,
    )


def shares_of(workload: Workload, strategy: Strategy, server: Server = ONE_GPU) -> tuple[Share, ...]:
    """The share of every layer; layers that are alike are looked at once.

    The workload is that of one micro-batch of a rank; where the strategy has parts, each gets its own. Where stages
    keep several copies of the model, the layers of the second follow those of the first. Where ranks are servers,
    `server` says what they are.
    """
    if not strategy.parts:
        alike: Known = {}
        return tuple(_share_at(workload, at, strategy, alike) for at in range(len(workload.layers))) * strategy.copies
    views, homes = strategy.on_stages(server.gpus), strategy.homes
    sized = {view.micro_batch: workload.at_batch(view.micro_batch) for view in views}
    by_view: dict[tuple[Strategy, Manner], Known] = {}
    shares = []
    for stage, one in zip(homes, strategy.parts * strategy.copies, strict=True):
        view = views[stage]
        known = by_view.setdefault((view, one.manner), {})
        shares += [_share_at(sized[view.micro_batch], at, view, known, server, one.manner) for at in one.layers]
    return tuple(shares)


Known = dict[tuple[object, ...], Share]


def _share_at(
    workload: Workload,
    at: int,
    strategy: Strategy,
    known: Known,
    server: Server = ONE_GPU,
    manner: Manner = Manner.SAMPLE,
) -> Share:
    layer = workload.layers[at]
    here = id(layer.operators), strategy.split_of(layer), strategy.recompute_of(layer)
    if here not in known:
        # Most layers that are alike have the same tuple of operators: to compare all that is in it takes far longer.
        alike = layer.operators, *here[1:]
        if alike not in known:
            share = share_of(layer, strategy, server, manner)
            stack = stack_of(workload)
            known[alike] = _shared_out(share, strategy, stack) if shares_out(stack) else share
        known[here] = known[alike]
    found = known[here]
    own = Layer(layer.name, found.layer.operators, layer.output_elements, layer.inputs, layer.kind)
    return replace(found, layer=own, read=tuple(workload.layers[source].output_elements for source in layer.inputs))


def _shared_out(share: Share, strategy: Strategy, stack: Stack) -> Share:
    """The share with the copies around the collectives that gather its weights and scatter its gradients."""
    dense, still = (share.parameters, share.frozen) if strategy.replicas > 1 else (0, 0)
    experts, idle = 0, 0
    if strategy.expert_replicas > 1:
        experts, idle = share.expert_parameters, share.frozen_experts
    if strategy.zero < 3 or not dense + experts + still + idle:
        return share
    copies = FlatCopies(
        dense + experts, strategy.regather, strategy.gradient_bytes, still + idle, stack.copies_flat, strategy.replicas,
        stack.divides_flat,
    )  # fmt: skip
    return replace(share, layer=replace(share.layer, operators=(copies, *share.layer.operators)))


def _split(layer: Layer, strategy: Strategy, manner: Manner) -> tuple[Split, tuple[Operator, ...]]:
    """How a layer is split, and what one rank does of it."""
    if manner is Manner.COLUMNS:
        return Split(), cut(layer, strategy.tensor)
    split = strategy.split_of(layer)
    if manner is Manner.TENSOR:
        return split, split_by_tensor(layer, split.tensor, strategy.micro_batch).operators
    operators = layer.split(split).operators
    if split.context > 1 and not layer.meets(Meeting.CONTEXT):
        operators = (_with_heads_exchanged if split.exchange == ULYSSES else _with_whole_keys)(layer, operators, split)
    return split, operators


def _tied(operators: tuple[Operator, ...], *, frozen: bool) -> int:
    some = [bare(op) for op in operators if (isinstance(op, Adapted) and op.frozen) is frozen]
    heads = sum(op.inputs * op.outputs for op in some if isinstance(op, Linear) and op.tied)
    return heads + sum(op.vocabulary * op.width for op in some if isinstance(op, Embedding) and op.borrowed)


def met_again(share: Share) -> tuple[Operator, ...]:
    """The operators that run once more before the backward pass, with the meetings of ranks between them."""
    operators = share.layer.operators
    if share.recompute in ("full", "stage"):
        return tuple(op for op in operators if not isinstance(op, FlatCopies))
    return tuple(operators[place] for place in again_in(operators, modules_of(share.recompute)))


def computed_again(share: Share) -> tuple[Operator, ...]:
    """The operators that run once more before the backward pass."""
    return tuple(op for op in met_again(share) if not isinstance(op, Exchange))


def kept_bytes(share: Share, numbers: Numbers) -> float:
    """Bytes that a rank keeps of one micro-batch between the two passes of this layer.

    Under full recomputation that is the input of the layer; where parts of blocks are recomputed all but what these
    make: the core of attention keeps queries, keys and values, whole modules keep their input. Under sequence
    parallelism the inputs of split products are kept in parts and gathered again, as Megatron-LM does.
    """
    split, element_bytes = share.split, numbers.element_bytes
    if share.recompute == "stage":
        return 0.0  # what enters the stage is kept once, by the stage
    if share.recompute == "full":
        return sum(share.read) * element_bytes / (split.context * (split.tensor if split.sequence else 1))
    operators = share.layer.operators
    gone, kept = given_up(operators, modules_of(share.recompute), split)
    dropped = tuple(operators[place] for place in sorted(gone))
    return _saved(operators, split, numbers) - _saved(dropped, split, numbers) + kept * element_bytes


def working_bytes(share: Share, numbers: Numbers) -> float:
    """Bytes that come back while a layer is computed again and its backward pass runs."""
    whole = _saved(share.layer.operators, share.split, numbers)
    return max(0.0, whole - kept_bytes(share, numbers))


def _saved(operators: tuple[Operator, ...], split: Split, numbers: Numbers) -> float:
    total = 0.0
    for each in operators:
        operator = each.padded(numbers.expert_rows)
        inner = bare(operator)
        gathered = split.sequence and isinstance(inner, Linear) and inner.role is Role.COLUMNS
        ways = split.tensor if gathered else 1
        total += operator.saved_elements() / ways * numbers.element_bytes + operator.saved_bytes()
        if numbers.narrow_bytes is not None:
            narrow = operator.narrow_elements()
            wide = min(narrow, operator.saved_elements())
            total += (narrow * numbers.narrow_bytes - wide * numbers.element_bytes) / ways
    return total


def attends(layer: Layer) -> bool:
    """Is there attention in this layer, or a place where keys and values of a cut sequence are put together?"""
    return any(map(is_core, layer.operators)) or layer.meets(Meeting.CONTEXT)


def _with_whole_keys(layer: Layer, operators: tuple[Operator, ...], split: Split) -> tuple[Operator, ...]:
    """The operators with keys and values of the whole sequence gathered before attention, which needs all of them."""
    if not attends(layer):
        return operators
    at = next(place for place, op in enumerate(operators) if is_core(op))
    first = bare(layer.operators[at])
    if isinstance(first, FusedAttention):
        keys = first.batch * first.kv_heads * first.keys * first.size
    else:
        assert isinstance(first, Product)
        keys = first.count * first.columns * first.inner
    met = Exchange(Meeting.CONTEXT, part(2 * keys, split.context))
    return (*operators[:at], met, *operators[at:])


def _with_heads_exchanged(layer: Layer, operators: tuple[Operator, ...], split: Split) -> tuple[Operator, ...]:
    """The operators with heads handed out before attention, and back behind it.

    Heads of keys and values that are fewer than ranks are repeated before they are sent.
    """
    at = next((place for place, op in enumerate(operators) if isinstance(bare(op), FusedAttention)), None)
    if at is None:
        return operators
    core, ways = bare(layer.operators[at]), split.context * split.tensor
    assert isinstance(core, FusedAttention)
    each = core.batch * core.queries * core.size
    there = Exchange(Meeting.HEADS, part(each * (core.heads + 2 * max(core.kv_heads, ways)), ways))
    back = Exchange(Meeting.HEADS, part(each * core.heads, ways))
    return (*operators[:at], there, operators[at], back, *operators[at + 1 :])


def _by_sort(
    operators: tuple[Operator, ...], tables_spread: bool, *, apart: bool = True
) -> Iterator[tuple[str, Operator]]:
    """Operators with the sort of parameters they have: those of experts stand between dispatch and combine.

    `apart` tells experts from what all data ranks hold alike.
    """
    at_experts = False
    for op in operators:
        if isinstance(op, Exchange):
            at_experts = op.meeting is Meeting.DISPATCH or (at_experts and op.meeting is not Meeting.COMBINE)
        is_table = tables_spread and isinstance(bare(op), EmbeddingBags)
        yield ("expert" if at_experts and apart else "table" if is_table else "dense"), op


def _spread(operator: Operator, ranks: int) -> Operator:
    """Tables spread over the ranks: a rank looks up in its own for the samples of all of them."""
    if not isinstance(operator, EmbeddingBags):
        return operator
    return replace(operator, tables=part(operator.tables, ranks), bags=operator.bags * ranks)
