"""Models that recommend and predict: DLRM, NCF, CANDLE Uno. Their layers are graphs with several inputs.

Naumov et al., Deep Learning Recommendation Model (2019); He et al., Neural Collaborative Filtering (2017), with the
several tables for users and items that TopoOpt's study gives it; CANDLE's Uno benchmark as FlexFlow ships it: seven
inputs, two of them bare doses, five through towers of linear layers of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.interaction import Interaction
from ropewalk.workload.loss import BinaryCrossEntropy
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.table import EmbeddingBags
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.parts import Operators
from ropewalk.workload.zoo.trail import joined, relu

INPUTS = (942, 5270, 2048, 5270, 2048)
"""Widths of Uno's inputs that go through towers: cell lines, two drugs each with descriptors and fingerprints."""
DOSES = 2


def dlrm(
    name: str, batch: int, *, tables: int = 26, rows: int = 100_000, width: int = 128, lookups: int = 1,
    dense: int = 13, bottom: tuple[int, ...] = (512, 256), top: tuple[int, ...] = (1024, 1024, 512, 256, 1),
) -> list[Layer]:  # fmt: skip
    """Tables beside a stack of linear layers for numbers; dot products of all pairs; a stack on top.

    The lower stack ends in the width of the tables whatever `bottom` says before it.
    """
    below = stack(batch, (dense, *bottom, width), first=True)
    meet = Interaction(batch, tables + 1, width)
    above = (*stack(batch, (meet.outputs, *top), last=True), BinaryCrossEntropy(batch))
    return [
        Layer("bottom", below, batch * width, (), "dense"),
        Layer("tables", looked_up(tables, batch, lookups, rows, width), tables * batch * width, (), "tables"),
        Layer("interaction", (meet,), batch * meet.outputs, (0, 1), "interaction"),
        Layer("top", above, batch, (2,), "head"),
    ]


def ncf(
    name: str, batch: int, *, tables: int = 1, users: int = 138_493, items: int = 26_744, factors: int = 64,
    width: int = 128, mlp: tuple[int, ...] = (256, 256, 128, 64), lookups: int = 1,
) -> list[Layer]:  # fmt: skip
    """Two ways from user and item to a guess: a product of factors, and a stack over wider tables."""
    factor = (
        *looked_up(tables, batch, lookups, users, factors),
        *looked_up(tables, batch, lookups, items, factors),
        Pointwise(batch * tables * factors, reads=2, backward_passes=2, role=Role.WHOLE, call="multiply"),
    )
    deep = (
        *looked_up(tables, batch, lookups, users, width),
        *looked_up(tables, batch, lookups, items, width),
        joined(2 * batch * tables * width),
    )
    meet = mlp[-1] + tables * factors
    above = (joined(batch * meet), Linear(batch, meet, 1), BinaryCrossEntropy(batch))
    return [
        Layer("factors", factor, batch * tables * factors, (), "tables"),
        Layer("tables", deep, 2 * batch * tables * width, (), "tables"),
        Layer("stack", stack(batch, (2 * tables * width, *mlp)), batch * mlp[-1], (1,), "dense"),
        Layer("head", above, batch, (0, 2), "head"),
    ]


def uno(
    name: str, batch: int, *, towers: tuple[int, ...] = (4096,) * 8, dense: tuple[int, ...] = (4096,) * 4
) -> list[Layer]:
    """Five towers side by side, joined with the doses, and a stack on top that ends in one number."""
    layers = [
        Layer(f"tower {number}", stack(batch, (inputs, *towers), first=True), batch * towers[-1], (), "tower")
        for number, inputs in enumerate(INPUTS)
    ]
    meet = len(INPUTS) * towers[-1] + DOSES
    above = (joined(batch * meet), *stack(batch, (meet, *dense)))
    loss = Pointwise(batch, reads=2, role=Role.WHOLE, call="mean")
    last = (Linear(batch, dense[-1], 1), relu(batch), Linear(batch, 1, 1), loss)
    sources = tuple(range(len(INPUTS)))
    return [
        *layers,
        Layer("stack", above, batch * dense[-1], sources, "dense"),
        Layer("head", last, batch, (len(INPUTS),), "head"),
    ]


def looked_up(tables: int, batch: int, lookups: int, rows: int, width: int) -> Operators:
    """Tables, each whole on one rank, and the exchange that brings their rows to the ranks that train on them."""
    return (
        EmbeddingBags(tables, batch, lookups, rows, width),
        Exchange(Meeting.TABLES, tables * batch * width),
    )


def stack(batch: int, widths: Sequence[int], *, first: bool = False, last: bool = False) -> Operators:
    """Linear layers with a ReLU behind each, but for the last of a model."""
    made: list[Operator] = []
    for number, (inputs, outputs) in enumerate(pairwise(widths)):
        made.append(Linear(batch, inputs, outputs, first=first and number == 0))
        if not (last and number == len(widths) - 2):
            made.append(relu(batch * outputs))
    return tuple(made)
