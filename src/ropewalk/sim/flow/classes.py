"""Classes of a partition: numbered, represented, and what they use of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.ragged import ranges


def number(colour: NDArray[np.uint64]) -> Ints:
    """Classes numbered by their first member, so that a class comes after the classes it waits for."""
    _, first, inverse = np.unique(colour, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def first_member(classes: Ints) -> Ints:
    """One member of each class."""
    return np.unique(classes, return_index=True)[1]


def usage_of_classes(
    row: Ints,
    item_class: Ints,
    classes: int,
    use_start: Ints,
    use_link: NDArray[np.int32],
    use_weight: NDArray[np.float64],
    link_class: Ints,
) -> tuple[Ints, NDArray[np.int32], NDArray[np.float64]]:
    """What all items of a class together use of one link of each link class, as CSR by item class.

    Item i takes route `row[i]`; route r uses `use_weight` of the links `use_link` in its CSR range.
    """
    links = np.int64(int(link_class.max(initial=-1)) + 1)
    chosen = np.zeros(len(link_class), bool)
    chosen[first_member(link_class)] = True
    entries = np.flatnonzero(chosen[use_link])
    row_of_entry = np.repeat(np.arange(len(use_start) - 1), np.diff(use_start))[entries]
    by_row = np.argsort(row, kind="stable")
    row_start = np.searchsorted(row[by_row], np.arange(len(use_start)))
    items, first = np.diff(row_start)[row_of_entry], row_start[:-1][row_of_entry]
    into = ranges(first, items)
    key = item_class[by_row[into]] * links + np.repeat(link_class[use_link[entries]], items)
    pairs, inverse = np.unique(key, return_inverse=True)
    weight = np.bincount(inverse, np.repeat(use_weight[entries], items), len(pairs)).astype(np.float64)
    start = np.searchsorted(pairs, np.arange(classes + 1) * links).astype(np.int64)
    link = (pairs % max(links, np.int64(1))).astype(np.int32)
    return start, link, weight
