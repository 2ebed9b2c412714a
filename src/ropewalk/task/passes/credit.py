"""Credit: how many bytes may be handed to the network before the first of them are summed."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

from ropewalk.errors import GraphError
from ropewalk.task.passes.gradients import Gradients


def credit(gradients: Gradients, credit_bytes: float) -> Gradients:
    """Let every rank hand launches over, in order, while fewer bytes than these are under way.

    0 is one launch at a time; infinity hands all of them over as their gradients appear, in order.
    """
    if isnan(credit_bytes) or credit_bytes < 0:
        raise GraphError(f"a credit of {credit_bytes:g} bytes is negative: give 0 (one launch) or more")
    return replace(gradients, credit_bytes=float(credit_bytes))
