"""Laws of placement and links."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.placement import candidates, scatter_first


@st.composite
def half_full(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    machines = Machines(sum(sizes), tuple(int(end) for end in np.cumsum(sizes)))
    occupied = draw(st.sets(st.integers(0, machines.gpus - 1), max_size=machines.gpus - 1))
    need = draw(st.integers(1, machines.gpus - len(occupied)))
    return machines, sum(1 << gpu for gpu in occupied), need


def scattered(machines: Machines, occupied: int, need: int) -> int:
    """Scatter First one GPU at a time, as it is told."""
    taken = 0
    while need:
        for machine in range(machines.count):
            free = [g for g in range(machines.gpus) if machines.machine_of(g) == machine]
            free = [g for g in free if not (occupied | taken) >> g & 1]
            if free and need:
                taken |= 1 << free[0]
                need -= 1
    return taken


@given(half_full())
def test_every_candidate_is_as_many_free_gpus_as_needed_and_one_always_exists(world):
    machines, occupied, need = world
    found = candidates(machines, occupied, need)
    assert 1 <= len(found) <= 3
    assert len(set(found)) == len(found)
    for mask in found:
        assert mask & occupied == 0
        assert mask.bit_count() == need
        assert mask >> machines.gpus == 0


@given(half_full())
def test_whole_rounds_of_scattering_equal_one_gpu_at_a_time(world):
    assert scatter_first(*world) == scattered(*world)


@given(st.sets(st.integers(0, 15), min_size=1), st.sets(st.integers(0, 15), min_size=1))
def test_faster_links_never_cost_more(sources, targets):
    slow, fast = Machines(16, (8, 16)), Machines(16, (8, 16), 2e9, 6e9, 50e9)
    assert fast.split_concat(sources, targets, 1e9) * 2 == slow.split_concat(sources, targets, 1e9)
    assert fast.all_reduce(sources, 1e9) * 2 == slow.all_reduce(sources, 1e9)
