"""A fabric without what has failed: servers, GPUs, NICs, switches and links by their names.

What is left has no builder, because the arithmetic of a complete fabric would route over what is gone; it is routed by
shortest paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from ropewalk.errors import ClusterError, Findings
from ropewalk.fabric import Fabric
from ropewalk.fabric.checks import require_connected

_SERVER = re.compile(r"server([0-9]{1,6})")
NAMED = 3
"""Names near a wrong one that are offered."""


def without(fabric: Fabric, failed: Iterable[str]) -> Fabric:
    """The fabric that is left; a name that is not in it is refused with names near it.

    >>> from ropewalk.fabric import LeafSpine
    >>> left = without(LeafSpine(2, 2, 2).build(), ["leaf0-spine1"])
    >>> left.links, left.name
    (14, 'leaf-spine:2x2x2 without leaf0-spine1')
    """
    names = tuple(failed)
    findings = Findings(ClusterError, f"failed parts of {fabric.name}")
    gone_node = np.zeros(fabric.nodes, bool)
    gone_link = np.zeros(fabric.links, bool)
    number = {name: node for node, name in enumerate(fabric.node_names)}
    if fabric.server is None:  # every host is a server of one GPU
        number |= {f"gpu{host}.0": host for host in range(fabric.hosts)}
    links = _links_by_name(fabric)
    for name in names:
        server = _SERVER.fullmatch(name)
        if server and (_servers(fabric) == int(server[1])).any():
            gone_node |= _of_server(fabric, int(server[1]))
        elif name in number:
            gone_node[number[name]] = True
        elif name in links:
            gone_link[links[name]] = True
        else:
            findings.add(f"there is no {name}: {_hint(name, fabric, [*number, *links])}")
    findings.raise_if_any()
    gone_link |= gone_node[fabric.link_src] | gone_node[fabric.link_dst]
    left = _kept(fabric, gone_node, gone_link, f"{fabric.name} without {', '.join(names)}")
    require_connected(left)
    return left


def _of_server(fabric: Fabric, server: int) -> NDArray[np.bool_]:
    """GPUs of a server, its NVSwitch and its NICs."""
    own = re.compile(rf"(?:nvswitch{server}|(?:nic|net){server}\.[0-9]+)")
    gone = np.array([own.fullmatch(name) is not None for name in fabric.node_names])
    gone[: fabric.hosts] |= _servers(fabric) == server
    return gone


def _servers(fabric: Fabric) -> NDArray[np.int32]:
    """The server of every host; where none are named, every host is one."""
    return np.arange(fabric.hosts, dtype=np.int32) if fabric.server is None else fabric.server


def _links_by_name(fabric: Fabric) -> dict[str, list[int]]:
    """Links as `a->b` (one direction) and as `a-b` (both directions); parallel ones have one name."""
    found: dict[str, list[int]] = {}
    for link in range(fabric.links):
        src, dst = fabric.node_names[fabric.link_src[link]], fabric.node_names[fabric.link_dst[link]]
        for name in (f"{src}->{dst}", f"{src}-{dst}", f"{dst}-{src}"):
            found.setdefault(name, []).append(link)
    return found


def _hint(name: str, fabric: Fabric, known: list[str]) -> str:
    known = [f"server{number}" for number in np.unique(_servers(fabric)).tolist()] + known
    near = get_close_matches(name, known, n=NAMED, cutoff=0.4)
    examples = [*known[:1], f"{fabric.link_name(0)}"]
    return f"similar names: {', '.join(near)}" if near else f"write names such as {', '.join(examples)}"


def _kept(fabric: Fabric, gone_node: NDArray[np.bool_], gone_link: NDArray[np.bool_], name: str) -> Fabric:
    # Switches that have lost every link are gone with what they joined.
    joined = np.zeros(fabric.nodes, bool)
    joined[fabric.link_src[~gone_link]] = joined[fabric.link_dst[~gone_link]] = True
    keep = ~gone_node
    keep[fabric.hosts :] &= joined[fabric.hosts :]
    number = np.cumsum(keep) - 1
    links = ~gone_link
    server = None
    if fabric.server is not None:
        _, again = np.unique(fabric.server[keep[: fabric.hosts]], return_inverse=True)
        server = again.astype(np.int32)
    return Fabric(
        name=name,
        node_names=tuple(one for one, kept in zip(fabric.node_names, keep.tolist(), strict=True) if kept),
        hosts=int(keep[: fabric.hosts].sum()),
        level=fabric.level[keep],
        link_src=number[fabric.link_src[links]].astype(np.int32),
        link_dst=number[fabric.link_dst[links]].astype(np.int32),
        bandwidth=fabric.bandwidth[links],
        latency=fabric.latency[links],
        cables=fabric.cables[links],
        server=server,
    )
