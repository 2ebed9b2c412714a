"""Programs as MSCCL++ plans and their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ropewalk.collectives.program import Program
from ropewalk.errors import ProgramError
from ropewalk.export.mscclpp.build import gpus_of
from ropewalk.export.mscclpp.plan import ALIGNMENT, MEMORY, MOST_BYTES, Gpu, MscclppPlan
from ropewalk.export.mscclpp.write import plan_text
from ropewalk.export.threadblocks.layout import layout_of
from ropewalk.export.threadblocks.moves import moves_of
from ropewalk.files import write_whole

MOST_BLOCKS = 108
"""Thread blocks that certainly run at the same time: one for each multiprocessor of an A100. They wait for each other,
so a plan with more of them could hang on a GPU that starts some only when others have ended."""


def write_mscclpp(
    program: Program,
    path: str | Path,
    *,
    collective: str,
    name: str | None = None,
    protocol: str = "Simple",
    inplace: bool = False,
    min_message_size: int | None = None,
    max_message_size: int | None = None,
    channel: str | Callable[[int, int], str] = MEMORY,
    most_blocks: int = MOST_BLOCKS,
) -> MscclppPlan:
    """Write the plan of a program as the JSON file that MSCCL++ loads; see `plan_of`."""
    plan = plan_of(
        program,
        collective=collective,
        name=name,
        protocol=protocol,
        inplace=inplace,
        min_message_size=min_message_size,
        max_message_size=max_message_size,
        channel=channel,
        most_blocks=most_blocks,
    )
    write_whole(path, plan_text(plan))
    return plan


def plan_of(
    program: Program,
    *,
    collective: str,
    name: str | None = None,
    protocol: str = "Simple",
    inplace: bool = False,
    min_message_size: int | None = None,
    max_message_size: int | None = None,
    channel: str | Callable[[int, int], str] = MEMORY,
    most_blocks: int = MOST_BLOCKS,
) -> MscclppPlan:
    """The plan of a program. `channel` is memory (peers share an address space), port (an adapter copies), or a
    function that chooses between them for (source, destination), by server for instance."""
    if protocol != "Simple":
        raise ProgramError(f"protocol {protocol!r}: plans are written for Simple only: leave the protocol out")
    layout = layout_of(program, collective)
    if inplace and collective == "alltoall":
        raise ProgramError("an all-to-all in place would overwrite what is still to be sent: write it out of place")
    moves = moves_of(program, layout)
    gpus = gpus_of(moves, _chooser(channel), inplace, most_blocks)
    smallest, largest = _sizes(gpus, collective, min_message_size, max_message_size)
    return MscclppPlan(
        name or f"{program.name} over {program.ranks} ranks",
        collective,
        inplace,
        gpus,
        min_message_size=smallest,
        max_message_size=largest,
    )


def _chooser(channel: str | Callable[[int, int], str]) -> Callable[[int, int], str]:
    if isinstance(channel, str):
        fixed = channel
        return lambda _src, _dst: fixed
    return channel


def _sizes(gpus: tuple[Gpu, ...], collective: str, low: int | None, high: int | None) -> tuple[int, int]:
    """Message sizes for which the plan may be chosen; the executor counts the larger buffer of an all-gather."""
    chunks = gpus[0].outputs if collective == "allgather" else gpus[0].inputs
    largest_buffer = max(max(gpu.inputs, gpu.outputs, gpu.scratch) for gpu in gpus)
    most = MOST_BYTES // largest_buffer // ALIGNMENT * ALIGNMENT * chunks
    smallest = ALIGNMENT * chunks if low is None else low
    largest = most if high is None else high
    if largest > most:
        raise ProgramError(
            f"messages of up to {largest} bytes need a buffer of {largest // chunks * largest_buffer} bytes, but the "
            f"executor's offsets have 32 bits: set the largest message size to {most} or less, or use fewer segments"
        )
    if not 0 <= smallest <= largest:
        raise ProgramError(
            f"message sizes from {smallest} to {largest} bytes leave none: raise the largest, or use fewer segments"
        )
    return smallest, largest
