"""Links as a service against all choices of leafs and spines on small states."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.tenancy.allocation import Allocation, Reason
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.vclos.laas import laas

WHERE = plant("leaf-spine:4x4x4", gpus_per_server=2)


def could_start(state: Occupancy, gpus: int) -> bool:
    """Is there N = R A + B, 0 <= B < A, with R leafs that share A free spines, B of them with one leaf more?

    A counts GPUs of whole servers. A single full leaf needs links for the remainder alone.
    """
    size, free = state.plant.gpus_per_server, state.cables_free > 0
    leafs = range(state.plant.leafs)
    for each in range(size, gpus, size):
        full, rest = divmod(gpus, each)
        if full + bool(rest) < 2:
            continue
        for chosen in combinations([leaf for leaf in leafs if state.idle_servers[leaf] * size >= each], full):
            shared = free[list(chosen)].all(axis=0)
            if full > 1 and shared.sum() < each:
                continue
            if not rest:
                return True
            for last in set(leafs) - set(chosen):
                enough = state.idle_servers[last] >= -(-rest // size)
                if enough and (shared & free[last]).sum() >= rest:
                    return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16]))
def test_a_job_over_leafs_starts_exactly_where_some_choice_has_the_links(seed: int, gpus: int) -> None:
    rng, state, allocate = np.random.default_rng(seed), Occupancy(WHERE), laas()
    for number in range(int(rng.integers(0, 5))):
        got = allocate(state, f"job{number}", int(rng.choice([1, 2, 3, 5, 6, 8])))
        if isinstance(got, Allocation):
            state.place(got)
    out = [(leaf, spine) for leaf in range(4) for spine in range(4) if rng.random() < 0.25]
    state.drain(Drained(links=out))
    got = allocate(state, "new", gpus)
    if isinstance(got, Allocation):
        assert got.stage != "clos" or could_start(state, gpus)
        state.place(got)
        state.check()
    elif got.reason is Reason.NETWORK_FRAGMENTATION:
        assert not could_start(state, gpus)
