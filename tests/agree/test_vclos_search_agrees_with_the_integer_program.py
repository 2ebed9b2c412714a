"""The bit-mask search and HiGHS, asked in two ways, find equally cheap leafs on random and adversarial states."""

from __future__ import annotations

import pytest
from leaf_spine_program import solve_leafs
from leaf_spine_states import KINDS, state_of

from ropewalk.tenancy.vclos.compact import decide_leafs
from ropewalk.tenancy.vclos.search import Found, common_spines, search_leafs


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_search_and_program_agree(kind):
    answers = set()
    for number in range(40):
        state, leafs, spines = state_of(kind + len(KINDS) * (2_000 + number))
        quick, slow = search_leafs(state, leafs, spines), solve_leafs(state, leafs, spines)
        assert type(quick) is type(slow)
        answers.add(type(quick))
        small = decide_leafs(state, leafs, spines, branch_budget=10_000)
        assert type(small) is type(slow)
        if isinstance(quick, Found) and isinstance(slow, Found) and isinstance(small, Found):
            ports = state.ports_of_leaf
            assert quick.cheapest
            assert small.cheapest
            assert len({int(ports[list(found.leafs)].sum()) for found in (quick, slow, small)}) == 1
            for found in (quick, slow, small):
                assert len(common_spines(state, found.leafs, spines)) == spines
    assert len(answers) == 2  # some states have room, some have not
