"""Seconds of the GPU beside seconds of the host that launches its work."""

from __future__ import annotations

from dataclasses import dataclass

OVERLAP = 3.0
"""How well launching and computing hide behind each other: times add up in this norm (1: not at all, ∞: fully)."""


@dataclass(frozen=True)
class Work:
    """A stretch of work: seconds of the GPU and seconds of the host, which mostly run at the same time."""

    gpu_s: float = 0.0
    host_s: float = 0.0
    waiting_s: float = 0.0
    """Seconds in which the GPU waits for one launch after another; neither side's other work hides them."""

    def __add__(self, other: Work) -> Work:
        return Work(self.gpu_s + other.gpu_s, self.host_s + other.host_s, self.waiting_s + other.waiting_s)

    @property
    def seconds(self) -> float:
        longest = max(self.gpu_s, self.host_s)
        if longest == 0:
            return self.waiting_s
        shares = (self.gpu_s / longest) ** OVERLAP + (self.host_s / longest) ** OVERLAP
        return float(longest * shares ** (1 / OVERLAP)) + self.waiting_s
