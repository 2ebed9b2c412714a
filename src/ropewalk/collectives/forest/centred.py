"""Trees moved to their centre: an all-reduce may run around any member of a tree, and in the middle it is shortest.

A tree that reduces and spreads uses every branch once per direction, whichever member is its root. So moving the root
changes no load, and the longest way becomes half of the way between the two members that are farthest apart.
"""

from __future__ import annotations

from ropewalk.collectives.forest.forest import Branch, Forest, Tree


def centred(forest: Forest) -> Forest:
    """The forest with every tree rooted in its middle; the network has the same capacities both ways.

    Its loads are those of the original only together with the forest that reduces the same way backwards.
    """
    opposite = forest.network.opposite.tolist()
    return Forest(forest.network, tuple(_rooted_in_the_middle(tree, opposite) for tree in forest.trees))


def _rooted_in_the_middle(tree: Tree, opposite: list[int]) -> Tree:
    beside: dict[int, list[Branch]] = {tree.root: []}
    for branch in tree.branches:
        beside[branch.parent].append(branch)
        beside[branch.child] = [_turned(branch, opposite)]
    one_end = _walked(beside, tree.root)[-1][0]
    there = _walked(beside, one_end)
    came_from = {branch.child: branch.parent for _, _, branch in there if branch is not None}
    middle, longest = there[-1][0], there[-1][1]
    for _ in range(longest // 2):
        middle = came_from[middle]
    walked = _walked(beside, middle)
    return Tree(middle, tree.rate, tuple(branch for _, _, branch in walked if branch is not None), walked[-1][1])


def _walked(beside: dict[int, list[Branch]], start: int) -> list[tuple[int, int, Branch | None]]:
    """Members in the order of hops from one of them, with hops and the branch by which each is reached."""
    walked: list[tuple[int, int, Branch | None]] = [(start, 0, None)]
    for member, hops, by in walked:
        back = None if by is None else by.parent
        walked += [(branch.child, hops + 1, branch) for branch in beside[member] if branch.child != back]
    return walked


def _turned(branch: Branch, opposite: list[int]) -> Branch:
    """The branch that carries the same data the other way."""
    ways = tuple((tuple([opposite[vertex] for vertex in reversed(path)]), rate) for path, rate in branch.ways)
    return Branch(branch.child, branch.parent, ways)
