"""Fine-tuning by adapters: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models (2021).

Every linear layer of a block gets two narrow ones beside it, and these alone are trained: all other weights stay as
they are, without gradients, without an optimiser's state, and without the products that would make their gradients.
Experts, routers, tables of words and heads have no adapters. Where a stack joins products (queries, keys and values;
both halves of a gate), they have one adapter together, as in Megatron Bridge; otherwise each has its own, as in PEFT.
"""

from __future__ import annotations

from dataclasses import replace

from ropewalk.errors import WorkloadError
from ropewalk.workload.adapted import Adapted, bare
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Written
from ropewalk.workload.zoo.graphs import launched_at_once
from ropewalk.workload.zoo.parts import Operators
from ropewalk.workload.zoo.stacks import Stack

INPUT_ROLES = {Role.COLUMNS: Role.WHOLE, Role.ROWS: Role.INSIDE}
OUTPUT_ROLES = {Role.COLUMNS: Role.INSIDE, Role.ROWS: Role.WHOLE}
"""What tensor parallelism does to the input and to the output of a linear layer, by its role; OUTSIDE stays it."""


ALL, IN_FRONT = "all", "qkv"
"""Which linear layers of a block have adapters: all, or those that make queries, keys and values."""


def added(layers: list[Layer], rank: int, stack: Stack, on: str = ALL) -> list[Layer]:
    """The model with adapters of this rank in its blocks and all else frozen; as it is for rank 0."""
    if on not in (ALL, IN_FRONT):
        raise WorkloadError(f"there are no adapters on {on!r}: give lora_on={ALL} or lora_on={IN_FRONT}")
    if not rank:
        return layers
    made: dict[int, Operators] = {}
    for layer in layers:
        if id(layer.operators) not in made:
            narrow = rank if layer.kind.endswith("block") else 0
            last = len(layer.operators) if on == ALL else _attention_at(layer.operators)
            made[id(layer.operators)] = tuple(
                one
                for at, operator in enumerate(layer.operators)
                for one in _beside(operator, narrow if at < last else 0, stack)
            )
    return [replace(layer, operators=made[id(layer.operators)]) for layer in layers]


def _attention_at(operators: Operators) -> int:
    """Where tokens first meet; 0 where they do not."""
    found = (at for at, one in enumerate(operators) if isinstance(bare(one), FusedAttention | Product))
    return next(found, 0)


def _beside(operator: Operator, rank: int, stack: Stack) -> Operators:
    """An operator that is frozen, with its adapter where it has one."""
    linear = bare(operator)
    made: Operators = (frozen(operator),)
    if rank and isinstance(linear, Linear) and not linear.exact:
        made += _adapter(linear, operator.saved_elements(), rank, stack)
    return launched_at_once(made) if operator.captured else made


def frozen(operator: Operator) -> Operator:
    """The operator with weights that stay as they are: no kernels make their gradients, nothing is kept for those."""
    skips = tuple(operator.weight_kernels())
    inner = bare(operator)
    if isinstance(inner, Written) and operator.parameters():
        skips = tuple(at for at, kernel in enumerate(operator.backward()) if kernel.form == "column_sum")
    if not operator.parameters() and not skips:
        return operator
    return Adapted(operator, operator.parameters(), 0, _kept(operator), skips, frozen=True)


def _kept(operator: Operator) -> float:
    """What a frozen operator keeps: products with weights need their inputs for gradients of the weights alone."""
    inner = bare(operator)
    if isinstance(inner, Linear):
        return 0.0
    if isinstance(inner, Experts):
        return operator.saved_elements() - inner.slots * (inner.hidden + inner.ffn)
    return operator.saved_elements()


def _adapter(linear: Linear, kept: float, rank: int, stack: Stack) -> Operators:
    """Down to `rank` numbers and up again, scaled and added to what the frozen layer makes."""
    rows, role = linear.rows, linear.role
    widened = Role.WHOLE if role is Role.ROWS else role
    down = Linear(rows, linear.inputs, rank, bias=False, role=role, exact=True, accumulates=linear.accumulates)
    up = Linear(rows, rank, linear.outputs, bias=False, role=widened, exact=True, accumulates=linear.accumulates)
    joined = Pointwise(
        rows * linear.outputs, 2, backward_reads=1, passes=1 if stack.fused else 2, saved=0.0,
        role=OUTPUT_ROLES.get(role, role), call="add",
    )  # fmt: skip
    met = Pointwise(
        rows * linear.inputs, passes=0, backward_passes=1, saved=0.0, role=INPUT_ROLES.get(role, role), call="add"
    )
    return met, Adapted(down, down.parameters(), 1, kept), up, joined
