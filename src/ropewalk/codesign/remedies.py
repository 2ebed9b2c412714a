"""What makes a job fit in memory: every remedy is tried before it is named.

Trying means making the space of seats with the remedy in place: it fits if a strategy to begin with does. Where nothing
fits, what came nearest is told, so that nobody is sent down a road that ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ropewalk.codesign.job import batch_of, job_of
from ropewalk.codesign.question import EXTENSIONS, PlanQuestion
from ropewalk.device.device import DEVICES
from ropewalk.errors import InputError, MemoryShortage
from ropewalk.strategy.memory import FRAGMENTATION, WORKSPACE_BYTES

MOST_DOUBLINGS = 4
"""Numbers of servers that are tried, each twice the one before."""


def with_remedies(question: PlanQuestion, shortage: MemoryShortage) -> MemoryShortage:
    """The same problem with the remedies that work, or the one that came nearest."""
    working: list[str] = []
    nearest: tuple[float, str] = (shortage.needed_bytes, "")
    for tried in _remedies(question, shortage):
        for remedy, asked in tried:
            needed = _needed(asked)
            if needed is None:
                continue
            if needed == 0.0:
                working.append(remedy)
                break
            nearest = min(nearest, (needed, remedy))
    if working:
        return MemoryShortage(f"{shortage}: {'; or '.join(working)}", shortage.needed_bytes)
    if nearest[1]:
        hint = f"no tried remedy makes it fit; the closest was to {nearest[1]} ({nearest[0] / 1e9:.1f} GB)"
    else:
        hint = "no tried remedy makes it fit"
    return MemoryShortage(f"{shortage}: {hint}; use a smaller model", shortage.needed_bytes)


def _remedies(question: PlanQuestion, shortage: MemoryShortage) -> Iterator[Iterator[tuple[str, PlanQuestion]]]:
    """Kinds of remedies, each from the mildest on: the first that works is named."""
    yield _extensions(question)
    yield _batches(question)
    yield _servers(question)
    yield _larger_gpus(question, shortage.needed_bytes)


def _needed(question: PlanQuestion) -> float | None:
    """Bytes of the fullest GPU where it has no room for them, 0 where all is well, None where it cannot be asked."""
    try:
        job_of(question).space  # noqa: B018  (made when it is first looked at)
    except MemoryShortage as problem:
        return problem.needed_bytes
    except InputError:
        return None
    return 0.0


def _extensions(question: PlanQuestion) -> Iterator[tuple[str, PlanQuestion]]:
    """Extensions that give layers further seats; a pipeline keeps as much as its stages do without one."""
    for name in EXTENSIONS:
        if name not in question.allow and name != "pipeline":
            yield f"allow {name} parallelism (--allow {name})", replace(question, allow=(*question.allow, name))


def _batches(question: PlanQuestion) -> Iterator[tuple[str, PlanQuestion]]:
    """Half as many samples for each GPU, and half again."""
    each = batch_of(question) // question.cluster.gpus
    while each > 1:
        each //= 2
        batch = each * question.cluster.gpus
        yield f"use a smaller batch (--batch {batch})", replace(question, batch=batch)


def _servers(question: PlanQuestion) -> Iterator[tuple[str, PlanQuestion]]:
    """More servers with the same samples on each GPU."""
    equal = question.cluster.equal
    for doubling in range(1, MOST_DOUBLINGS + 1):
        count, batch = equal.count * 2**doubling, batch_of(question) * 2**doubling
        cluster = replace(question.cluster, servers=(replace(equal, count=count),))
        remedy = f"use {count} servers for a batch of {batch}"
        yield remedy, replace(question, cluster=cluster, batch=batch)


def _larger_gpus(question: PlanQuestion, needed_bytes: float) -> Iterator[tuple[str, PlanQuestion]]:
    """GPUs with room for what the best strategy holds, those with the least memory first."""
    wanted = needed_bytes * (1 + FRAGMENTATION) + WORKSPACE_BYTES
    large = sorted((choice.make.memory_bytes, name) for name, choice in DEVICES.items())
    for memory_bytes, name in large:
        if memory_bytes >= wanted:
            cluster = replace(question.cluster, servers=(replace(question.cluster.equal, device=name),))
            yield f"use GPUs with {wanted / 1e9:.0f} GB or more, such as {name}", replace(question, cluster=cluster)
