"""Algorithms as XML text, and programs as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ropewalk.collectives.program import Program
from ropewalk.errors import ProgramError
from ropewalk.export.msccl_xml.algo import Algo, XmlStep
from ropewalk.export.msccl_xml.build import algo_of_moves
from ropewalk.export.msccl_xml.targets import target_named
from ropewalk.export.threadblocks.layout import layout_of
from ropewalk.export.threadblocks.moves import moves_of
from ropewalk.files import write_whole

LONGEST_NAME = 255
PROTOCOLS = ("Simple", "LL", "LL128")


def write_msccl_xml(
    program: Program,
    path: str | Path,
    *,
    collective: str,
    name: str | None = None,
    protocol: str = "Simple",
    target: str = "rccl",
    min_bytes: int = 0,
    max_bytes: int = 0,
) -> Algo:
    """Write a program as the XML file that MSCCL and its successors load; see `algo_of`."""
    algo = algo_of(
        program,
        collective=collective,
        name=name,
        protocol=protocol,
        target=target,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
    )
    write_whole(path, algo_text(algo))
    return algo


def algo_of(
    program: Program,
    *,
    collective: str,
    name: str | None = None,
    protocol: str = "Simple",
    target: str = "rccl",
    min_bytes: int = 0,
    max_bytes: int = 0,
) -> Algo:
    """The algorithm of a program, within the limits of a target (rccl, executor or msccl).

    It serves out of place and, except for an all-to-all, in place. `max_bytes` 0 means no limit.
    """
    title = name or f"{program.name} over {program.ranks} ranks"
    if len(title) > LONGEST_NAME:
        raise ProgramError(f"the algorithm's name has {len(title)} characters: give one of {LONGEST_NAME} or fewer")
    if protocol not in PROTOCOLS:
        raise ProgramError(f"protocol {protocol!r} is not known: give one of {', '.join(PROTOCOLS)}")
    if min_bytes < 0 or max_bytes < 0 or (max_bytes and min_bytes > max_bytes):
        raise ProgramError(f"sizes from {min_bytes} to {max_bytes} bytes leave none: raise the largest, or give 0")
    layout = layout_of(program, collective)
    moves = moves_of(program, layout)
    algo = algo_of_moves(moves, title, collective != "alltoall", True, target_named(target))
    return Algo(
        algo.name,
        algo.collective,
        algo.chunks,
        algo.channels,
        algo.gpus,
        algo.inplace,
        algo.outofplace,
        protocol,
        min_bytes,
        max_bytes,
    )


def algo_text(algo: Algo) -> str:
    """The file of an algorithm, one step a line."""
    head = {
        "name": algo.name,
        "proto": algo.protocol,
        "nchannels": algo.channels,
        "nchunksperloop": algo.chunks,
        "ngpus": len(algo.gpus),
        "coll": algo.collective,
        "inplace": int(algo.inplace),
        "outofplace": int(algo.outofplace),
        "minBytes": algo.min_bytes,
        "maxBytes": algo.max_bytes,
    }
    lines = [f"<algo {_attributes(head)}>"]
    for rank, gpu in enumerate(algo.gpus):
        sizes = {"id": rank, "i_chunks": gpu.inputs, "o_chunks": gpu.outputs, "s_chunks": gpu.scratch}
        lines.append(f"  <gpu {_attributes(sizes)}>")
        for number, block in enumerate(gpu.blocks):
            ends = {"id": number, "send": block.send, "recv": block.recv, "chan": block.channel}
            lines.append(f"    <tb {_attributes(ends)}>")
            lines.extend(f"      <step {_attributes(_step(place, step))}/>" for place, step in enumerate(block.steps))
            lines.append("    </tb>")
        lines.append("  </gpu>")
    lines.append("</algo>")
    return "\n".join(lines) + "\n"


def _step(place: int, step: XmlStep) -> dict[str, object]:
    block, number = step.waits if step.waits is not None else (-1, -1)
    return {
        "s": place,
        "type": step.kind,
        "srcbuf": step.src[0],
        "srcoff": step.src[1],
        "dstbuf": step.dst[0],
        "dstoff": step.dst[1],
        "cnt": step.count,
        "depid": block,
        "deps": number,
        "hasdep": int(step.heard),
    }


def _attributes(values: Mapping[str, object]) -> str:
    return " ".join(f"{key}={quoteattr(str(value))}" for key, value in values.items())
