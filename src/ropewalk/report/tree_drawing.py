"""Trees of a forest as small pictures: the root on top, depth downwards, arrows the way data goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from ropewalk.collectives.forest import AllReduceForest, Forest
from ropewalk.collectives.forest.forest import Branch, Tree
from ropewalk.collectives.optimum import Network
from ropewalk.fabric import Fabric
from ropewalk.report import quantity
from ropewalk.words import listed

MOST_RANKS_DRAWN = 64
MOST_TREES_SEARCHED = 256
MOST_TREES_DRAWN = 4
NAMED_RANKS = 20
STEP, DROP, RADIUS = 46.0, 74.0, 6.0
MARGIN = 26.0
LETTER = 7.5
"""Width of a letter of a name, at most."""


@dataclass(frozen=True)
class TreePicture:
    """One tree, drawn."""

    title: str
    svg: Markup


def draw_trees(forest: Forest | AllReduceForest) -> list[TreePicture]:
    """A few trees, those of one root first; of an all-reduce both the ways to it and the ways from it."""
    if isinstance(forest, AllReduceForest):
        root = next(iter(forest.spreading.trees)).root
        most = MOST_TREES_DRAWN // 2
        return [*_drawn(forest.reducing, root, most), *_drawn(forest.spreading, root, most)]
    return _drawn(forest, next(iter(forest.trees)).root, MOST_TREES_DRAWN)


def chosen(trees: Iterable[Tree], root: int, most: int) -> list[Tree]:
    """Of a root the fastest tree of each shape, then shapes that only others have, then whatever is left."""
    searched = list(islice(trees, MOST_TREES_SEARCHED))
    searched.sort(key=lambda tree: (tree.root != root, -tree.rate))
    seen: set[str] = set()
    different: list[Tree] = []
    others: list[Tree] = []
    for tree in searched:
        shape = shape_of(tree)
        (others if shape in seen else different).append(tree)
        seen.add(shape)
    return (different + others)[:most]


def shape_of(tree: Tree) -> str:
    """The shape of a tree, whatever its ranks are called: equal for trees that are drawn alike."""
    children = _children(tree)
    shape: dict[int, str] = {}
    for node in reversed([tree.root, *(branch.child for branch in tree.branches)]):
        below = sorted(shape[branch.child] for branch in children.get(node, ()))
        shape[node] = f"({''.join(below)})"
    return shape[tree.root]


def _children(tree: Tree) -> dict[int, list[Branch]]:
    children: dict[int, list[Branch]] = {}
    for branch in tree.branches:
        children.setdefault(branch.parent, []).append(branch)
    return children


def _drawn(forest: Forest, root: int, most: int) -> list[TreePicture]:
    network = forest.network
    if len(network.members) > MOST_RANKS_DRAWN:
        return []
    return [TreePicture(_title(tree, network), _svg(tree, forest)) for tree in chosen(forest.trees, root, most)]


def _title(tree: Tree, network: Network) -> str:
    verb = "reduces to" if network.backwards else "broadcasts from"
    root = network.fabric.node_names[tree.root]
    return f"{verb} {root} · {quantity.gigabytes(float(tree.rate))} · depth {tree.depth}"


def _places(tree: Tree) -> dict[int, tuple[float, float]]:
    """Leaves side by side, every other rank above the middle of its children."""
    children, places = _children(tree), {}
    across = 0

    def place(rank: int, depth: int) -> float:
        nonlocal across
        below = [place(branch.child, depth + 1) for branch in children.get(rank, ())]
        at = (below[0] + below[-1]) / 2 if below else across * STEP
        across += not below
        places[rank] = (at, depth * DROP)
        return at

    place(tree.root, 0)
    return places


def _svg(tree: Tree, forest: Forest) -> Markup:
    fabric, places = forest.network.fabric, _places(tree)
    inner, named = {branch.parent for branch in tree.branches}, len(places) <= NAMED_RANKS
    names = dict(zip(sorted(places), short_names([fabric.node_names[rank] for rank in sorted(places)]), strict=True))
    ends = [x + 12 + LETTER * len(names[rank]) for rank, (x, _) in places.items() if named and rank in inner]
    width = max(max(x for x, _ in places.values()) + MARGIN, *ends, 0.0) + MARGIN
    height = tree.depth * DROP + 2 * MARGIN
    label = f"a tree of {len(places)} ranks with root {fabric.node_names[tree.root]}, {tree.depth} branches deep"
    parts = [
        Markup('<svg class="fabric tree" viewBox="{:.0f} {:.0f} {:.0f} {:.0f}" style="width:{:.0f}px" role="img" ')
        .format(-MARGIN, -MARGIN, width, height, 1.25 * width),
        Markup('aria-label="{}"><g class="links">').format(label),
        *(_branch(branch, forest, places) for branch in tree.branches),
        Markup('</g><g class="hosts">'),
        *(_rank(rank, rank == tree.root, places[rank], fabric) for rank in sorted(places)),
        Markup("</g>"),
    ]  # fmt: skip
    if named:
        parts += _names(inner, places, names)
    return Markup("").join([*parts, Markup("</svg>")])


def _names(inner: set[int], places: dict[int, tuple[float, float]], names: dict[int, str]) -> list[Markup]:
    """Below leaves; beside other ranks, whose branches go down."""
    text = Markup('<text{} x="{:.1f}" y="{:.1f}">{}</text>')
    drawn = []
    for rank, name in names.items():
        x, y = places[rank]
        beside = rank in inner
        css = Markup(' class="beside"') if beside else Markup("")
        drawn.append(text.format(css, x + (12 if beside else 0), y + (-6 if beside else 17), name))
    return drawn


def _branch(branch: Branch, forest: Forest, places: dict[int, tuple[float, float]]) -> Markup:
    """A line that ends short of the rank that receives, with a head drawn there."""
    fabric = forest.network.fabric
    ends = (branch.child, branch.parent) if forest.network.backwards else (branch.parent, branch.child)
    (x1, y1), (x2, y2) = places[ends[0]], places[ends[1]]
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    tip_x, tip_y = x2 - ux * (RADIUS + 2), y2 - uy * (RADIUS + 2)
    css = "far" if _between_servers(branch, fabric) else "near"
    head = " ".join(
        f"{tip_x - 8 * ux + side * 3.6 * uy:.1f},{tip_y - 8 * uy - side * 3.6 * ux:.1f}" for side in (1, -1)
    )
    return Markup(
        '<g class="{}"><title>{}</title><line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'
        '<polygon points="{:.1f},{:.1f} {}"/></g>'
    ).format(css, _ways(branch, forest), x1, y1, tip_x - 6 * ux, tip_y - 6 * uy, tip_x, tip_y, head)


def _between_servers(branch: Branch, fabric: Fabric) -> bool:
    return fabric.server is not None and bool(fabric.server[branch.parent] != fabric.server[branch.child])


def _ways(branch: Branch, forest: Forest) -> str:
    """`gpu0.0 → nvswitch0 → gpu0.1 · 5 GB/s`, way by way."""
    network = forest.network
    names = network.fabric.node_names
    ways = []
    for path, rate in branch.ways:
        # The ways in and out of a host with a limit are the host itself.
        nodes = list(dict.fromkeys(int(network.node[vertex]) for vertex in path))
        ordered = nodes[::-1] if network.backwards else nodes
        ways.append(f"{' → '.join(names[node] for node in ordered)} · {quantity.gigabytes(float(rate))}")
    return listed(ways, 6)


def _rank(rank: int, root: bool, place: tuple[float, float], fabric: Fabric) -> Markup:
    css = Markup(' class="inside"') if root else Markup("")
    return Markup('<circle{} cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>').format(
        css, *place, RADIUS + 2 if root else RADIUS, fabric.node_names[rank]
    )


def short_names(names: Sequence[str]) -> list[str]:
    """Names without what all of them begin with, so that they fit below a disc: `gpu0.1` is `0.1`.

    >>> short_names(["gpu0.1", "gpu1.0"]), short_names(["a", "host"])
    (['0.1', '1.0'], ['a', 'host'])
    """
    letters = Counter(name.rstrip("0123456789.") for name in names)
    prefix = next(iter(letters)) if len(letters) == 1 else ""
    return [name[len(prefix) :] or name for name in names]
