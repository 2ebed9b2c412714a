"""How tokens find their experts on other ranks: as NCCL sends them, or once to each place that has some of them.

NCCL's all-to-all sends a copy of a token for each expert it goes to. DeepEP and HybridEP send it once to every place
that holds any of these experts and copy it there: over NICs a place is an NVLink domain, inside which the token is
passed on over NVLink while others arrive; inside one domain a place is a GPU. (DeepSeek-V3 Technical Report, 2024,
section 3.2.2; github.com/deepseek-ai/DeepEP.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from ropewalk.choices import Choice, Choices
from ropewalk.errors import WorkloadError


@dataclass(frozen=True)
class Dispatcher:
    """How it sends tokens."""

    once: bool = False
    """Once to each place that has some of their experts."""
    weighed: bool = False
    """With a float32 for each expert of the place's domain: what it weighs there, and its gradient on the way back."""


DISPATCHES = Choices(
    "dispatcher",
    (
        Choice("nccl", Dispatcher(), "NCCL's all-to-all: one copy of a token per expert"),
        Choice("deepep", Dispatcher(once=True), "DeepEP: a token once to each server or GPU that has its experts"),
        Choice(
            "hybridep", Dispatcher(once=True, weighed=True),
            "HybridEP: the same, each with the weights of all experts of an NVLink domain",
        ),
    ),
    error=WorkloadError,
)  # fmt: skip
"""Every dispatcher, by name."""
NCCL = "nccl"
DOMAIN = 8
"""GPUs that NVLink joins, unless told otherwise: those of a server."""


PASSED_ON = 5.0
"""Bytes that a GPU passes on over NVLink in the time in which its NIC brings one: between two servers of H100 that is
what holds HybridEP back, 233 GB/s of dispatching and 205 GB/s of combining (docs/README_Hybrid-EP.md, 16 ranks on 16
multiprocessors; a token of theirs reaches 6.5 GPUs), where a NIC of 400 Gbps brings 43.5 GB/s."""


def reached(places: int, experts: int, choices: int) -> float:
    """Places that a token reaches on average, if it goes to `choices` of `experts` that are spread evenly over them.

    >>> reached(4, 4, 1), round(reached(2, 128, 8), 3), round(reached(8, 256, 8), 2)
    (1.0, 1.994, 5.29)
    """
    elsewhere = experts - experts // places
    return places * (1 - comb(elsewhere, choices) / comb(experts, choices))


def sent_once(ranks: int, together: int, experts: int, choices: int, most: float = 1.0) -> float:
    """Bytes that a rank sends if tokens go once to each place, against one copy for each expert.

    Experts are spread over `ranks`, of which NVLink joins `together`. `most` is the largest part of all places that a
    token may reach, where routers limit it (DeepSeek-V3: half of them).

    Where NICs bring so little that GPUs need longer to pass it on inside their domains, that is what counts
    (`PASSED_ON`).

    >>> round(sent_once(16, 8, 128, 8), 2), round(sent_once(64, 8, 256, 8, 0.5), 2), round(sent_once(8, 8, 128, 8), 2)
    (0.33, 0.5, 0.67)
    """
    places = ranks if ranks <= together else -(-ranks // together)
    found = reached(places, max(experts, places), choices)
    if places == ranks:
        return found / choices
    copies = reached(ranks, max(experts, ranks), choices) / (PASSED_ON * (1 - 1 / places))
    return max(min(found, max(1.0, most * places)), copies) / choices
