"""Why a step takes as long as it does, in sentences for the screen and for the page."""

from __future__ import annotations

import numpy as np

from ropewalk.report import quantity
from ropewalk.sim.step import StepStatistics

NOTICEABLE = 0.005
"""Parts of a step below this are not worth a word."""

UNEVEN = 0.03
"""A GPU that computes longer than the median one by this part is worth a word."""

PURPOSE_WORDS = {
    "tensor": "tensor-parallel communication",
    "data": "the all-reduce of gradients",
    "pipeline": "transfers between layers on different GPUs",
    "expert": "the dispatch and combination of tokens",
    "zero": "the all-gather and reduce-scatter of sharded weights",
    "context": "the exchange of keys and values",
    "tables": "the exchange of embedding rows",
}


def purpose_in_words(purpose: str) -> str:
    return PURPOSE_WORDS.get(purpose, f"communication on stream {purpose}")


def reason(found: StepStatistics) -> str:
    """`61 % of the step is compute. 12 % waits for tensor-parallel communication that nothing hides. …`"""
    if found.step_time_s <= 0:
        return "Nothing in this step takes any time."
    sentences = [f"{_part(found, found.compute_s)} of the step is compute."]
    exposed = _exposed_in_words(found)
    if exposed:
        sentences.append(exposed)
    if found.bubble_s >= NOTICEABLE * found.step_time_s:
        sentences.append(f"{_part(found, found.bubble_s)} is bubble: GPUs wait with nothing in flight.")
        sentences += _slowest_in_words(found)
    return " ".join(sentences)


def _slowest_in_words(found: StepStatistics) -> list[str]:
    """The GPU that others may be waiting for, where one computes clearly longer than most."""
    compute = found.times.compute_s
    usual, slowest = float(np.median(compute)), int(np.argmax(compute))
    if usual <= 0 or compute[slowest] < usual * (1 + UNEVEN):
        return []
    longer = quantity.percent(float(compute[slowest]) / usual - 1)
    return [f"The slowest GPU, {slowest}, computes {longer} longer than the median one."]


def _exposed_in_words(found: StepStatistics) -> str:
    worth = [
        (purpose, seconds)
        for purpose, seconds in found.exposed_by_purpose_s.items()
        if seconds >= NOTICEABLE * found.step_time_s
    ]
    hidden = found.communication_s - found.exposed_communication_s
    if not worth:
        if hidden >= NOTICEABLE * found.step_time_s:
            return f"Communication takes {_part(found, found.communication_s)} of it and is hidden behind compute."
        return ""
    parts = [f"{_part(found, seconds)} waits for {purpose_in_words(purpose)}" for purpose, seconds in worth[:3]]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    rest = (
        f"; another {_part(found, hidden)} of communication is hidden behind compute"
        if hidden > 0.01 * found.step_time_s
        else ""
    )
    return f"{listed}{rest}."


def bottleneck_in_words(found: StepStatistics) -> str:
    """What the network has to do with it."""
    worst = found.bottleneck
    if worst is None:
        return "Nothing crosses a link."
    name = worst.name.replace("->", " → ")
    if worst.held_s > 0:
        return (
            f"Link {name} delays the critical path by {quantity.seconds(worst.held_s)}, more than any other; "
            f"its average utilisation is {quantity.percent(worst.utilisation)}."
        )
    return (
        f"No link delays the critical path; the most utilised link is {name}, at {quantity.percent(worst.utilisation)}."
    )


def _part(found: StepStatistics, seconds: float) -> str:
    return quantity.percent(seconds / found.step_time_s)
