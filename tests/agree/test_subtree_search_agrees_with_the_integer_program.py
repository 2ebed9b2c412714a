"""Over pods: the search, the small program and the published one with a variable for every cable find the same."""

from __future__ import annotations

import numpy as np
import pytest
from tree_program import solve_tree
from tree_states import tree_state

from ropewalk.tenancy.vclos.compact_tree import decide_subtree
from ropewalk.tenancy.vclos.subtree import FoundTree, search_subtree
from ropewalk.tenancy.vclos.tree_allocation import tree_allocation


@pytest.mark.parametrize("kind", range(3), ids=["odd plants", "planes", "all spines to all cores"])
def test_search_and_programs_agree(kind):
    answers = set()
    for number in range(30):
        state, pods, leafs, spines = tree_state(kind + 3 * (700 + number))
        quick, slow = search_subtree(state, pods, leafs, spines), solve_tree(state, pods, leafs, spines)
        small = decide_subtree(state, pods, leafs, spines, branch_budget=10_000)
        assert type(quick) is type(slow) is type(small)
        answers.add(type(quick))
        if isinstance(quick, FoundTree) and isinstance(slow, FoundTree) and isinstance(small, FoundTree):
            assert quick.cheapest
            assert small.cheapest
            cost = {int(state.ports_of_leaf[np.ravel(found.leafs)].sum()) for found in (quick, slow, small)}
            assert len(cost) == 1
            for found in (quick, slow, small):
                job = tree_allocation(state, "a", pods * leafs * spines, found.leafs)
                state.place(job)
                state.check()
                state.release("a")
    assert len(answers) == 2  # some states have room, some have not
