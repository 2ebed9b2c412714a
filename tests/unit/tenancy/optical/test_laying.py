"""Loops over free fibres against the same in plain Python, on random fibres."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.laying import Laying, lay_all
from ropewalk.tenancy.optical.straight import _best_pair


@st.composite
def fibres(draw: Callable[..., object], most: int = 3) -> FreeFibres:
    leafs, spines, switches = (draw(st.integers(2, high)) for high in (5, 4, 70))
    leaf = draw(arrays(bool, (leafs, switches), elements=st.sampled_from((True, True, False))))
    return FreeFibres(leaf, draw(arrays(np.int64, (spines, switches), elements=st.integers(0, most))))


def one_by_one(free: FreeFibres, leafs: np.ndarray, spines: np.ndarray) -> object:
    """Every circuit by `Laying.lay`: leafs with the least choice first."""
    laying, rows = Laying.over(free), np.flatnonzero(leafs)
    slack = free.leaf[rows].sum(axis=1) - leafs[rows] * spines.sum()
    for spine in np.flatnonzero(spines).tolist():
        for leaf in rows[np.argsort(slack, kind="stable")].tolist():
            for _ in range(leafs[leaf] * spines[spine]):
                if not laying.lay(leaf, spine):
                    return spine
    return laying.switches()


@given(fibres(), st.data())
def test_circuits_are_laid_as_one_by_one(free: FreeFibres, data: st.DataObject) -> None:
    leafs = data.draw(arrays(np.int64, len(free.leaf), elements=st.integers(0, 2)))
    spines = data.draw(arrays(np.int64, len(free.spine), elements=st.integers(0, 4)))
    assert lay_all(free, leafs, spines) == one_by_one(free, leafs, spines)


@given(fibres())
def test_switches_that_leafs_and_spines_share_are_counted(free: FreeFibres) -> None:
    assert free.common.tolist() == (free.leaf.astype(int) @ (free.spine > 0).T.astype(int)).tolist()


@given(fibres(), st.data())
def test_the_pair_of_leafs_is_the_cheapest_that_shares_enough_switches(free: FreeFibres, data: st.DataObject) -> None:
    idle = data.draw(arrays(np.int64, len(free.leaf), elements=st.integers(0, 6)))
    first, second, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)), data.draw(st.integers(1, 40))
    pairs = [
        (idle[one] + idle[other], one, other)
        for one in range(len(idle))
        for other in range(len(idle))
        if one != other and idle[one] >= first and idle[other] >= second
        and (free.leaf[one] & free.leaf[other]).sum() >= width
    ]  # fmt: skip
    assert _best_pair(idle, free, first, second, width) == (min(pairs)[1:] if pairs else None)


@pytest.mark.parametrize("levels", [1, 2])
def test_chains_go_on_from_what_was_laid_plainly(levels: int) -> None:
    """Fibres of many spines, so short that circuits have to make way: the answer is the same as one by one."""
    rng, moved = np.random.default_rng(levels), 0
    for _ in range(200):
        free = FreeFibres(rng.random((4, 6)) < 0.8, rng.integers(0, levels + 1, (3, 6)))
        leafs, spines = rng.integers(0, 2, 4), rng.integers(0, 3, 3)
        found = lay_all(free, leafs, spines)
        assert found == one_by_one(free, leafs, spines)
        moved += isinstance(found, dict) and bool(found)
    assert moved > 20


def test_a_fibre_that_is_given_back_may_be_one_more_than_any_spine_has_left() -> None:
    free = FreeFibres(np.ones((2, 5), bool), np.array([[2, 1, 0, 0, 2], [2, 1, 0, 1, 2]]))
    leafs, spines = np.array([1, 1]), np.array([1, 3])
    assert lay_all(free, leafs, spines) == one_by_one(free, leafs, spines)
