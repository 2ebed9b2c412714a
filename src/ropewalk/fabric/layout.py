"""Where to draw the nodes of a fabric, the way people draw it: trees by tier, tori as grids, rings as circles.

Positions are (x, y) with y upwards; neighbours that belong together are about one unit apart. The same fabric is always
drawn the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ropewalk.arrays import Floats
from ropewalk.fabric.bcube import BCube
from ropewalk.fabric.circulant import Circulant
from ropewalk.fabric.dgx import Dgx
from ropewalk.fabric.dragonfly import Dragonfly
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.fat_tree import FatTree
from ropewalk.fabric.hypercube import Hypercube
from ropewalk.fabric.leaf_spine import LeafSpine
from ropewalk.fabric.random_regular import RandomRegular
from ropewalk.fabric.server_fabric import ServerFabric
from ropewalk.fabric.switch import IdealSwitch
from ropewalk.fabric.torus import Mesh, Ring, Torus


def layout(fabric: Fabric) -> Floats:
    """One (x, y) for every node, in node order.

    >>> from ropewalk.fabric import Mesh
    >>> layout(Mesh((2, 2)).build()).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]
    """
    draw = DRAWINGS.get(type(fabric.builder))
    if draw is not None:
        return draw(fabric, fabric.builder)
    if _is_tiered(fabric):
        return _tiers(fabric, None)
    from ropewalk.fabric.force import force_layout  # SciPy is loaded only for graphs that nobody has a drawing of

    return force_layout(fabric)


def _is_tiered(fabric: Fabric) -> bool:
    """Do all links join neighbouring tiers, as in a tree?"""
    steps = np.abs(fabric.level[fabric.link_src].astype(int) - fabric.level[fabric.link_dst])
    return fabric.switches > 0 and bool((steps == 1).all())


def _tiers(fabric: Fabric, _: Any) -> Floats:
    """Hosts in a row at the bottom; each tier above in a row of the same width, nodes over their children."""
    at = np.zeros((fabric.nodes, 2))
    at[: fabric.hosts, 0] = np.arange(fabric.hosts)
    width = max(fabric.hosts, int(np.bincount(fabric.level).max()))
    height = max(1.0, width / 5)  # flat enough for a page, steep enough to tell cables apart
    for level in range(1, int(fabric.level.max()) + 1):
        nodes = np.flatnonzero(fabric.level == level)
        into = (fabric.level[fabric.link_dst] == level) & (fabric.level[fabric.link_src] == level - 1)
        children = np.bincount(fabric.link_dst[into], minlength=fabric.nodes)[nodes]
        total = np.bincount(fabric.link_dst[into], at[fabric.link_src[into], 0], minlength=fabric.nodes)[nodes]
        centre = np.where(children > 0, total / np.maximum(children, 1), (fabric.hosts - 1) / 2)
        slot = np.empty(len(nodes))
        slot[np.argsort(np.round(centre, 6), kind="stable")] = np.arange(len(nodes))
        at[nodes, 0] = (slot + 0.5) / len(nodes) * width - 0.5 + (fabric.hosts - width) / 2
        at[nodes, 1] = level * height
    return at


def _circle(fabric: Fabric, _: Any) -> Floats:
    """Hosts clockwise from the top, one unit apart."""
    return _around(fabric.hosts) * _radius(fabric.hosts)


def _grid(fabric: Fabric, builder: Torus | Mesh) -> Floats:
    """Last axis to the right, the one before it downwards, further axes as slices side by side and below."""
    if isinstance(builder, Torus) and len(builder.shape) == 1:
        return _circle(fabric, builder)
    digits = np.unravel_index(np.arange(fabric.hosts), builder.shape)[::-1]
    at = _nested(digits, builder.shape[::-1])
    if isinstance(builder, Torus):
        # A straight row would hide the link that closes it: rows and columns are bowed, and the link is the chord.
        for axis, (digit, size) in enumerate(zip(digits[:2], builder.shape[::-1], strict=False)):
            if size > 2:
                at[:, 1 - axis] += 0.3 * (1 - (2 * digit / (size - 1) - 1) ** 2)
    return at


def _nested(digits: tuple[NDArray[Any], ...], sizes: tuple[int, ...]) -> Floats:
    """Digits in turn to the right and downwards; each pair of digits steps over the whole block of the ones before."""
    at = np.zeros((len(digits[0]), 2))
    step = [1.0, 1.0]
    for place, (digit, size) in enumerate(zip(digits, sizes, strict=True)):
        axis = place % 2
        at[:, axis] += digit * step[axis] * (1 if axis == 0 else -1)
        if place > 1:
            at[:, 1 - axis] -= digit * 0.4  # slices are staggered, so that links between them pass beside the nodes
        step[axis] *= size + 0.75  # a gap between slices
    return at + 0.0


def _hypercube(fabric: Fabric, builder: Hypercube) -> Floats:
    """Three bits as a cube seen askew; further bits set cubes beside and above each other, a little askew as well."""
    at = np.zeros((fabric.hosts, 2))
    steps = [(1.0, 0.0), (0.0, 1.0), (0.4, 0.35)]
    reach = 2.2
    while len(steps) < builder.dimensions:
        steps.extend([(reach, reach / 9), (reach / 9, reach)])
        reach *= 2.2
    for bit in range(builder.dimensions):
        at += np.outer(np.arange(fabric.hosts) >> bit & 1, steps[bit])
    return at


def _bcube(fabric: Fabric, builder: BCube) -> Floats:
    """Hosts in a grid of their digits; the switch of a row or column stands aside at its end."""
    n, levels = builder.ports, builder.levels
    hosts = np.arange(builder.hosts)
    digits = np.zeros((levels, fabric.nodes), np.int64)
    for level in range(levels):
        digits[level, : builder.hosts] = builder.digit(hosts, level)
    for level in range(levels):
        switch = builder.switch(hosts, level)
        digits[:, switch] = digits[:, : builder.hosts]
        digits[level, switch] = n
    at = _nested(tuple(digits), (n + 1,) * levels)
    aside = (fabric.level[builder.hosts :] - 1) % 2  # the axis along which the switch of a level serves its hosts
    at[np.arange(builder.hosts, fabric.nodes), 1 - aside] -= 0.5  # every NIC has a line of its own, beside the hosts
    return at


def _dragonfly(fabric: Fabric, builder: Dragonfly) -> Floats:
    """Groups on a large circle, each a small circle of routers with its hosts outside of them."""
    routers = builder.groups * builder.routers
    outwards = _around(builder.routers)
    per_router = builder.hosts_per_router
    small = _radius(builder.routers) * max(1, per_router) * 0.8
    spread = (np.arange(per_router) - (per_router - 1) / 2) * 0.8
    sideways = np.column_stack([outwards[:, 1], -outwards[:, 0]])
    router_at = outwards * small
    host_at = (outwards * (small + 1.0))[:, None] + sideways[:, None] * spread[None, :, None]
    extent = float(np.abs(host_at).max()) + 1.5
    centre = _around(builder.groups) * max(extent / np.sin(np.pi / builder.groups), extent)
    at = np.empty((fabric.nodes, 2))
    at[: builder.hosts] = (centre[:, None] + host_at.reshape(1, -1, 2)).reshape(-1, 2)
    at[builder.hosts : builder.hosts + routers] = (centre[:, None] + router_at[None]).reshape(-1, 2)
    return at


def _dgx(fabric: Fabric, builder: Dgx) -> Floats:
    """Each server a box with its GPUs in two rows around the NVSwitch; rails in a row above, spines above them."""
    at = np.empty((fabric.nodes, 2))
    columns = (builder.gpus + 1) // 2
    pitch = columns + 1.0
    server, place = np.divmod(np.arange(builder.hosts), builder.gpus)
    at[: builder.hosts] = np.column_stack([server * pitch + place % columns, np.where(place < columns, 2.0, 0.0)])
    middle = np.arange(builder.servers) * pitch + (columns - 1) / 2
    at[builder.hosts : builder.hosts + builder.servers] = np.column_stack([middle, np.ones(builder.servers)])
    width, height = builder.servers * pitch, max(2.0, builder.servers * pitch / 6)
    for level, count in ((2, builder.rail_count), (3, builder.spines)):
        x = (np.arange(count) + 0.5) / max(count, 1) * width - 1.0
        at[fabric.level == level] = np.column_stack([x, np.full(count, 2.0 + (level - 1) * height)])
    return at


def _cluster(fabric: Fabric, builder: ServerFabric) -> Floats:
    """Servers as boxes in a row, NICs in a row above them, the tiers of the network above those.

    A network without switches has no tiers: everything is drawn by its distances.
    """
    network = fabric.level >= 2
    if not network.any():
        from ropewalk.fabric.force import force_layout

        return force_layout(fabric)
    at = np.empty((fabric.nodes, 2))
    columns = (int(builder.gpus_of_server().max()) + 1) // 2
    pitch = columns + 1.0
    server, place = builder.server_of(), builder.place_of()
    at[: builder.gpus] = np.column_stack([server * pitch + place % columns, np.where(place < columns, 2.0, 0.0)])
    nvswitches = builder.servers if builder.has_nvlink else 0
    middle = np.arange(builder.servers) * pitch + (columns - 1) / 2
    at[builder.gpus : builder.gpus + nvswitches] = np.column_stack([middle, np.ones(builder.servers)])[:nvswitches]
    first_port = builder.gpus + nvswitches
    ports = int((~network).sum()) - first_port
    tiers = [np.arange(first_port, first_port + ports)]
    tiers += [np.flatnonzero(fabric.level == level) for level in np.unique(fabric.level[network])]
    width = max(builder.servers * pitch, 0.75 * max(map(len, tiers)))
    height = max(2.0, width / 6)
    above = [tier for tier in tiers if len(tier)]
    for number, tier in enumerate(above):
        x = (np.arange(len(tier)) + 0.5) / len(tier) * width - 1.0
        at[tier] = np.column_stack([x, np.full(len(tier), 2.0 + (number + 1) * height)])
    return at


def _around(count: int) -> Floats:
    """Points on the unit circle, clockwise from the top."""
    angle = 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.sin(angle), np.cos(angle)])


def _radius(count: int) -> float:
    """Of the circle on which `count` points are one unit apart."""
    return float(0.5 / np.sin(np.pi / count)) if count > 1 else 0.5


DRAWINGS: dict[type, Callable[[Fabric, Any], Floats]] = {
    FatTree: _tiers,
    LeafSpine: _tiers,
    IdealSwitch: _tiers,
    Torus: _grid,
    Mesh: _grid,
    Ring: _circle,
    Circulant: _circle,
    RandomRegular: _circle,
    Hypercube: _hypercube,
    BCube: _bcube,
    Dragonfly: _dragonfly,
    Dgx: _dgx,
    ServerFabric: _cluster,
}
"""How each family is drawn; a graph of no family is drawn by its tiers or by its distances."""
