"""What the jobs of a trace train, in sentences: the first thing to know before their times are believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ropewalk.tenancy.job import Job
from ropewalk.tenancy.trains import Trains

MOST_NAMES = 4


def trained_said(jobs: Sequence[Job], mix: str | None = None, gpus: Sequence[str] = ()) -> list[str]:
    """One sentence for each way in which jobs got their communication; `gpus` price simulated steps."""
    said = []
    for way in Trains:
        mine = [job for job in jobs if job.trains == way.value]
        if not mine or way is Trains.NOTHING:
            continue
        drawn = f" (--mix {mix})" if way is Trains.DRAWN and mix else ""
        priced = f" on {', '.join(gpus)}" if gpus and way in (Trains.PLAN, Trains.STEP) else ""
        priced += ", eager stack unless a model names another" if way is Trains.STEP else ""
        said.append(
            f"{len(mine):,} of {len(jobs):,} jobs have {way.value}{drawn}{priced}: {_names(mine)}"
            if any(job.model for job in mine)
            else f"{len(mine):,} of {len(jobs):,} jobs have {way.value}{drawn}"
        )
    return said


def _names(jobs: Sequence[Job]) -> str:
    """Models with their splits, the most common first."""
    named = Counter(f"{job.model} on {job.gpus} GPUs ({job.split})" if job.split else job.model for job in jobs)
    shown = [f"{name} ({count:,})" if count > 1 else name for name, count in named.most_common(MOST_NAMES)]
    more = len(named) - MOST_NAMES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
