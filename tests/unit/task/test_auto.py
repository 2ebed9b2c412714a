"""What `auto` looks at: the best candidates of every purpose that was left open, the slowest purpose first."""

from dataclasses import replace

import pytest

from ropewalk.collectives.choice import CollectiveChoice, collective_choice
from ropewalk.collectives.table import COLLECTIVES
from ropewalk.fabric import Fabric, Torus
from ropewalk.routing import ROUTERS, router_for
from ropewalk.sim import simulate
from ropewalk.task.auto import MOST_TRIED, fastest
from ropewalk.task.estimate import estimated, of_purpose, purposes_of, ranked
from ropewalk.task.expand import expand, use_of
from ropewalk.task.kinds import Use, missing_acts
from ropewalk.task.step import Act, Step, StepSketch

TORUS = Torus((4, 4)).build()
ROWS = [list(range(row, row + 4)) for row in range(0, 16, 4)]


def two_purposes() -> Step:
    sketch = StepSketch(16, ("compute", "tensor", "data"))
    for row in ROWS:
        sketch.collective(Act.ALL_REDUCE, row, 1e9, stream=1)
        sketch.collective(Act.ALL_REDUCE, row, 1e9, stream=1)
    sketch.collective(Act.ALL_REDUCE, range(16), 1e6, stream=2)
    return sketch.step()


def use_on(step: Step, fabric: Fabric = TORUS, choice: str = "auto") -> Use:
    router = ROUTERS[router_for(fabric).name].make(0)
    return use_of(step, range(step.ranks), fabric, collective_choice(choice), router=router)


def seconds_of(step: Step, use: Use):
    def seconds(choice: CollectiveChoice) -> float:
        asked = expand(step, range(step.ranks), use.fabric, collectives=choice, router=use.router)
        expansion, routes = asked.routed(use.router)
        return simulate(expansion.graph, routes).makespan

    return seconds


def test_rows_of_a_torus_leave_the_ring_for_trees():
    step = two_purposes()
    use = use_on(step)
    chosen = fastest(step, use, seconds_of(step, use))
    assert chosen.choice.name_for("tensor") in ("forest", "best-ring", "double-ring")
    assert chosen.seconds < 0.6 * chosen.tried[0].seconds
    assert len(chosen.tried) <= 1 + 2 * MOST_TRIED


def test_what_is_named_stays():
    step = two_purposes()
    use = use_on(step, choice="auto,tensor=ring")
    chosen = fastest(step, use, seconds_of(step, use))
    assert chosen.choice.name_for("tensor") == "ring"
    assert all("tensor" not in tried.algorithm for tried in chosen.tried)


def test_launches_of_a_group_are_estimated_together():
    step = two_purposes()
    assert purposes_of(step) == ("tensor", "data")
    part = of_purpose(step, "tensor")
    assert (part.operations, part.amount.tolist(), part.repeats.tolist()) == (4, [2e9] * 4, [2] * 4)
    use = use_on(step)
    # Three quarters of the buffer, there and back, over every link of a one-way ring.
    assert estimated(part, "ring", use).seconds == pytest.approx(2 * 0.75 * 2e9 / 12.5e9)
    assert estimated(part, "forest", use).seconds == pytest.approx(0.75 * 2e9 / 12.5e9)


def test_what_runs_the_same_is_tried_once_and_what_is_too_large_is_noted():
    step = two_purposes()
    use = use_on(step)
    part = of_purpose(step, "data")
    few = replace(COLLECTIVES["forest"], auto_up_to=8)
    table = type(COLLECTIVES)("collective", [few if one.name == "forest" else one for one in COLLECTIVES.values()])
    names, notes = ranked(part, replace(use, table=table), estimated(part, "ring", use))
    assert "ring" not in names
    assert "ps" not in names
    assert notes == ["forest was not tried for groups of 16 ranks, more than 8"]


def test_an_act_that_the_choice_does_not_have_is_noted():
    sketch = StepSketch(4, ("compute", "data"))
    sketch.collective(Act.ALL_GATHER, range(4), 1.0)
    step = sketch.step()
    (note,) = missing_acts(step, CollectiveChoice("double-tree"), COLLECTIVES)
    assert note == "data: double-tree does not support all-gather, which runs as ring"
    assert missing_acts(step, CollectiveChoice("forest"), COLLECTIVES) == ()
