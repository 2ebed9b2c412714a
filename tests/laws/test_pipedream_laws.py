"""PipeDream's planner as a kernel, against its published recurrence loop by loop."""

from antichains import antichain_profile
from hypothesis import given, settings
from hypothesis import strategies as st
from pipedream_reference import pipedream_reference

from ropewalk.pipeline.pipedream import Level, pipedream
from ropewalk.pipeline.released import States
from ropewalk.workload.opaque import Measured
from ropewalk.workload.workload import Layer, Workload


@st.composite
def branching(draw: st.DrawFn) -> States:
    """A few layers, each of which reads one or two before it."""
    layers = []
    for number in range(draw(st.integers(2, 6))):
        reads = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=2)) if number else set()
        seconds, weights, sent = (draw(st.integers(0, most)) for most in (9, 40, 20))
        layers.append(
            Layer(f"layer {number}", (Measured(seconds, 2 * seconds, weights, sent),), sent, tuple(sorted(reads)))
        )
    return antichain_profile(Workload("branching", tuple(layers), 1))


@settings(max_examples=40, deadline=None)
@given(branching(), st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1.0, 4.0, 20.0])), min_size=1, max_size=2))
def test_stages_only_follow_states_that_they_contain_as_in_the_published_program(states, shape):
    levels = [Level(count, bandwidth) for count, bandwidth in shape]
    _, stages = pipedream_reference(states, levels)
    assert pipedream(states.profile, levels, contains=states.contains) == stages
