"""What others would have done with the same model, machines and terms, timed by the same clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from ropewalk.errors import StrategyError
from ropewalk.interrupts import unwrapped_interrupts
from ropewalk.pipeline.answer import BEHIND, DATA_PARALLEL, PipelineAlternative
from ropewalk.pipeline.contest import Contest, with_pieces
from ropewalk.pipeline.costs import Costs
from ropewalk.pipeline.data_parallel import data_parallel, data_parallel_plans
from ropewalk.pipeline.judge import Judged
from ropewalk.pipeline.pipedream import pipedream_stages
from ropewalk.pipeline.plan import PipelinePlan
from ropewalk.pipeline.released import in_a_row, released_plan
from ropewalk.pipeline.state_groups import grouped
from ropewalk.pipeline.twofold import even_cuts
from ropewalk.strategy.part import Part

EARLY_BACKWARD = ("1f1b", "1f1b-deep")
MOST_STATES = 128
"""PipeDream's search grows with the cube of the states; beyond, states are taken together."""
MOST_GPUS_RELEASED = 64
"""The released planner places every copy of a pipeline in every way, which ends here."""


def alternatives(contest: Contest) -> tuple[PipelineAlternative, ...]:
    """Every baseline; those under the same terms also enter the contest. Interrupted, it leaves other planners out."""
    costs = contest.costs
    others = (
        ("straight", "one GPU per stage, stages as even as possible", even_stages, EARLY_BACKWARD),
        ("gpipe", "GPipe: stages as even as possible, all forward passes before backward", even_stages, ("gpipe",)),
        ("pipedream", "PipeDream's planner, in a synchronous pipeline", _pipedream, EARLY_BACKWARD),
        ("dapple-released", "DAPPLE's released planner", released_stages, EARLY_BACKWARD),
    )
    return (
        _data_parallel(contest),
        _data_parallel_behind(costs),
        *(_unless_interrupted(contest, *other) for other in others),
        *_by_schedule(contest),
    )


def _unless_interrupted(
    contest: Contest, name: str, what: str, stages_of: Callable[[Costs], tuple[Part, ...]], schedules: tuple[str, ...]
) -> PipelineAlternative:
    """`of_stages`, as long as nobody has ended the search: then the best plan so far is not waited for."""
    if not contest.interrupted:
        try:
            with unwrapped_interrupts():
                return of_stages(contest, name, what, stages_of, schedules)
        except KeyboardInterrupt:
            if contest.best is None:
                raise
            contest.interrupted = True
    return PipelineAlternative(name, what, None, "interrupted")


def _data_parallel(contest: Contest) -> PipelineAlternative:
    what = "data parallel, gradients all-reduced during the last backward pass"
    terms = replace(contest.costs.terms, overlap_sums=True)
    found = data_parallel(Costs(contest.costs.prices, contest.costs.machines, terms))
    if contest.costs.terms.overlap_sums:
        # One stage is as fast and as small with 1f1b as with any other; where that was not asked for, others stand in.
        schedules = ("1f1b",) if "1f1b" in terms.schedules else with_pieces(terms.schedules, 1)
        for plan, schedule in product(data_parallel_plans(contest.costs), schedules):
            contest.judge(replace(plan, schedule=schedule))
    return _alternative(DATA_PARALLEL, what, found)


def _data_parallel_behind(costs: Costs) -> PipelineAlternative:
    terms = replace(costs.terms, overlap_sums=False)
    found = data_parallel(Costs(costs.prices, costs.machines, terms))
    return _alternative(BEHIND, "data parallel, gradients all-reduced after the last backward pass", found)


def of_stages(
    contest: Contest, name: str, what: str, stages_of: Callable[[Costs], tuple[Part, ...]], schedules: tuple[str, ...]
) -> PipelineAlternative:
    """The stages of another planner under the best of its schedules and any size of micro-batches."""
    costs, terms = contest.costs, contest.costs.terms
    try:
        stages = stages_of(costs)
    except StrategyError as error:
        return PipelineAlternative(name, what, None, str(error))
    # They may win the contest only with schedules that were asked for; as baselines they bring their own.
    allowed = tuple(name for name in schedules if name in terms.schedules)
    if allowed == schedules:
        field = contest
    else:
        field = Contest(costs)
        if allowed:
            best_of_stages(contest, stages, allowed)
    known = set(field.unfit)
    found = best_of_stages(field, stages, schedules)
    if found is None:
        return PipelineAlternative(
            name, what, None, next((why for why in field.unfit if why not in known), "it does not fit")
        )
    return PipelineAlternative(name, what, found)


def best_of_stages(contest: Contest, stages: tuple[Part, ...], schedules: tuple[str, ...]) -> Judged | None:
    """These stages with the size of micro-batches and the schedule that suit them best."""
    terms = contest.costs.terms
    found = [
        contest.enter(PipelinePlan(stages, schedules[0], size, terms.global_batch // size, recompute), schedules)
        for size, recompute in product(terms.micro_batch_sizes(), terms.recompute)
    ]
    return min((judged for judged in found if judged is not None), key=lambda judged: judged.step_s, default=None)


def even_stages(costs: Costs) -> tuple[Part, ...]:
    """One GPU a stage, as many as there are states or GPUs, the longest as short as it can be."""
    count = min(costs.states, costs.machines.gpus)
    bounds = even_cuts(costs.profile.forward_s + costs.profile.backward_s, count)
    return tuple(Part(bounds[at], bounds[at + 1] - 1, (at,)) for at in range(count))


def _pipedream(costs: Costs) -> tuple[Part, ...]:
    return pipedream_stages(costs.profile, costs.machines, grouped(costs.profile, MOST_STATES))


def released_stages(costs: Costs) -> tuple[Part, ...]:
    """The cuts and GPUs of DAPPLE's released planner; its copies side by side are the replicas of a stage."""
    terms = costs.terms
    if costs.machines.gpus > MOST_GPUS_RELEASED:
        raise StrategyError(
            f"DAPPLE's released planner does not terminate for {costs.machines.gpus} GPUs: ask for at most "
            f"{MOST_GPUS_RELEASED}"
        )
    best = released_plan(in_a_row(costs.profile), costs.machines, terms.global_batch, terms.micro_batch).best
    return tuple(Part(stage.first, stage.last, stage.gpus) for stage in best.stages)


def _by_schedule(contest: Contest) -> list[PipelineAlternative]:
    """The best plan found under every schedule."""
    return [
        PipelineAlternative(f"best-{name}", f"the best plan found with {name}", judged)
        for name, judged in contest.best_by_schedule.items()
    ]


def _alternative(name: str, what: str, found: Judged | str) -> PipelineAlternative:
    if isinstance(found, str):
        return PipelineAlternative(name, what, None, found)
    return PipelineAlternative(name, what, found)
