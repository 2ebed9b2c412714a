"""A step over time under one order of communication: what the GPU computes, what the network carries."""

from __future__ import annotations

from ropewalk import palette
from ropewalk.overlap.answer import OverlapAnswer
from ropewalk.overlap.methods import MethodStep
from ropewalk.report import quantity
from ropewalk.report.colours import COMPUTE_PHASES
from ropewalk.report.lanes import Bar, LaneGroup, lane_timeline
from ropewalk.report.step_timeline import StepTimeline

LOOKS = {
    "backward": COMPUTE_PHASES["backward"],
    "forward of the next step": COMPUTE_PHASES["forward"],
    "all-reduce": palette.GREEN,
    "reduce-scatter": palette.GREEN,
    "all-gather": palette.AMBER,
    "push": palette.GREEN,
    "pull": palette.AMBER,
}
MOST_NAMED = 3
"""Tensors of a launch that its label names."""


def method_timeline(answer: OverlapAnswer, method: MethodStep, span_s: float) -> StepTimeline | None:
    """One method, to the scale of `span_s` seconds; None where only its step is known."""
    if not method.moves or method.forward_start_s is None:
        return None
    tensors = answer.tensors
    carried = tuple(dict.fromkeys(move.operation for move in method.moves))
    # Halves of sums share one network, as sums do; pushes and pulls do not disturb each other.
    lanes = carried if answer.link.duplex else (", ".join(carried),)
    bars = []
    now = 0.0
    for layer in reversed(range(tensors.layers)):
        took = float(tensors.backward_s[layer])
        bars.append(Bar(0, now, now + took, f"{tensors.layer_names[layer]} backward", "backward"))
        now += took
    for layer, begin in enumerate(method.forward_start_s.tolist()):
        end = begin + float(tensors.forward_s[layer])
        bars.append(Bar(0, begin, end, f"{tensors.layer_names[layer]} forward", "forward of the next step"))
    for move in method.moves:
        label = f"{_listed([tensors.names[tensor] for tensor in move.tensors])}, {quantity.size(move.size_bytes)}"
        bars.append(
            Bar(
                1 + (carried.index(move.operation) if answer.link.duplex else 0),
                move.begin_s,
                move.end_s,
                label,
                move.operation,
            )
        )
    return lane_timeline(
        f"timeline-{method.name}",
        (LaneGroup("GPU", ("compute",)), LaneGroup("network", lanes)),
        bars,
        LOOKS,
        span_s=span_s,
        summary=f"What the GPU computes and the network carries in a step: {method.what}",
    )


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)} tensors)"
