"""Taking and giving back GPUs and cables, with every count kept: all of a job or nothing.

What is drained keeps its bits, so that a job that leaves gives them back; only the counts leave it out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Ints
from ropewalk.compiled import kernel
from ropewalk.tenancy._bits_kernel import lowest, ones


@kernel
def give_gpus(
    gpus: Ints,
    size: int,
    leaf_of: NDArray[np.int32],
    up: NDArray[np.bool_],
    free_gpus: Ints,
    free_in_server: Ints,
    free_on_leaf: Ints,
    idle_servers: Ints,
) -> None:
    """GPUs come back to their servers of `size`."""
    for gpu in gpus:
        server = gpu // size
        free_gpus[server] |= np.int64(1) << (gpu - server * size)
        if up[server]:
            free_in_server[server] += 1
            free_on_leaf[leaf_of[server]] += 1
            if free_in_server[server] == size:
                idle_servers[leaf_of[server]] += 1


@kernel
def take_gpus(
    on_drained: bool,
    gpus: Ints,
    size: int,
    leaf_of: NDArray[np.int32],
    up: NDArray[np.bool_],
    free_gpus: Ints,
    free_in_server: Ints,
    free_on_leaf: Ints,
    idle_servers: Ints,
) -> bool:
    """Take GPUs; nothing changes where one of them does not exist, is drained, taken or listed twice."""
    for at in range(len(gpus)):
        server = gpus[at] // size
        bit = np.int64(1) << (gpus[at] - server * size)
        if not (0 <= server < len(free_gpus) and (up[server] or on_drained) and free_gpus[server] & bit):
            give_gpus(gpus[:at], size, leaf_of, up, free_gpus, free_in_server, free_on_leaf, idle_servers)
            return False
        free_gpus[server] ^= bit
        if up[server]:
            if free_in_server[server] == size:
                idle_servers[leaf_of[server]] -= 1
            free_in_server[server] -= 1
            free_on_leaf[leaf_of[server]] -= 1
    return True


@kernel
def _change(
    below: int,
    above: int,
    change: int,
    first: Ints,
    count: Ints,
    words: NDArray[np.uint64],
    reached: Ints,
    ports_below: Ints,
    ports_above: Ints,
) -> None:
    """Free cables between a below and a above become more or fewer."""
    before = count[below, above]
    count[below, above] = before + change
    ports_below[below] += change
    ports_above[above] += change
    if (before > 0) != (before + change > 0):
        place = above - first[below]
        words[below, place >> 6] ^= np.uint64(1) << np.uint64(place & 63)
        reached[below] += 1 if change > 0 else -1


@kernel
def give_cables(
    below: Ints,
    above: Ints,
    cable: Ints,
    first: Ints,
    up: NDArray[np.bool_],
    bits: Ints,
    count: Ints,
    words: NDArray[np.uint64],
    reached: Ints,
    ports_below: Ints,
    ports_above: Ints,
) -> None:
    """Cables come back."""
    for at in range(len(below)):
        a, b = below[at], above[at]
        bits[a, b] |= np.int64(1) << cable[at]
        if up[a, b]:
            _change(a, b, 1, first, count, words, reached, ports_below, ports_above)


@kernel
def take_cables(
    on_drained: bool,
    below: Ints,
    above: Ints,
    cable: Ints,
    first: Ints,
    up: NDArray[np.bool_],
    bits: Ints,
    count: Ints,
    words: NDArray[np.uint64],
    reached: Ints,
    ports_below: Ints,
    ports_above: Ints,
) -> bool:
    """Take cables; nothing changes where one of them does not exist, is drained, taken or listed twice."""
    lower, upper = bits.shape
    for at in range(len(below)):
        a, b, c = below[at], above[at], cable[at]
        exists = 0 <= a < lower and 0 <= b < upper and 0 <= c < 63
        if not (exists and (up[a, b] or on_drained) and bits[a, b] >> c & 1):
            give_cables(
                below[:at],
                above[:at],
                cable[:at],
                first,
                up,
                bits,
                count,
                words,
                reached,
                ports_below,
                ports_above,
            )
            return False
        bits[a, b] ^= np.int64(1) << c
        if up[a, b]:
            _change(a, b, -1, first, count, words, reached, ports_below, ports_above)
    return True


@kernel
def turn_servers(
    servers: Ints,
    now: NDArray[np.bool_],
    size: int,
    leaf_of: NDArray[np.int32],
    up: NDArray[np.bool_],
    free_gpus: Ints,
    free_in_server: Ints,
    free_on_leaf: Ints,
    idle_servers: Ints,
) -> None:
    """Servers go out of service or come back: what no job holds of them leaves the counts, or enters them."""
    for at in range(len(servers)):
        server = servers[at]
        if up[server] == now[at]:
            continue
        up[server] = now[at]
        free = ones(np.uint64(free_gpus[server]))
        sign = 1 if now[at] else -1
        free_in_server[server] = free if now[at] else 0
        free_on_leaf[leaf_of[server]] += sign * free
        idle_servers[leaf_of[server]] += sign * (free == size)


@kernel
def turn_links(
    below: Ints,
    above: Ints,
    now: NDArray[np.bool_],
    first: Ints,
    up: NDArray[np.bool_],
    bits: Ints,
    count: Ints,
    words: NDArray[np.uint64],
    reached: Ints,
    ports_below: Ints,
    ports_above: Ints,
) -> None:
    """Links go out of service or come back, with all the cables of theirs that no job holds."""
    for at in range(len(below)):
        a, b = below[at], above[at]
        if up[a, b] == now[at]:
            continue
        up[a, b] = now[at]
        free = ones(np.uint64(bits[a, b]))
        if free:
            change = free if now[at] else -free
            _change(a, b, change, first, count, words, reached, ports_below, ports_above)


@kernel
def first_cables(below: Ints, above: Ints, bits: Ints) -> Ints:
    """The free cable of the lowest number of each link."""
    cable = np.empty(len(below), np.int64)
    for at in range(len(below)):
        cable[at] = lowest(bits[below[at], above[at]])
    return cable
