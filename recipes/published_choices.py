"""Published choices of degrees beside ours: their time as predicted and as published, and their rank in our search.

`python recipes/published_choices.py` prints a row for every run of `tests/data/published_runs_modern.csv` that can be
said here, and counts the others by reason (`--only ID …` for some of them). Rows join by themselves once their
precision, GPU or model is known.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from modern_runs import AUTOMODEL, MEGATRON_BRIDGE, PRECISION, ModernRun, modern_runs
from ropewalk.planner.answer import Option
from ropewalk.planner.pricing import Priced
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import SearchOutcome, Study
from ropewalk.progress import silent
from ropewalk.units import show_seconds

PIECES = (2, 3, 4, 5, 6, 8, 10, 12)
"""Pieces per stage that are searched where the published choice has several."""
OFF_BY = 1.05
"""Beyond this ratio the table says why."""


@cache
def published_choices() -> tuple[ModernRun, ...]:
    """The rows of the vendor's summaries, in the order of the file."""
    return tuple(one for one in modern_runs() if one.software.startswith((MEGATRON_BRIDGE, AUTOMODEL)))


def question_of(choice: ModernRun) -> PlannerQuestion:
    """The search in whose ranking a choice has its place.

    Where stages hold several pieces, these need not have equal numbers of blocks: 61 or 126 hardly divide.
    """
    pieces = tuple(sorted({*PIECES, choice.interleave})) if choice.interleave > 1 else ()
    return PlannerQuestion(
        choice.workload(), choice.cluster(), choice.batch, choice.sequence, PRECISION[choice.precision],
        Space(interleave=pieces),
    )  # fmt: skip


@dataclass(frozen=True)
class Ranked:
    """A published choice in our ranking."""

    choice: ModernRun
    best: Option
    theirs: str
    """The strategy as it was simulated."""
    predicted_s: float
    rank: int
    """Among all that fit, by the bound of each; 1 is the fastest."""
    fit: int

    @property
    def error(self) -> float:
        return self.predicted_s / self.choice.seconds - 1

    @property
    def ratio(self) -> float:
        """Their predicted step over that of our best."""
        return self.predicted_s / self.best.seconds


@lru_cache(maxsize=1)
def searched(question: PlannerQuestion) -> tuple[Study, SearchOutcome]:
    """The search for a question; the same jobs were published with several versions of the software."""
    study = Study(question, silent)
    return study, study.search(study.wanted, others=False)


def ranked(choice: ModernRun) -> Ranked | str:
    """Search, and look the published choice up; why not, where it does not fit or is not in the space.

    Recomputation is not published: the fastest that fits is taken.
    """
    study, found = searched(question_of(choice))
    priced, mine = found.priced, _matching(choice, found.priced)
    if not len(mine):
        return "outside of the space"
    fit = mine[priced.fits[mine]]
    if not len(fit):
        least, room = float(priced.memory_bytes[mine].min()), study.prices.room
        return f"does not fit: {least / 1e9:.0f} of {room / 1e9:.0f} GB with everything recomputed"
    every = np.flatnonzero(priced.fits)
    seconds = priced.replay(every)
    at = int(fit[np.argmin(seconds[np.searchsorted(every, fit)])])
    strategy = priced.strategy(at, study.workload)
    rank = 1 + int((seconds < seconds[np.searchsorted(every, at)] * (1 - 1e-9)).sum())
    return Ranked(choice, found.best, strategy.said(), study.simulator.seconds(strategy), rank, len(every))


def _matching(choice: ModernRun, priced: Priced) -> NDArray[np.int64]:
    """Candidates with the published degrees."""
    candidates = priced.candidates
    schedule = candidates.space.schedules.index("interleaved" if choice.interleave > 1 else "1f1b")
    wanted = {
        "tensor": choice.tensor, "pipeline": choice.pipeline, "context": choice.context, "expert": choice.expert,
        "sequence": int(choice.tensor > 1), "micro_batch": choice.micro_batch, "zero": choice.zero,
        "folded": int(choice.folds), "interleave": choice.interleave,
        "schedule": schedule if choice.pipeline > 1 else 0,
    }  # fmt: skip
    return np.flatnonzero(np.all([candidates.column(name) == value for name, value in wanted.items()], axis=0))


HEADS = ("row", "what", "GPUs", "published", "predicted", "error", "rank", "of", "vs. best", "theirs, ours")


def table(choices: tuple[ModernRun, ...]) -> Iterator[str]:
    """A row for every choice that can be said, then the others by reason."""
    yield "| " + " | ".join(HEADS) + " |"
    missing: Counter[str] = Counter()
    for choice in sorted(choices, key=lambda one: (one.model, one.accelerator, one.gpus, one.precision[:3], one.said)):
        one = choice.why_not() or ranked(choice)
        if isinstance(one, str):
            missing[one] += 1
            continue
        said = one.theirs if one.ratio <= OFF_BY else f"{one.theirs}; ours: {one.best.said()}"
        yield "| " + " | ".join([
            choice.id, choice.said, f"{choice.gpus} {choice.accelerator}", show_seconds(choice.seconds),
            show_seconds(one.predicted_s), f"{one.error:+.0%}", f"{one.rank:,}", f"{one.fit:,}",
            f"{one.ratio:.2f}", said,
        ]) + " |"  # fmt: skip
    for reason, many in missing.most_common():
        yield f"{many} rows: {reason}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="ids of rows; all unless given")
    only = parser.parse_args().only
    for line in table(tuple(one for one in published_choices() if only is None or one.id in only)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
