"""Loads on links in tiny worlds, beside the same sums in plain Python."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.planner._loads_kernel import largest_sums, sums_by_link

LINKS, RUNS = 5, 4
hops = st.lists(st.tuples(st.integers(0, RUNS - 1), st.integers(0, LINKS - 1), st.integers(1, 9)), max_size=30)


def columns(found):
    """Hops with their runs one behind the other, as columns."""
    run, link, load = np.array(sorted(found, key=lambda hop: hop[0]), np.int64).reshape(-1, 3).T.copy()
    return run, link, load.astype(float)


def added_up(found):
    total = defaultdict(float)
    for run, link, load in found:
        total[run, link] += load
    return total


@given(hops)
def test_the_largest_sum_of_a_run_is_that_of_its_busiest_link(found):
    total = added_up(found)
    most = [max((load for (one, _), load in total.items() if one == run), default=0.0) for run in range(RUNS)]
    assert largest_sums(*columns(found), LINKS, RUNS).tolist() == most


@given(hops)
def test_every_link_knows_what_each_run_puts_on_it(found):
    start, run, load = sums_by_link(*columns(found), LINKS)
    link = np.repeat(np.arange(LINKS), np.diff(start))
    assert dict(zip(zip(run.tolist(), link.tolist(), strict=True), load.tolist(), strict=True)) == added_up(found)
