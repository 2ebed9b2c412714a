"""DAPPLE's pivot formula (Fan et al., PPoPP 2021) on pipelines that can be followed by hand."""

import pytest
from pivot_formula import pivot_latency, woven

CASES = [  # forward, backward, transfers, sums, micro-batches; pivot, filling, steady, ending
    ((1, 1), (1, 1), None, None, 4, 1, 2, 6, 2),
    ((1, 1, 1, 1), (2, 2, 2, 2), None, None, 8, 3, 4, 21, 8),
    ((2, 2), (2, 2), (1,), None, 6, 2, 5, 20, 5),
    ((2, 2), (2, 2), (2,), None, 6, 2, 6, 20, 6),
    ((2, 2), (2, 2), (4,), None, 6, 1, 6, 40, 6),
    ((1, 2, 1), (2, 4, 2), None, None, 6, 1, 3, 30, 6),
    ((1, 1, 2), (2, 2, 4), None, None, 6, 2, 4, 30, 8),
    ((2, 1, 1), (4, 2, 2), None, None, 6, 0, 2, 30, 4),
    ((10, 9), (10, 9), None, None, 4, 0, 10, 60, 10),
    ((1, 1, 1), (1, 1, 1), None, (5, 0, 0), 5, 2, 3, 8, 8),
    ((1, 1, 1), (1, 1, 1), None, (0, 0, 5), 5, 2, 3, 8, 6),
    ((1, 1, 1, 1), (2, 2, 2, 2), (0.5, 0.5, 0.5), None, 8, 6, 5.5, 21, 9.5),
]


def arrays(forward, backward, transfers, sums):
    sums = sums or (0,) * len(forward)
    if transfers is None:
        return forward, backward, sums
    return woven(forward, transfers), woven(backward, transfers), woven(sums, [0] * len(transfers))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_step_is_filling_and_the_pivots_work_and_the_end(case):
    *world, micro_batches, pivot, filling, steady, ending = case
    forward, backward, sums = arrays(*world)
    found = pivot_latency(forward, backward, micro_batches, sums)
    assert (found.pivot, found.filling_s, found.steady_s, found.ending_s) == (pivot, filling, steady, ending)
    assert found.seconds == filling + steady + ending


def test_sums_of_later_stages_hide_behind_backward_passes_of_earlier_ones():
    seconds = [pivot_latency((1, 1, 1), (1, 1, 1), 5, sums).seconds for sums in ((5, 0, 0), (0, 5, 0), (0, 0, 5))]
    assert seconds == [19, 18, 17]


def test_sums_behind_the_pivot_hide_behind_all_stages_between():
    assert pivot_latency((9, 1, 1), (9, 1, 1), 2, (0, 0, 20)).ending_s == 20 - 1
