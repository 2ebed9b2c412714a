"""An MSCCL algorithm: what its XML file says, as records.

A thread block sends to one peer and receives from one peer, over one channel; what two ranks exchange over a channel
arrives in the order in which it was sent. A step may wait for a step of another thread block of its GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

NOBODY = -1

SENDING = ("s", "rcs", "rrs", "rrcs")
RECEIVING = ("r", "rcs", "rrs", "rrc", "rrcs")
STEPS = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")


@dataclass(frozen=True)
class XmlStep:
    """One instruction: offsets and count are in chunks of the buffers i, o and s."""

    kind: str
    src: tuple[str, int]
    dst: tuple[str, int]
    count: int
    waits: tuple[int, int] | None = None
    """(thread block, step) that must be over before."""
    heard: bool = False
    """Some other thread block waits for it."""


@dataclass(frozen=True)
class XmlThreadBlock:
    send: int
    recv: int
    channel: int
    steps: tuple[XmlStep, ...]


@dataclass(frozen=True)
class XmlGpu:
    inputs: int
    outputs: int
    scratch: int
    blocks: tuple[XmlThreadBlock, ...]


@dataclass(frozen=True)
class Algo:
    name: str
    collective: str
    chunks: int
    """Chunks of the larger of the two buffers: what the message is divided by."""
    channels: int
    gpus: tuple[XmlGpu, ...]
    inplace: bool
    outofplace: bool
    protocol: str = "Simple"
    min_bytes: int = 0
    max_bytes: int = 0
    """0 stands for no limit."""
