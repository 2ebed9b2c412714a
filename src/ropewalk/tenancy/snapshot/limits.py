"""How large a snapshot may be: transfers that are written out, events of a packet-level run; and remedies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ropewalk.errors import ClusterError
from ropewalk.sim.level import LevelUse, WireFormat, expected_events, wire_format
from ropewalk.task import TaskKind
from ropewalk.tenancy.snapshot.question import SnapshotQuestion, iterations_of
from ropewalk.tenancy.snapshot.tasks import Together, transfers_of
from ropewalk.tenancy.snapshot.tenant import Moment

MOST_TRANSFERS = 5_000_000
SCALES = tuple(digit * 10.0**-power for power in range(1, 7) for digit in (5, 2, 1))
MOST_NAMES = 6


def refuse_too_many_transfers(moment: Moment, iterations: int) -> None:
    """`iterations` are those of the job whose iterations are longest."""
    total = _transfers(moment, iterations)
    if total > MOST_TRANSFERS:
        raise ClusterError(
            f"these {len(moment.tenants)} jobs send {total:,} transfers {moment.taken}, more than {MOST_TRANSFERS:,} "
            f"are simulated at once: {_fewer_transfers(moment, iterations)}"
        )


def _transfers(moment: Moment, iterations: int) -> int:
    """An iteration without any is a task all the same."""
    counts = iterations_of(moment, iterations)
    each = (max(1, transfers_of(moment.plant, tenant)) for tenant in moment.tenants)
    return sum(count * sent for count, sent in zip(counts, each, strict=True))


def _fewer_transfers(moment: Moment, iterations: int) -> str:
    """A remedy that was tried: fewer iterations, else fewer jobs."""
    most, over = 0, iterations
    while over - most > 1:
        middle = (most + over) // 2
        most, over = (middle, over) if _transfers(moment, middle) <= MOST_TRANSFERS else (most, middle)
    if most:
        return f"give --iterations {most}"
    sent = {tenant.name: transfers_of(moment.plant, tenant) for tenant in moment.tenants}
    names = sorted(sent, key=lambda name: sent[name])
    while names:
        fewer = moment.of_jobs(names[:MOST_NAMES])
        if _transfers(fewer, 1) <= MOST_TRANSFERS:
            return f"give --iterations 1 and fewer jobs, such as --jobs {','.join(names[:MOST_NAMES])}"
        names = names[: min(len(names), MOST_NAMES) - 1]
    return "even one iteration of the smallest job has more: use a smaller cluster"


def refuse_too_many_events(together: Together, question: SnapshotQuestion) -> None:
    """Packets of whole seconds are too many: say which scale would do."""
    use = question.use
    if use.level != "packet":
        return
    events = _events(together, use)
    if events(1.0) <= use.most_events:
        return
    scale = next((part for part in SCALES if events(part) <= use.most_events), None)
    remedy = "choose fewer jobs with --jobs" if scale is None else f"give --scale {question.scale * scale:g}"
    raise ClusterError(
        f"packets of {_packets(use).payload_bytes} bytes would take about {events(1.0):.1e} events, more than "
        f"{use.most_events:.1e}: {remedy}, a larger --payload or fewer --iterations, or let --level auto decide"
    )


def fitting_scale(together: Together, use: LevelUse) -> float | None:
    """The largest scale at which a packet-level run has no more events than allowed; None where even the least has."""
    events = _events(together, use)
    return next((scale for scale in (1.0, *SCALES) if events(scale) <= use.most_events), None)


def events_at(scale: float, together: Together, use: LevelUse) -> float:
    """Events of a packet-level run of so much of all bytes."""
    return _events(together, use)(scale)


def _packets(use: LevelUse) -> WireFormat:
    return wire_format(use.options.settings(use.transport, "default", seed=0))


def _events(together: Together, use: LevelUse) -> Callable[[float], float]:
    """Events of a packet-level run by the part of all bytes that is sent."""
    graph, routes = together.graph, together.routes
    transfer = np.flatnonzero(graph.kind == TaskKind.TRANSFER)
    rows, size = routes.rows_of(graph, transfer), graph.amount[transfer]
    return lambda part: expected_events(routes, rows, part * size, _packets(use))
