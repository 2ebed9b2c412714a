"""Kernel: the k shortest loop-free paths of many pairs, ties by link ids. Nothing here knows fabrics.

Paths are ordered by length and then by their link ids, first link first. Pairs come grouped by destination, so that one
search serves all of them. With at most one hop beyond the fewest no walk can come back to a node (cutting the loop out
would save two hops), so paths are simply walked through in order, never into a dead end. Beyond that they are found as
detours from the paths before (Yen, 1971).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ropewalk.compiled import kernel

NOWHERE = np.int32(-1)
NONE: int = np.int64(0)  # type: ignore[assignment]
"""Of the types that they have in other calls: for a bare -1 or 0, what is called would be compiled once more."""


@kernel
def _copy(source, target, length):  # type: ignore[no-untyped-def]
    """Copy the first links of a path; an assignment between slices compiles to ten times as much."""
    for at in range(length):
        target[at] = source[at]


@kernel
def _distances(end, wanted, graph, relay, banned_node, banned_link, distance, queue):  # type: ignore[no-untyped-def]
    """Hops to `end` from all nodes that are as near as `wanted` (from all, if that is -1); -1 from the others.

    Returns how many nodes stand in the queue, nearest first.
    """
    in_start, in_link, link_src, hosts = graph[0], graph[1], graph[4], graph[6]
    distance[:] = -1
    distance[end] = 0
    queue[0] = end
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        if node == wanted:
            return tail
        if node != end and node < hosts and not relay:
            continue
        for at in range(in_start[node], in_start[node + 1]):
            link = in_link[at]
            before = link_src[link]
            if distance[before] < 0 and not banned_node[before] and not banned_link[link]:
                distance[before] = distance[node] + 1
                queue[tail] = before
                tail += 1
    return tail


@kernel
def _one_more(end, graph, relay, near, queue, reached, roundabout):  # type: ignore[no-untyped-def]
    """Mark the nodes that have a walk to `end` with exactly one hop more than the fewest."""
    out_start, out_link, link_dst, hosts = graph[2], graph[3], graph[5], graph[6]
    roundabout[:] = False
    for at in range(1, reached):
        node = queue[at]
        for out in range(out_start[node], out_start[node + 1]):
            after = link_dst[out_link[out]]
            passable = (relay or after >= hosts) and after != end and near[after] >= 0
            if passable and (near[after] == near[node] or (near[after] < near[node] and roundabout[after])):
                roundabout[node] = True
                break


@kernel
def _walk_through(start, end, spare, found, graph, relay, near, work, paths, lengths):  # type: ignore[no-untyped-def]
    """Add the walks with `spare` (0 or 1) hops beyond the fewest in order, until all rows are full or none is left."""
    out_start, out_link, link_dst, hosts = graph[2], graph[3], graph[5], graph[6]
    roundabout, cursor, path = work
    length = near[start] + spare
    if spare == 1 and not roundabout[start]:
        return found
    depth, node = 0, start
    cursor[0] = out_start[start]
    while found < len(paths):
        if cursor[depth] == out_start[node + 1]:
            if depth == 0:
                break
            depth -= 1
            node = start if depth == 0 else link_dst[path[depth - 1]]
            continue
        link = out_link[cursor[depth]]
        cursor[depth] += 1
        after = link_dst[link]
        if near[after] < 0 or not (relay or after >= hosts or after == end):
            continue
        left = length - depth - 1 - near[after]
        if left == 0 or (left == 1 and after != end and roundabout[after]):
            path[depth] = link
            if after == end:
                _copy(path, paths[found], length)
                lengths[found] = length
                found += 1
            else:
                depth += 1
                node = after
                cursor[depth] = out_start[after]
    return found


@kernel
def _descend(node, end, graph, relay, banned_link, distance, path, at):  # type: ignore[no-untyped-def]
    """Write the links of the first shortest path from `node` into `path` from place `at`; return where it ends."""
    out_start, out_link, link_dst, hosts = graph[2], graph[3], graph[5], graph[6]
    while node != end:
        for out in range(out_start[node], out_start[node + 1]):
            link = out_link[out]
            after = link_dst[link]
            passable = relay or after >= hosts or after == end
            if passable and distance[after] == distance[node] - 1 and not banned_link[link]:
                path[at] = link
                at += 1
                node = after
                break
    return at


@kernel
def _order(a, a_length, b, b_length):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as path a stands before, at or behind path b."""
    if a_length != b_length:
        return -1 if a_length < b_length else 1
    for hop in range(a_length):
        if a[hop] != b[hop]:
            return -1 if a[hop] < b[hop] else 1
    return 0


