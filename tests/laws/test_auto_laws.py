"""Collectives chosen by simulation: never slower than rings, and what was promised when they are named again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.collectives.choice import CollectiveChoice, collective_choice
from ropewalk.fabric import Circulant, Dgx, IdealSwitch, LeafSpine, Torus
from ropewalk.routing import ROUTERS, router_for
from ropewalk.sim import simulate
from ropewalk.task.auto import fastest
from ropewalk.task.expand import expand, use_of
from ropewalk.task.step import Act, Step, StepSketch
from ropewalk.task.transport import Transport

RANKS = 8
FABRICS = [
    one.build() for one in (Torus((2, 4)), Dgx(2, gpus=4), IdealSwitch(8), LeafSpine(2, 1, 4), Circulant(8, (1, 3)))
]
PURPOSES = ("compute", "tensor", "expert", "data")
GROUPS = {
    "tensor": [[0, 1], [2, 3], [4, 5], [6, 7]],
    "expert": [[0, 2, 4, 6], [1, 3, 5, 7]],
    "data": [list(range(8))],
}
ACTS = {"tensor": [Act.ALL_REDUCE, Act.ALL_GATHER], "expert": [Act.ALL_TO_ALL], "data": [Act.ALL_REDUCE, Act.REDUCE]}


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Every rank computes, and groups of some purposes meet one after the other or side by side."""
    sketch = StepSketch(RANKS, PURPOSES)
    last = {rank: sketch.compute(rank, draw(st.sampled_from([0.0, 1e-4])) * rank) for rank in range(RANKS)}
    for _ in range(draw(st.integers(1, 4))):
        purpose = draw(st.sampled_from(PURPOSES[1:]))
        act, size = draw(st.sampled_from(ACTS[purpose])), draw(st.sampled_from([1e4, 1e6, 4e7]))
        for group in GROUPS[purpose]:
            met = sketch.collective(
                act, group, size, after=sorted({last[rank] for rank in group}), stream=PURPOSES.index(purpose)
            )
            if draw(st.booleans()):
                last.update(dict.fromkeys(group, met))
    return sketch.step()


@given(steps(), st.sampled_from(FABRICS), st.sampled_from([Transport(), Transport(20e-6, 2e-6, 7e-6, 0.8, 0.9)]))
@settings(max_examples=12)
def test_auto_is_never_slower_than_rings_and_keeps_its_word(step, fabric, transport):
    router = ROUTERS[router_for(fabric).name].make(0)

    def seconds(choice: CollectiveChoice) -> float:
        asked = expand(step, np.arange(RANKS), fabric, collectives=choice, router=router, transport=transport)
        expansion, routes = asked.routed(router)
        return simulate(expansion.graph, routes).makespan

    use = use_of(step, np.arange(RANKS), fabric, CollectiveChoice("auto"), router=router, transport=transport)
    chosen = fastest(step, use, seconds)
    assert chosen.seconds <= seconds(CollectiveChoice("ring"))
    assert chosen.seconds == pytest.approx(min(tried.seconds for tried in chosen.tried), rel=1e-9)
    assert seconds(collective_choice(str(chosen.choice))) == chosen.seconds
