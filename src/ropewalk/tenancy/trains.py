"""What the jobs of a trace train: which of the ways to fill in their communication each of them takes.

| a job | gets |
|---|---|
| says its share of communication, or its bytes | what it says |
| names a plan file | the step of the plan: its strategy, its collectives, its order |
| names a measured pattern | that |
| names a model whose share is published, and how long it ran | the published share |
| names any other model of the zoo, or a file with one, or says how its model is split | a step of the model |
| names no model | one of a mix that somebody has chosen; refused otherwise |

Any other name is refused, with similar names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from pathlib import Path

from ropewalk.documents import beginning
from ropewalk.errors import ClusterError, Findings, WorkloadError
from ropewalk.files import found_from, is_there
from ropewalk.plans.marks import is_plan
from ropewalk.tenancy.pattern_file import is_pattern
from ropewalk.tenancy.published_shares import EXPERT_SHARES, RELATIVES, SHARES, is_published, shares_of
from ropewalk.tenancy.traces import TraceJob
from ropewalk.workload.source import is_file

MOST_NAMES = 8
MOST_NEAR = 3


class Trains(Enum):
    """Where the communication of a job comes from; the value is how it is said."""

    NOTHING = "a single GPU, which sends nothing"
    TOLD = "communication given in the trace"
    PLAN = "steps of their own plans"
    PATTERN = "measured communication patterns"
    PUBLISHED = "published shares of communication"
    STEP = "simulated steps of their models"
    DRAWN = "a model of the chosen mix"


def trains(job: TraceJob, iteration_s: float | None = None) -> Trains:
    """Which of the ways a job takes; its model is one that `renamed` has found."""
    if job.communication_share is not None or (job.volume_bytes is not None and job.compute_s is not None):
        return Trains.TOLD
    if job.model is not None and is_file(job.model):
        if _begins_as_plan(Path(job.model)):
            return Trains.PLAN
        if is_pattern(Path(job.model)):
            return Trains.PATTERN
    timed = job.duration_s is not None or job.compute_s is not None or iteration_s is not None
    if job.gpus == 1 and timed and not job.is_split:
        return Trains.NOTHING
    if job.model is None:
        return Trains.STEP if job.is_split else Trains.DRAWN
    published = shares_of(job.model, job.batch) is not None
    if published and timed and not job.is_split and (is_published(job.model) or not _in_zoo(job.model)):
        return Trains.PUBLISHED
    return Trains.STEP


def renamed(jobs: Sequence[TraceJob], others: Mapping[str, str], folder: Path) -> tuple[TraceJob, ...]:
    """The jobs with models taken as others where somebody said so, and with files found from the folder of the trace.

    Names that nothing is known of are refused together; so are renamings of models that no job has.
    """
    unused = [name for name in others if all(job.model != name for job in jobs)]
    if unused:
        raise ClusterError(f"no job uses the model {', '.join(unused)}: write a name used in the trace")
    found = tuple(_found(job, others, folder) for job in jobs)
    refuse_unknown(found)
    return found


def _found(job: TraceJob, others: Mapping[str, str], folder: Path) -> TraceJob:
    if job.model is None:
        return job
    model = others.get(job.model, job.model)
    if is_file(model):
        near = found_from(folder, model)
        path, _, name = near.rpartition(":")
        model = near if is_there(path if name and path.endswith(".py") else near) else model
    return job if model == job.model else replace(job, model=model)


def refuse_unknown(jobs: Iterable[TraceJob]) -> None:
    """Models that jobs name and that nothing is known of, with names that come near."""
    named = Counter(
        job.model for job in jobs if job.model is not None and not is_file(job.model) and trains(job) is not Trains.TOLD
    )
    unknown = {
        name: count for name, count in named.most_common() if shares_of(name, None) is None and not _in_zoo(name)
    }
    if not unknown:
        return
    findings = Findings(ClusterError, "models of the jobs")
    for name, count in list(unknown.items())[:MOST_NAMES]:
        near = nearest(name)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        jobs_of_it = "1 job names" if count == 1 else f"{count:,} jobs name"
        findings.add(
            f"{jobs_of_it} {name!r}, which is unknown: {hint}give a name of `ropewalk list models`, a file "
            f"(plan, workload, pattern) or communication_share, or substitute another model (--model-as {name}=bert)"
        )
    if len(unknown) > MOST_NAMES:
        findings.add(f"the same applies to {len(unknown) - MOST_NAMES} more names: correct them as well")
    findings.raise_if_any()


def nearest(name: str) -> list[str]:
    """Names of models that come near to one that is not known.

    >>> nearest("brt-large")[0], nearest("mixtrl")
    ('bert-large', ['mixtral-8x7b'])
    """
    from ropewalk.workload.zoo import plain, spellings

    known = {plain(one): one for one in (*SHARES, *EXPERT_SHARES, *RELATIVES)} | spellings()
    near = get_close_matches(plain(name), known, n=MOST_NEAR, cutoff=0.7)
    return list(dict.fromkeys(known[one] for one in near))


@lru_cache(maxsize=1024)
def _in_zoo(name: str) -> bool:
    from ropewalk.workload.zoo import find  # the zoo is large, and many traces do without

    try:
        find(name.partition(":")[0])
    except WorkloadError:
        return False
    return True


def _begins_as_plan(path: Path) -> bool:
    return path.suffix.lower() == ".json" and is_plan(beginning(path))
