"""Shared experts computed while tokens travel: the order of operators that Megatron-Core's overlap makes.

`--moe-shared-expert-overlap`: the first product of the shared experts and its activation run while tokens are sent to
their experts, the second product while they come back. What tensor ranks gather for shared experts is there before, and
what they scatter follows behind (`megatron/core/transformer/moe/shared_experts.py`). Gradients go the same way back.
"""

from __future__ import annotations

from ropewalk.workload.adapted import bare
from ropewalk.workload.dense import Linear
from ropewalk.workload.exchange import Exchange, Meeting, When
from ropewalk.workload.operator import Operator, Role

Operators = tuple[Operator, ...]
ARRIVED = Exchange(Meeting.ARRIVED, 1)


def shared_between(operators: Operators) -> tuple[int, int] | None:
    """Where shared experts begin and end: at the meetings that folded experts leave to them; None without any."""
    own = [at for at, op in enumerate(operators) if isinstance(op, Exchange) and op.when is When.FOLDED]
    return (own[0], own[-1]) if own else None


def with_shared_meanwhile(operators: Operators) -> Operators:
    """The operators of a layer with those of its shared experts behind the exchanges that hide behind them."""
    found = shared_between(operators)
    if found is None:
        return operators
    first, last = found
    enter, inside, leave = operators[first], operators[first + 1 : last], operators[last]
    linears = {at: one for at, one in enumerate(map(bare, inside)) if isinstance(one, Linear)}
    second = next(at for at, linear in linears.items() if linear.role is Role.ROWS)
    rest = operators[:first] + operators[last + 1 :]
    there, back = (_place(rest, meeting) for meeting in (Meeting.DISPATCH, Meeting.COMBINE))
    return (
        *rest[:there], enter, rest[there], *inside[:second], ARRIVED,
        *rest[there + 1 : back + 1], *inside[second:], ARRIVED, leave, *rest[back + 1 :],
    )  # fmt: skip


def _place(operators: Operators, meeting: Meeting) -> int:
    return next(at for at, op in enumerate(operators) if isinstance(op, Exchange) and op.meeting is meeting)
