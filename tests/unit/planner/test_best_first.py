from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.planner.best_first import best_first

worlds = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10)), min_size=1, max_size=80)


@settings(max_examples=60, deadline=None)
@given(worlds)
def test_the_fastest_candidate_is_found_and_proved(world: list[tuple[float, float, float]]) -> None:
    floors = np.array([low * high * seconds for low, high, seconds in world])
    replays = np.array([high * seconds for _, high, seconds in world])
    seconds = np.array([seconds for _, _, seconds in world])
    found = best_first(floors, lambda which: replays[which], lambda at: float(seconds[at]), most=1000)
    assert found.complete
    assert seconds[found.best] == seconds.min() == found.bound_s


def test_a_search_that_is_cut_short_keeps_the_best_and_says_what_could_be_below_it() -> None:
    seconds = np.array([5.0, 4.0, 3.0])
    bounds = np.array([1.0, 2.0, 2.5])
    found = best_first(bounds, lambda which: bounds[which], lambda at: float(seconds[at]), most=2)
    assert not found.complete
    assert found.best == 1
    assert found.bound_s == 2.5


def test_an_interrupt_gives_the_best_so_far() -> None:
    def simulate(at: int) -> float:
        if at == 1:
            raise KeyboardInterrupt
        return 9.0

    found = best_first(np.array([1.0, 2.0]), lambda which: np.array([1.0, 2.0])[which], simulate, most=9)
    assert not found.complete
    assert found.best == 0
