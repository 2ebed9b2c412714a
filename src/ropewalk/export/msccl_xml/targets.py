"""What the libraries that load MSCCL files have room for."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import ProgramError
from ropewalk.export.msccl_xml.algo import NOBODY, Algo, XmlGpu

REMEDY = "use fewer segments, or a forest with a fixed, small number of trees, or fewer peers for each rank"


@dataclass(frozen=True)
class LibraryLimits:
    """Limits of one library; each of them makes it refuse a whole file, or worse, read beyond an array."""

    name: str
    steps: int
    """Steps of a thread block, waits included."""
    blocks: int
    """Thread blocks of a GPU."""
    blocks_per_channel: int
    """Thread blocks of a GPU that send, or that receive, over one channel."""
    channels: int = 32
    count: int = 71
    """Chunks that one step moves."""
    nodes: int = 4096
    """XML elements that a rank keeps: the file, all GPUs, its own thread blocks and steps."""
    offset: int = 32767
    """Offsets are 16-bit numbers."""
    waited_for: int = 127
    """Thread blocks that others wait for are named by 8-bit numbers."""


TARGETS = {
    target.name: target
    for target in (
        LibraryLimits("rccl", steps=64, blocks=64, blocks_per_channel=32),
        LibraryLimits("executor", steps=64, blocks=32 * 32, blocks_per_channel=32),
        LibraryLimits("msccl", steps=256, blocks=216, blocks_per_channel=32),
    )
}
"""rccl: RCCL up to ROCm 7.12; executor: msccl-executor-nccl as it is built by default; msccl: the original fork of
NCCL 2.12."""


def target_named(name: str) -> LibraryLimits:
    if name not in TARGETS:
        raise ProgramError(f"target {name!r} is not known: give one of {', '.join(TARGETS)}")
    return TARGETS[name]


def excess(algo: Algo, target: LibraryLimits) -> str | None:
    """The first thing of an algorithm for which a target has no room, in words; None where all fits."""
    if algo.channels > target.channels:
        return f"it needs {algo.channels} channels, {target.name} has {target.channels}"
    return next(
        (found for rank, gpu in enumerate(algo.gpus) if (found := _excess_of_gpu(algo, rank, gpu, target))), None
    )


def _excess_of_gpu(algo: Algo, rank: int, gpu: XmlGpu, target: LibraryLimits) -> str | None:
    whose = f"of rank {rank}"
    if len(gpu.blocks) > target.blocks:
        return f"{len(gpu.blocks)} thread blocks {whose} are more than the {target.blocks} of {target.name}"
    nodes = 1 + len(algo.gpus) + len(gpu.blocks) + sum(len(block.steps) for block in gpu.blocks)
    if nodes > target.nodes:
        return f"{nodes} XML elements {whose} are more than the {target.nodes} of {target.name}"
    if max(gpu.inputs, gpu.outputs, gpu.scratch) > target.offset + 1:
        return f"buffers {whose} have more than the {target.offset + 1} chunks of {target.name}"
    users: dict[tuple[int, bool], int] = {}
    for number, block in enumerate(gpu.blocks):
        if len(block.steps) > target.steps:
            return f"thread block {number} {whose} has {len(block.steps)} steps, {target.name} room for {target.steps}"
        for step in block.steps:
            if step.count > target.count:
                return f"a step {whose} moves {step.count} chunks, {target.name} at most {target.count}"
            if step.waits is not None and step.waits[0] > target.waited_for:
                return f"thread block {step.waits[0]} {whose} is waited for; {target.name} waits for 0…127"
        for peer, sends in ((block.send, True), (block.recv, False)):
            if peer != NOBODY:
                users[block.channel, sends] = users.get((block.channel, sends), 0) + 1
    if users and max(users.values()) > target.blocks_per_channel:
        return f"{max(users.values())} thread blocks {whose} share a channel, {target.blocks_per_channel} may"
    return None
