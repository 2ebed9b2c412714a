"""How the ranks that share a sequence meet in attention, where a token looks at tokens of other ranks."""

from __future__ import annotations

from ropewalk.choices import Choice, Choices
from ropewalk.errors import StrategyError
from ropewalk.workload.operator import GATHER, RING, ULYSSES

EXCHANGES = Choices(
    "context-exchange",
    (
        Choice(GATHER, GATHER, "keys and values of all parts are gathered before attention", where="attention"),
        Choice(
            RING, RING, "keys and values pass around a ring while attention runs on those already received",
            where="fused attention without windows",
        ),
        Choice(
            ULYSSES, ULYSSES, "all-to-alls give every rank some heads of the whole sequence, and back",
            where="fused attention with enough heads",
        ),
    ),
    error=StrategyError,
)  # fmt: skip
"""Every exchange, by name: Llama 3 (2024), section 3.3.2; Liu et al., Ring Attention (2023); Jacobs et al., DeepSpeed
Ulysses (2023)."""
