"""Pieces that transformers share: how a sub-layer is entered and left, sums of branches, attention in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ropewalk.workload.adapted import Adapted
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout, Pointwise, Softmax
from ropewalk.workload.exchange import Exchange, Meeting, When
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.routines import BIAS_ADD, BIAS_DROPOUT_ADD, BIAS_GELU, DROPOUT_ADD
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Routine, Written
from ropewalk.workload.zoo import core_code
from ropewalk.workload.zoo.graphs import STEP, launched_at_once
from ropewalk.workload.zoo.stacks import EAGER, Stack

Operators = tuple[Operator, ...]


@dataclass(frozen=True)
class Run:
    """What goes through a transformer, and how it is run."""

    samples: int
    length: int
    """Tokens in a sample."""
    attention: str = "fused"
    """`fused`: scores stay in the chip; `written`: scores go to memory, as before 2022."""
    dropout: bool = True
    """Dropout runs where the model has it."""
    stack: Stack = EAGER
    """The software that runs it."""
    graphs: frozenset[str] = frozenset()
    """Parts of it that run as CUDA graphs."""

    @property
    def tokens(self) -> int:
        return self.samples * self.length


def stacked(
    run: Run, hidden: int, embedding: Operators, blocks: Sequence[tuple[str, Operators]], head: Operators
) -> list[Layer]:
    """Blocks, each with its kind, between what makes vectors of words and what makes a loss of them."""
    elements = run.tokens * hidden
    made = {kind: as_run(run, block) for kind, block in blocks}
    return [
        Layer("embedding", as_run(run, embedding), elements, kind="embedding"),
        *(Layer(f"block {number}", made[kind], elements, kind=kind) for number, (kind, _) in enumerate(blocks)),
        Layer("head", as_run(run, head), 1, kind="head"),
    ]


def as_run(run: Run, operators: Operators) -> Operators:
    """The same operators as the stack keeps them, and as it launches them."""
    kept = tuple(as_kept_by(run.stack, operator) for operator in operators)
    return launched_at_once(kept) if STEP in run.graphs else kept


def as_kept_by(stack: Stack, operator: Operator) -> Operator:
    """The same operator, its gradients and what it keeps in the numbers that the stack has for them."""
    if isinstance(operator, Adapted):
        return replace(operator, operator=as_kept_by(stack, operator.operator))
    if not isinstance(operator, Linear | Experts):
        return operator
    return replace(operator, accumulates=stack.accumulates, transformer_engine=stack.transformer_engine)


def enter(elements: int, when: When = When.ALWAYS) -> Exchange:
    """Into a tensor-parallel region."""
    return Exchange(Meeting.ENTER, elements, when=when)


def leave(elements: int, when: When = When.ALWAYS) -> Exchange:
    """Out of a tensor-parallel region."""
    return Exchange(Meeting.LEAVE, elements, when=when)


def residual(elements: int) -> Pointwise:
    """The sum with what bypassed a sub-layer; in the backward pass the two gradients meet and are added."""
    return Pointwise(elements, reads=2, saved=0.0, call="add")


def rejoined(run: Run, width: int) -> Operators:
    """Dropout where the model has it and the sum with what bypassed a sub-layer, with the bias of the linear layer
    before it where the stack leaves that to this kernel."""
    if run.stack.merged:
        return (Written(BIAS_DROPOUT_ADD if run.dropout else BIAS_ADD, run.tokens, width),)
    if run.stack.fused and run.dropout:
        return (Written(DROPOUT_ADD, run.tokens, width),)
    return *dropped(run, run.tokens * width), residual(run.tokens * width)


def gelu(elements: int, role: Role) -> Pointwise:
    """The GELU that is one kernel."""
    return Pointwise(elements, 1, "gelu", "gelu_backward", call="gelu", role=role)


def hidden_layer(run: Run, inputs: int, neurons: int, activation: Operator, *, turned: bool = False) -> Operators:
    """The first half of a feed-forward layer; where the stack merges them, bias and GELU are one kernel."""
    linear = Linear(run.tokens, inputs, neurons, not run.stack.merged, Role.COLUMNS, turned=turned)
    return linear, Written(BIAS_GELU, run.tokens, neurons, Role.INSIDE) if run.stack.merged else activation


def added(elements: int, *, spread: bool = False, role: Role = Role.OUTSIDE) -> Pointwise:
    """A sum in the forward pass whose gradient costs nothing; `spread`: the second tensor is small."""
    form = "broadcast" if spread else "map"
    return Pointwise(elements, reads=2, form=form, backward_passes=0, saved=0.0, call="add", role=role)


def fan_in(elements: int, branches: int, role: Role = Role.WHOLE) -> Pointwise:
    """A tensor that `branches` operators read: their gradients are added on the way back."""
    return Pointwise(elements, passes=0, backward_passes=branches - 1, saved=0.0, role=role, call="add")


def gathered(elements: int, form: str, role: Role = Role.INSIDE) -> Pointwise:
    """One tensor that is handed out in pieces for nothing: on the way back the pieces are put together again."""
    return Pointwise(
        elements, passes=0, backward_form=form, backward_reads=1, saved=0.0, role=role, call="cat"
    )  # fmt: skip


def copied(elements: int, form: str = "permute", *, back: bool = True, role: Role = Role.INSIDE) -> Pointwise:
    """A change of layout, in both passes or only in the first."""
    return Pointwise(
        elements, 1, form, form, 1, backward_passes=int(back), saved=0.0, role=role, call="copy"
    )  # fmt: skip


def sharing(operator: Operator, *, narrowed: bool = False) -> Operator:
    """The operator without what it keeps: its input is kept by another operator already, perhaps for other ends."""
    return Adapted(operator, operator.parameters(), operator.parameter_tensors(), 0.0, narrowed=narrowed)


def calls(*names: str) -> Written:
    """Calls that launch nothing but take the host's time: views, transposes, modules that hold modules."""
    return Written(Routine("calls", (), (), names), 1, 1, Role.WHOLE)


