"""Laws of placements: they find servers whenever there are enough, and give nothing away twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.placements.table import PACKED, PLACEMENTS
from ropewalk.tenancy.plant import Plant, plant

SIZES = [1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 28, 32, 48]
WORLDS = {
    "even": plant("leaf-spine:6x8x8", gpus_per_server=4),
    "odd": Plant("odd", 2, np.array([0, 0, 0, 1, 2, 2, 3, 3, 3, 3]), np.ones((4, 6), np.int32)),
}

event = st.tuples(st.booleans(), st.sampled_from(SIZES), st.integers(0, 1000))


@pytest.mark.parametrize("placement", [name for name in PLACEMENTS if name != PACKED])
@pytest.mark.parametrize("world", list(WORLDS))
@settings(max_examples=20, deadline=None)
@given(events=st.lists(event, max_size=25), drained=st.sets(st.integers(0, 3), max_size=1))
def test_a_job_starts_whenever_packed_servers_would_do(placement, world, events, drained):
    state = Occupancy(WORLDS[world])
    state.drain(Drained(leafs=drained))
    for number, (ends, size, pick) in enumerate(events):
        if ends and state.jobs:
            state.release(list(state.jobs)[pick % len(state.jobs)])
            continue
        found = PLACEMENTS[placement].make(state, f"job{number}", size)
        packed = PLACEMENTS[PACKED].make(state, f"job{number}", size)
        assert isinstance(found, Allocation) == isinstance(packed, Allocation)
        if isinstance(found, Allocation):
            assert found == PLACEMENTS[placement].make(state, f"job{number}", size)
            assert len(found.gpus) == size
            assert list(found.gpus) == sorted(found.gpus)
            assert len({gpu // state.plant.gpus_per_server for gpu in found.gpus}) == -(
                -size // state.plant.gpus_per_server
            )
            state.place(found)  # refuses whatever is occupied
            state.check()