@kernel
def _enter(path, length, found, waiting, paths, lengths):  # type: ignore[no-untyped-def]
    """Put a candidate among those that wait in rows found:found+waiting, kept in order; drop what exceeds the rows."""
    place = found
    while place < found + waiting:
        order = _order(path, length, paths[place], lengths[place])
        if order == 0:
            return waiting
        if order < 0:
            break
        place += 1
    if place == len(paths):
        return waiting
    last = min(found + waiting, len(paths) - 1)
    for row in range(last, place, -1):
        _copy(paths[row - 1], paths[row], lengths[row - 1])
        lengths[row] = lengths[row - 1]
    _copy(path, paths[place], length)
    lengths[place] = length
    return last + 1 - found


@kernel
def _detours(ends, found, waiting, longest, graph, relay, near, work, paths, lengths):  # type: ignore[no-untyped-def]
    """Enter every shortest detour from the path in row found-1; return how many candidates wait then."""
    link_src, link_dst = graph[4], graph[5]
    banned_node, banned_link, distance, queue, path = work
    start, end = ends
    last = found - 1
    node = start
    for spur in range(lengths[last]):
        full = waiting == len(paths) - found
        limit = min(longest, lengths[len(paths) - 1]) if full else longest
        if spur + near[node] <= limit:
            for row in range(found):
                if lengths[row] > spur and _order(paths[row], spur, paths[last], spur) == 0:
                    banned_link[paths[row, spur]] = True
            _distances(end, node, graph, relay, banned_node, banned_link, distance, queue)
            if distance[node] >= 0 and spur + distance[node] <= limit:
                _copy(paths[last], path, spur)
                length = _descend(node, end, graph, relay, banned_link, distance, path, spur)
                waiting = _enter(path, length, found, waiting, paths, lengths)
            for row in range(found):
                if lengths[row] > spur:
                    banned_link[paths[row, spur]] = False
        banned_node[node] = True
        node = link_dst[paths[last, spur]]
    for spur in range(lengths[last]):
        banned_node[link_src[paths[last, spur]]] = False
    return waiting


@kernel
def k_shortest_paths(
    k: int,
    extra_hops: int,
    destination: NDArray[np.int32],
    group_start: NDArray[np.int64],
    source: NDArray[np.int32],
    graph: tuple,  # type: ignore[type-arg]
    relay: bool,
    count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Paths of the pairs, group by group: (length of each path, links of all). `count` gets the paths of each pair.

    A path has at most `extra_hops` more than the shortest of its pair (-1: as many as there are). `graph` is in_start,
    in_link, out_start, out_link, link_src, link_dst, hosts. Pairs without any path get count 0.
    """
    nodes, links = len(graph[0]) - 1, len(graph[4])
    near, distance, queue = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    banned_node, banned_link = np.zeros(nodes, np.bool_), np.zeros(links, np.bool_)
    path, paths, lengths = np.empty(nodes, np.int32), np.empty((k, nodes), np.int32), np.zeros(k, np.int64)
    bans = (banned_node, banned_link, distance, queue, path)
    roundabout, cursor = np.zeros(nodes, np.bool_), np.empty(nodes + 1, np.int64)
    walking = (roundabout, cursor, path)
    all_lengths, all_links = np.empty(len(source) * k, np.int64), np.empty(1024, np.int32)
    written, used = 0, 0
    for group in range(len(destination)):
        end = destination[group]
        reached = _distances(end, NOWHERE, graph, relay, banned_node, banned_link, near, queue)
        if extra_hops == 1:
            _one_more(end, graph, relay, near, queue, reached, roundabout)
        for at in range(group_start[group], group_start[group + 1]):
            start = source[at]
            if near[start] < 0:
                count[at] = 0
                continue
            longest = nodes if extra_hops < 0 else near[start] + extra_hops
            found, waiting = NONE, NONE
            if 0 <= extra_hops <= 1:
                for spare in range(extra_hops + 1):
                    found = _walk_through(start, end, spare, found, graph, relay, near, walking, paths, lengths)
            else:
                lengths[0] = _descend(start, end, graph, relay, banned_link, near, paths[0], NONE)
                found = 1
            while found < k and not 0 <= extra_hops <= 1:
                waiting = _detours((start, end), found, waiting, longest, graph, relay, near, bans, paths, lengths)
                if waiting == 0:
                    break
                # The first that waits is next to the paths that are found already, so it is found by counting it in.
                found, waiting = found + 1, waiting - 1
            count[at] = found
            for row in range(found):
                if used + lengths[row] > len(all_links):
                    grown = np.empty(2 * len(all_links) + lengths[row], np.int32)
                    _copy(all_links, grown, used)
                    all_links = grown
                for hop in range(lengths[row]):
                    all_links[used + hop] = paths[row, hop]
                used += lengths[row]
                all_lengths[written] = lengths[row]
                written += 1
    return all_lengths[:written].copy(), all_links[:used].copy()