def captured(run: Run, part: str, operators: Operators) -> Operators:
    """A part of a layer; where it runs as a CUDA graph, the host launches it like one operation."""
    return (calls("add"), *launched_at_once(operators)) if part in run.graphs else operators


def interpreted(microseconds: int, run: Run, core: core_code.Code | None = None) -> Written:
    """Code of the model between its calls: looking up what to call, unpacking arguments, making masks and caches.

    Its time is that of blocks of transformers' models on the host of the shipped measurements, where the blocks are too
    small to keep the GPU busy, less the time of their calls; other stacks take a part of it, and Megatron-Core what
    its own `core` was measured to take, where it was.
    """
    if core is not None and run.stack.merged:
        return calls(*("core_forward",) * core.forward, *("core_backward",) * core.backward)
    return calls(*("interpreter",) * round(microseconds * run.stack.interpreted))


def dropped(run: Run, elements: int, role: Role = Role.OUTSIDE) -> Operators:
    return (Dropout(elements, role),) if run.dropout else ()


def attended(
    run: Run,
    heads: int,
    kv_heads: int,
    size: int,
    *,
    causal: bool,
    dropout: bool,
    window: int = 0,
    uneven: bool = False,
    masked: bool = True,
) -> Operators:
    """Attention of every head, from queries, keys and values to their weighted sums.

    Fused attention skips what lies outside of a window; scores that are written are all computed. Dropout inside of
    fused attention is priced where PyTorch runs it, as measured; Transformer Engine's was not. `masked`: the model's
    code makes a mask for it; where nothing is hidden, a stack that has it in memory cannot fuse attention.
    """
    if run.attention == "fused":
        drops_scores = dropout and run.dropout and not run.stack.own_code
        sizes = run.samples, heads, kv_heads, run.length, run.length, size
        cudnn = uneven and run.stack.merged
        hides = causal and run.stack.masked
        unfused = masked and not causal and run.stack.masked
        return (
            FusedAttention(*sizes, causal, hides, window, uneven=cudnn, dropped=drops_scores, unfused=unfused),
        )  # fmt: skip
    count, scores = run.samples * heads, run.samples * heads * run.length**2
    drops = dropped(run, scores, Role.INSIDE) if dropout else ()
    softmax = Softmax(count * run.length, run.length)
    repeated = (copied(2 * run.tokens * heads * size),) if kv_heads != heads else ()
    return (
        *repeated,
        Product(count, run.length, run.length, size),
        softmax if drops else sharing(softmax),
        *drops,
        Product(count, run.length, size, run.length, transposed=False),
        copied(run.tokens * heads * size),
    )


def projected(run: Run, inputs: int, outputs: int, *, bias: bool, turned: bool = False) -> Operators:
    """The linear layer that ends attention; fused attention keeps what it reads already."""
    linear = Linear(run.tokens, inputs, outputs, bias, Role.ROWS, turned=turned)
    return (sharing(linear, narrowed=True) if run.attention == "fused" else linear, leave(run.tokens * outputs))
