"""The traces that were written of a program, read again: the nodes that a replay needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ropewalk.documents import read_bytes
from ropewalk.documents.limits import MOST_OF_A_TRACE
from ropewalk.errors import GraphError
from ropewalk.export.chakra import names
from ropewalk.export.chakra.chunk_runs import runs_numbers
from ropewalk.export.chakra.load import TraceFindings
from ropewalk.export.chakra.schema import Node, Value, decode_metadata, decode_node
from ropewalk.export.chakra.wire import WireError, records
from ropewalk.export.chakra.write import rank_files


@dataclass(frozen=True)
class ProgramTrace:
    """The traces of all ranks of a program, with what each rank brings and wants."""

    name: str
    chunks: int
    buffer_chunks: int
    nodes: tuple[dict[int, Node], ...]
    holds: tuple[tuple[int, ...], ...]
    wants: tuple[tuple[int, ...], ...]

    @property
    def ranks(self) -> int:
        return len(self.nodes)


def read_program_trace(prefix: str | Path) -> ProgramTrace:
    """Read PREFIX.<rank>.et as `write_program` writes them."""
    findings = TraceFindings(Path(prefix))
    files = rank_files(Path(prefix))
    if [rank for rank, _ in files] != list(range(len(files))) or not files:
        findings.add("there is not one file for each rank from 0 on: give the path up to the dot before the rank")
        findings.raise_if_any()
    return decode_program([read_bytes(path, path.name, GraphError, MOST_OF_A_TRACE) for _, path in files], findings)


def decode_program(traces: list[bytes], findings: TraceFindings | None = None) -> ProgramTrace:
    """The same from the bytes of the files, ranks in order."""
    found = TraceFindings(Path("in memory")) if findings is None else findings
    loaded = [_decoded(rank, data, found) for rank, data in enumerate(traces)]
    found.raise_if_any()
    about = loaded[0][0]
    chunks, buffer_chunks = about.get(names.PROGRAM_CHUNKS), about.get(names.BUFFER_CHUNKS)
    if not isinstance(chunks, int) or not isinstance(buffer_chunks, int):
        raise GraphError(f"{found.subject}: is not a trace of a program: write it with write_program")
    if about.get(names.RANKS) != len(traces):
        found.add(
            f"the files are of {about.get(names.RANKS)!r} ranks, but there are {len(traces)}: add the missing ones"
        )
    sets = {key: [_chunks(rank, own, key, chunks, found) for rank, (own, _) in enumerate(loaded)]
            for key in (names.HOLDS, names.WANTS)}  # fmt: skip
    found.raise_if_any()
    nodes = tuple(own for _, own in loaded)
    holds, wants = (tuple(sets[key]) for key in (names.HOLDS, names.WANTS))
    return ProgramTrace(str(about.get(names.PROGRAM, "program")), chunks, buffer_chunks, nodes, holds, wants)


def _decoded(rank: int, data: bytes, findings: TraceFindings) -> tuple[dict[str, Value], dict[int, Node]]:
    try:
        first, *rest = records(data) or [b""]
        nodes = [decode_node(message) for message in rest]
        return decode_metadata(first), {node.id: node for node in nodes}
    except WireError as problem:
        findings.add(f"rank {rank} cannot be read: {problem}; write it again")
        return {}, {}


def _chunks(
    rank: int, attributes: dict[str, Value], key: str, most: int, findings: TraceFindings
) -> tuple[int, ...]:  # fmt: skip
    text = attributes.get(key)
    numbers = runs_numbers(text, most) if isinstance(text, str) else None
    if numbers is None:
        findings.add(f"rank {rank}: {key} is {text!r}: write chunks below {most}, such as 0-3,8")
    return tuple(numbers or ())


def chunks_of(trace: ProgramTrace, rank: int, node: Node) -> tuple[int, ...]:
    """The chunks that a send or receive moves."""
    findings = TraceFindings(Path(trace.name))
    found = _chunks(rank, node.attributes, names.CHUNKS, trace.chunks, findings)
    findings.raise_if_any()
    return found
