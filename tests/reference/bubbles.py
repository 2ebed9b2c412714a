"""Closed forms: how long a step of equal stages takes, and what of it is bubble.

p devices, m micro-batches; F, B, W seconds of a device's forward pass, gradients of inputs and gradients of weights
of one micro-batch, over all pieces that it holds. Hand-overs take no time.
"""

from __future__ import annotations


def flush_makespan(p: int, m: int, forward: float, backward: float) -> float:
    """GPipe and 1F1B alike: early backward passes bound memory, they do not shorten a balanced step."""
    return (m + p - 1) * (forward + backward)


def flush_bubble_share(p: int, m: int) -> float:
    """The share of a step of GPipe or 1F1B in which a device idles."""
    return (p - 1) / (m + p - 1)


def interleaved_makespan(p: int, m: int, pieces_each: int, forward: float, backward: float) -> float:
    """1F1B over v chunks per device, m a multiple of p: the bubble is (p - 1) / (v m) of the time without one."""
    return (m + (p - 1) / pieces_each) * (forward + backward)


def zero_bubble_h1_bubble(p: int, forward: float, backward: float, weight: float) -> float:
    """Seconds of bubble in a step of ZB-H1, for m >= p and W <= B."""
    return (p - 1) * (forward + backward - weight)


def zero_bubble_h2_bubble(p: int, forward: float, backward: float, weight: float) -> float:
    """Seconds of bubble in the longest span of a device in ZB-H2, for m >= 2p - 1, W <= B and 2W <= F + B."""
    return (p - 1) * (forward + backward - 2 * weight)


def dual_pipe_bubble(p: int, both: float, whole_backward: float, weight: float) -> float:
    """Seconds of bubble in a step of DualPipe as published; `both` is a forward and a backward pass side by side.

    DeepSeek-V3 technical report, 2024, table 2, where `whole_backward` includes the gradients of weights.
    """
    return (p / 2 - 1) * (both + whole_backward - 3 * weight)
