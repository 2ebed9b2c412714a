"""Operations of a gang written one behind the other into arrays, as kernels: lists, dependencies, columns.

Lists of operations are chains that never change: to add to one makes a new one that begins with the old one, so a copy
is a number. `size[FULL]` says that the arrays were too short; whoever made them makes longer ones and writes again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel

NOTHING = -1
"""The empty list; the stage or operation that does not exist."""
OPERATIONS, DEPENDENCIES, NODES, FULL = range(4)


class GangBook(NamedTuple):
    """The gang so far: columns by operation, dependencies as CSR, nodes of lists."""

    move: Ints
    stage: Ints
    peer: Ints
    dep_start: Ints
    dep: Ints
    item: Ints
    """By node: what stands last in the list."""
    rest: Ints
    """By node: the list without it."""
    scratch: Ints
    size: Ints


def make_book(operations: int, dependencies: int) -> GangBook:
    """An empty book with room for so many operations and dependencies; lists have as much room as dependencies."""
    columns = (np.full(operations, NOTHING) for _ in range(3))
    nodes = (np.zeros(dependencies, np.int64) for _ in range(4))
    return GangBook._make([*columns, np.zeros(operations + 1, np.int64), *nodes, np.zeros(4, np.int64)])


@kernel
def add_to(book: GangBook, many: int, item: int) -> int:
    """The list with one more item."""
    node: int = book.size[NODES]
    if node == len(book.item):
        book.size[FULL] = 1
        return many
    book.item[node], book.rest[node] = item, many
    book.size[NODES] += 1
    return node


@kernel
def in_turn(book: GangBook, many: int) -> int:
    """Write the items of a list into `scratch`, first to last; returns how many."""
    count = 0
    node = many
    while node >= 0:
        count += 1
        node = book.rest[node]
    node = many
    for at in range(count - 1, -1, -1):
        book.scratch[at] = book.item[node]
        node = book.rest[node]
    return count


@kernel
def both_lists(book: GangBook, one: int, other: int) -> int:
    """The items of two lists, each once."""
    made = NOTHING
    for many in (one, other):
        for at in range(in_turn(book, many)):
            item, known, node = book.scratch[at], False, made
            while node >= 0:
                known |= book.item[node] == item
                node = book.rest[node]
            if not known:
                made = add_to(book, made, item)
    return made


@kernel
def wait_for(book: GangBook, operation: int) -> None:
    """The next operation, if any, waits for this one, too."""
    size = book.size
    if operation < 0:
        return
    for at in range(book.dep_start[size[OPERATIONS]], size[DEPENDENCIES]):
        if book.dep[at] == operation:
            return
    if size[DEPENDENCIES] == len(book.dep):
        size[FULL] = 1
        return
    book.dep[size[DEPENDENCIES]] = operation
    size[DEPENDENCIES] += 1


@kernel
def wait_for_all(book: GangBook, many: int) -> None:
    for at in range(in_turn(book, many)):
        wait_for(book, book.scratch[at])


@kernel
def write(book: GangBook, move: int, stage: int, peer: int) -> int:
    """The operation that waits for all that was named since the last one; returns its number."""
    at: int = book.size[OPERATIONS]
    if at == len(book.move):
        book.size[FULL] = 1
        return 0
    book.move[at], book.stage[at], book.peer[at] = move, stage, peer
    book.size[OPERATIONS] += 1
    book.dep_start[at + 1] = book.size[DEPENDENCIES]
    return at
