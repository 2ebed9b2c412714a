"""Rows of unequal length, copied one after the other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.ragged import ranges, rows_of


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 5))), st.sampled_from([np.int32, np.float64]))
@settings(max_examples=60, deadline=None)
def test_rows_are_those_that_an_index_of_every_entry_gives(rows, kind):
    values = np.arange(20, 40).astype(kind)
    first, length = (np.array([row[at] for row in rows], np.int64) for at in range(2))
    found = rows_of(values, first, length)
    assert found.tolist() == values[ranges(first, length)].tolist()
    assert found.dtype == values.dtype
