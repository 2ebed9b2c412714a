"""Files of a synthesised schedule: which ending means which format, and what each is proved by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk.errors import InputError, ProofError

if TYPE_CHECKING:
    from ropewalk.collectives.schedule import Schedule
    from ropewalk.synthesis import CollectiveAnswer, CollectiveQuestion

MOST_SEGMENTS = 8
"""Segments of a file unless given: every segment is written out, and libraries have little room."""


_NO_SCHEDULE = "there is no schedule to write or run with in-network multicast: leave --in-network out"


def written_schedule(answer: CollectiveAnswer, segments: int | None) -> Schedule:
    """The schedule as hosts can run it: relays that forward are ranks."""
    if answer.made is None:
        raise InputError(_NO_SCHEDULE)
    return answer.made.schedule(segments or min(answer.segments, MOST_SEGMENTS), runnable=True)


Writer = Callable[["CollectiveAnswer", Path, "int | None"], list[str]]
"""Writes a schedule, cut into segments where a number is given; lines that say what was written and proved."""


@dataclass(frozen=True)
class ScheduleFormat:
    """A kind of file that a schedule is written as."""

    write: Writer
    missing: Callable[[CollectiveQuestion], str | None] = lambda question: None
    """Why the answer to a question cannot be written like this; None where it can."""
    only_members: bool = False
    """Whether all ranks of the file bring and get data, so that nobody can just forward."""


def export_schedule(answer: CollectiveAnswer, paths: Sequence[Path], segments: int | None) -> list[str]:
    """Write the schedule in the formats that the endings name; lines that say what was written and proved."""
    crowded = [path for path in paths if format_of(path).only_members]
    if crowded and written_schedule(answer, segments).program.ranks > answer.ranks:
        raise InputError(
            f"{crowded[0]}: hosts outside the group forward data in this schedule, which this format cannot express: "
            "add --method best-ring, or write Chakra traces (.et)"
        )
    return [line for path in paths for line in format_of(path).write(answer, path, segments)]


def format_of(path: Path) -> ScheduleFormat:
    """The format that the ending names."""
    name = path.name.lower()
    ending = next((ending for ending in FORMATS if name.endswith(ending)), None)
    if ending is None:
        known = ", ".join(FORMATS)
        raise InputError(f"{path} has an unknown extension: use one of {known}")
    return FORMATS[ending]


def check_exports(question: CollectiveQuestion, paths: Sequence[Path], *, run: bool) -> None:
    """Refuse before the work begins what could not be written or run after it."""
    if question.in_network and (paths or run):
        raise InputError(_NO_SCHEDULE)
    for path in paths:
        reason = format_of(path).missing(question)
        if reason is not None:
            raise InputError(f"{path}: {reason}")
        if path.suffix.lower() == ".et" and path.with_suffix(".json") in paths:
            groups = path.with_suffix(".json")
            raise InputError(
                f"{path} is written together with {groups}, which holds its rank groups: choose another "
                "name for the plan"
            )


def _root_rank(answer: CollectiveAnswer) -> int | None:
    """The rank of the root, which files do not name, so that a proof could take any for it; None without a root."""
    from ropewalk.synthesis.question import ROOTED

    if answer.question.collective not in ROOTED:
        return None
    return [int(host) for host in answer.network.members].index(answer.question.root_host)


def _mscclpp(answer: CollectiveAnswer, path: Path, segments: int | None) -> list[str]:
    from ropewalk.export.mscclpp import prove_plan, read_mscclpp, write_mscclpp

    schedule = written_schedule(answer, segments)
    server = answer.fabric.server
    hosts = schedule.hosts.tolist()

    def channel(src: int, dst: int) -> str:
        same = server is None or server[hosts[src]] == server[hosts[dst]]
        return "memory" if same else "port"

    write_mscclpp(schedule.program, path, collective=answer.question.collective, channel=channel)
    prove_plan(read_mscclpp(path), _root_rank(answer))
    return [f"MSCCL++ plan: {path} (read back and proved)"]


def _msccl(answer: CollectiveAnswer, path: Path, segments: int | None) -> list[str]:
    from ropewalk.export.msccl_xml import prove_algo, read_msccl_xml, write_msccl_xml

    write_msccl_xml(written_schedule(answer, segments).program, path, collective=answer.question.collective)
    prove_algo(read_msccl_xml(path), root=_root_rank(answer))
    return [f"MSCCL algorithm: {path} (read back and proved)"]


def _chakra(answer: CollectiveAnswer, path: Path, segments: int | None) -> list[str]:
    from ropewalk.export.chakra import read_program_trace, replay, write_program

    prefix = path.with_suffix("")
    schedule, asked = written_schedule(answer, segments), answer.question
    files = write_program(schedule, float(asked.size_bytes), prefix, mixer=asked.mixer)
    replay(read_program_trace(prefix))
    return [f"Chakra traces: {files[0]} and {len(files) - 1} more files (read back and proved)"]


def _ring_graph(answer: CollectiveAnswer, path: Path, segments: int | None) -> list[str]:
    from ropewalk.export.nccl import (
        channel_speed,
        graph_advice,
        orders_of,
        read_ring_graph,
        ring_graphs,
        ring_orders,
        write_ring_graphs,
    )

    schedule = written_schedule(answer, segments)
    orders = ring_orders(schedule.program)
    fabric = answer.fabric
    servers = None if fabric.server is None else [int(fabric.server[host]) for host in schedule.hosts]
    several = servers is not None and len(set(servers)) > 1
    ports = [servers[:rank].count(servers[rank]) for rank in range(len(servers))] if several and servers else None
    speed = channel_speed(schedule, orders)
    written = write_ring_graphs(ring_graphs(orders, servers if several else None, ports, speed_intra=speed), path)
    found = orders_of([read_ring_graph(one) for one in written])
    if [_from_rank_0(order) for order in found] != [_from_rank_0(order) for order in orders]:
        raise ProofError(f"{path}: the rings read back differ from the schedule's")
    return [f"NCCL graph: {', '.join(map(str, written))} (read back)", *graph_advice(written[0], len(orders))]


def _from_rank_0(order: Sequence[int]) -> list[int]:
    """A ring as a list that begins with rank 0, wherever the ring was cut open."""
    first = list(order).index(0)
    return [*order[first:], *order[:first]]


def _tuner(answer: CollectiveAnswer, path: Path, segments: int | None) -> list[str]:
    from ropewalk.export.nccl import algorithm_advice, read_tuner, tuner_advice, tuner_rows, write_tuner

    names = {"best-ring": ("ring", "simple"), "double-tree": ("tree", "simple")}
    samples = {
        row.size_bytes: {choice: row.all_seconds[name] for name, choice in names.items() if name in row.all_seconds}
        for row in answer.by_size
    }
    if not all(samples.values()):
        raise InputError(
            f"{path}: neither rings nor trees fit this group, and NCCL's tuner chooses between them: leave it out"
        )
    rows = tuner_rows(answer.question.collective, samples, ranks=answer.ranks)
    write_tuner(rows, path)
    if read_tuner(path) != rows:
        raise ProofError(f"{path}: the table read back differs from the one written")
    alone = " ".join(algorithm_advice(rows))
    return [f"NCCL tuner: {path} (read back)", *tuner_advice(path), f"without the plugin, for all sizes: {alone}"]


def _only_rings(question: CollectiveQuestion) -> str | None:
    if question.collective in ("broadcast", "reduce"):
        return f"a {question.collective} takes open rings, and NCCL's graph files hold closed ones: ask for allreduce"
    rings = ("best-ring", "ring", "ring-one-way", "double-ring")
    return None if question.method in rings else "NCCL's graph files hold rings only: add --method best-ring"


def _times_by_size(question: CollectiveQuestion) -> str | None:
    if question.collective == "alltoall":
        return "NCCL has one algorithm for all-to-all, so there is nothing to tune: leave the table out"
    if question.compare and question.sizes:
        return None
    return "a tuner's table needs times by size: leave --no-compare out and give --sizes"


FORMATS: dict[str, ScheduleFormat] = {
    ".graph.xml": ScheduleFormat(_ring_graph, _only_rings),
    ".json": ScheduleFormat(_mscclpp, only_members=True),
    ".xml": ScheduleFormat(_msccl, only_members=True),
    ".et": ScheduleFormat(_chakra),
    ".csv": ScheduleFormat(_tuner, _times_by_size),
}
"""What each ending stands for; the first that fits counts."""
