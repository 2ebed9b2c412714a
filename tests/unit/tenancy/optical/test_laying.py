"""Loops over free fibres against the same in plain Python, on random fibres."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from plain_circuits import PlainLaying, PlainReach, bits, masks, plain_cover

from ropewalk.tenancy.optical.cover import cheapest_cover
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.laying import lay_all
from ropewalk.tenancy.optical.star import _reach
from ropewalk.tenancy.optical.straight import _best_pair


@st.composite
def fibres(draw: Callable[..., object], most: int = 3) -> FreeFibres:
    leafs, spines, switches = (draw(st.integers(2, high)) for high in (5, 4, 70))
    leaf = draw(arrays(bool, (leafs, switches), elements=st.sampled_from((True, True, False))))
    return FreeFibres(leaf, draw(arrays(np.int64, (spines, switches), elements=st.integers(0, most))))


def one_by_one(free: FreeFibres, leafs: np.ndarray, spines: np.ndarray, laying: PlainLaying | None = None) -> object:
    """Every circuit by `PlainLaying.lay`: leafs with the least choice first."""
    laying, rows = laying or PlainLaying.over(free), np.flatnonzero(leafs)
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
def test_circuits_make_way_as_one_by_one(levels: int) -> None:
    """Fibres so short that chains are needed, and some fail."""
    rng, chains, failed = np.random.default_rng(levels), 0, 0
    for _ in range(100):
        room = rng.binomial(levels, rng.uniform(0.8, 1.0), (8, 8))
        free = FreeFibres(rng.random((6 * levels, 8)) < rng.uniform(0.8, 1.0), room)
        leafs, spines = np.ones(6 * levels, np.int64), (rng.random(8) < rng.uniform(0.3, 1.0)).astype(np.int64)
        laying = PlainLaying.over(free)
        found = lay_all(free, leafs, spines)
        assert found == one_by_one(free, leafs, spines, laying)
        chains += laying.chains
        failed += isinstance(found, int)
    assert chains > 30
    assert 10 < failed < 90


@pytest.mark.parametrize("each", [1, 2, 4])
def test_fibres_towards_one_spine_are_matched_as_in_plain_python(each: int) -> None:
    rng, refused, moved = np.random.default_rng(each), 0, 0
    for _ in range(300):
        free = FreeFibres(rng.random((5, 12)) < rng.uniform(0.3, 1.0), rng.integers(0, 3, (1, 12)))
        order, times, most = rng.permutation(5), rng.integers(0, 4, 5), int(rng.integers(1, 12))
        plain, added = PlainReach(masks(free.leaf & (free.spine[0] > 0)), free.spine[0].tolist()), 0
        for leaf in order.tolist():
            for _ in range(times[leaf]):
                if added == most:
                    break
                if not plain.add(leaf, each):
                    refused += 1
                    break
                added += 1
        used, count = _reach(free, 0, order, times, each, most)
        assert count == added
        assert [np.flatnonzero(row).tolist() for row in used] == [
            list(bits(plain.used.get(row, 0))) for row in range(5)
        ]
        # Without anybody making way, every leaf would have the lowest switches that others had left.
        moved += any(
            plain.users[switch] != sorted(plain.users[switch], key=order.tolist().index) for switch in plain.users
        )
    assert refused > 50
    assert moved > 5


@given(st.data())
def test_the_cheapest_cover_is_that_of_plain_python(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    room = data.draw(arrays(np.int64, count, elements=st.integers(0, 4)))
    cost = data.draw(arrays(np.int64, count, elements=st.integers(1, 5)))
    target = data.draw(st.integers(1, 12))
    found, expected = cheapest_cover(room, cost, target), plain_cover(room, cost, target)
    assert (found is None) == (expected is None)
    assert found is None or found.tolist() == expected.tolist()


def test_a_fibre_that_is_given_back_may_be_one_more_than_any_spine_has_left() -> None:
    free = FreeFibres(np.ones((2, 5), bool), np.array([[2, 1, 0, 0, 2], [2, 1, 0, 1, 2]]))
    leafs, spines = np.array([1, 1]), np.array([1, 3])
    assert lay_all(free, leafs, spines) == one_by_one(free, leafs, spines)
