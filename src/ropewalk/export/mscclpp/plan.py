"""An MSCCL++ execution plan: what its JSON file says, as records.

Thread blocks name channels and remote buffers by their position in lists of their own, which point into the lists of
their GPU; the k-th channel that a rank has to a peer is the other end of the k-th channel of its kind that the peer has
to it. A channel carries signals both ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MEMORY, PORT = "memory", "port"
CHANNEL_TYPES = (MEMORY, PORT)

# What the executor's records have room for.
MOST_OPERATIONS = 64
"""Operations of a thread block."""
MOST_CHANNELS = 16
"""Channels of one type, and remote buffers reached by one type of channel, of a thread block."""
MOST_PER_OPERATION = 8
"""Channels or remote buffers in one operation."""
MOST_SEMAPHORES_PER_OPERATION = 16
ALIGNMENT = 16
"""Bytes; chunks begin and end at multiples of it."""
MOST_BYTES = (1 << 32) - 1
"""Offsets into a buffer are 32-bit numbers."""
MOST_SIZE = (1 << 64) - 1


@dataclass(frozen=True)
class ChunkSpan:
    """Neighbouring chunks of a local buffer (i, o, s) or of a remote buffer of the thread block."""

    index: int
    size: int
    buffer: str | None = None
    remote: int | None = None


@dataclass(frozen=True)
class Operation:
    """One operation of a thread block."""

    name: str
    src: tuple[ChunkSpan, ...] = ()
    dst: tuple[ChunkSpan, ...] = ()
    channel_type: str | None = None
    channels: tuple[int, ...] = ()
    semaphores: tuple[int, ...] = ()
    barrier: int | None = None
    parties: int = 0


@dataclass(frozen=True)
class RemoteBuffer:
    """A buffer of another rank, and by which types of channel it is reached."""

    rank: int
    buffer: str
    access: tuple[str, ...]


@dataclass(frozen=True)
class ThreadBlock:
    operations: tuple[Operation, ...]
    channels: dict[str, tuple[int, ...]]
    """For each type, the channels of the GPU (counted by type) that it uses."""
    remote_buffers: dict[str, tuple[int, ...]]
    """For each type of channel, the remote buffers of the GPU that it reaches by it."""


@dataclass(frozen=True)
class Gpu:
    inputs: int
    outputs: int
    scratch: int
    blocks: tuple[ThreadBlock, ...]
    channels: dict[str, tuple[int, ...]]
    """For each type, the peer of each channel."""
    remote_buffers: tuple[RemoteBuffer, ...] = ()
    semaphores: tuple[int, ...] = ()
    """Initial values."""


@dataclass(frozen=True)
class MscclppPlan:
    name: str
    collective: str
    inplace: bool
    gpus: tuple[Gpu, ...]
    protocol: str = "Simple"
    threads_per_block: int = 1024
    alignment: int = ALIGNMENT
    min_message_size: int = 0
    max_message_size: int = MOST_SIZE
    reuse_resources: bool = False
    double_scratch: bool = field(default=False)
