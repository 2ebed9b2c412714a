"""Links by the names that people type: `leaf0-spine1` is a cable, `leaf0->spine1` one of its two directions."""

from __future__ import annotations

from ropewalk.documents.numbers import is_count
from ropewalk.errors import LabError
from ropewalk.fabric import Fabric
from ropewalk.lab.network import LabNetwork


def links_named(network: LabNetwork, text: str) -> tuple[int, ...]:
    """The links that a name means: `a->b` from a to b, `a-b` both ways; of parallel ones all, or one as `a-b:0`.

    >>> from ropewalk.fabric import Ring
    >>> ring = LabNetwork(Ring(4).build())
    >>> links_named(ring, "h0->h1"), links_named(ring, "h1-h0"), links_named(ring, "h0-h1:0")
    ((0,), (0, 1), (0, 1))
    """
    cables = cables_named(network, text)
    ends, directed = _ends(network.fabric, _split(text)[0])
    found = [link for cable in cables for link in network.cables[cable].links if link >= 0]
    return tuple(link for link in found if not directed or int(network.fabric.link_src[link]) == ends[0])


def cables_named(network: LabNetwork, text: str) -> tuple[int, ...]:
    """The cables between two nodes."""
    name, number = _split(text)
    ends, _ = _ends(network.fabric, name)
    found = tuple(at for at, cable in network.cables.items() if set(cable.nodes) == set(ends))
    if not found:
        fabric = network.fabric
        beside = sorted(
            {node for cable in network.cables.values() if ends[0] in cable.nodes for node in cable.nodes} - {ends[0]}
        )
        others = ", ".join(fabric.node_names[node] for node in beside[:6]) or "nobody"
        raise LabError(f"{fabric.name} has no link {name}: {fabric.node_names[ends[0]]} is connected to {others}")
    if number is None:
        return found
    if number >= len(found):
        raise LabError(f"{name} has {len(found)} parallel cables: number them from {name}:0 to {name}:{len(found) - 1}")
    return (found[number],)


def _split(text: str) -> tuple[str, int | None]:
    name, colon, number = text.rpartition(":")
    return (name, int(number)) if colon and is_count(number) else (text, None)


def _ends(fabric: Fabric, name: str) -> tuple[tuple[int, int], bool]:
    """Both nodes of a name, and whether it is one direction; names of nodes may have dashes themselves."""
    number = {node: at for at, node in enumerate(fabric.node_names)}
    for mark, directed in (("->", True), ("-", False)):
        for at in range(len(name)):
            a, b = name[:at], name[at + len(mark) :]
            if name.startswith(mark, at) and a in number and b in number:
                return (number[a], number[b]), directed
    example = "none"
    if fabric.links:
        example = f"{fabric.node_names[fabric.link_src[0]]}-{fabric.node_names[fabric.link_dst[0]]}"
    raise LabError(f"{name!r} is not a link of {fabric.name}: write both ends, such as {example}")
