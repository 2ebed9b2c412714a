"""What `ip`, `tc` and the kernel's settings are told to build a network: lines of batches, one list per namespace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ropewalk.lab.forwarding import LabTables, Table
from ropewalk.lab.namespaces import ADDRESS_LABEL
from ropewalk.lab.network import LabNetwork, hardware_address, host_address, interface, link_address

_FIRST_TABLE = 1000
"""Tables by source are numbered from here."""


def kernel_settings(network: LabNetwork) -> dict[str, str]:
    """Files of /proc/sys in every namespace: forwarding, ECMP by addresses and ports, TCP that starts warm."""
    ipv4, window = "/proc/sys/net/ipv4", network.settings.window_bytes
    return {
        "/proc/sys/net/ipv6/conf/all/disable_ipv6": "1",
        "/proc/sys/net/ipv6/conf/default/disable_ipv6": "1",
        f"{ipv4}/ip_forward": "1",
        f"{ipv4}/conf/all/rp_filter": "0",
        f"{ipv4}/conf/default/rp_filter": "0",
        f"{ipv4}/fib_multipath_hash_policy": "3",
        f"{ipv4}/fib_multipath_hash_fields": str(0x37),
        f"{ipv4}/tcp_slow_start_after_idle": "0",
        f"{ipv4}/tcp_no_metrics_save": "1",
        f"{ipv4}/tcp_rmem": f"4096 {2 * window} {2 * window}",
        f"{ipv4}/tcp_wmem": f"4096 {window} {window}",
    }


def cable_lines(network: LabNetwork, namespace: Callable[[int], str], but: Collection[int] = frozenset()) -> list[str]:
    """Make all cables but some, each end in the namespace of its node, which `namespace` names by a path.

    >>> from ropewalk.fabric import Ring
    >>> print(cable_lines(LabNetwork(Ring(3).build()), lambda node: f"/ns{node}")[0].replace(" type", "\\n type"))
    link add name c0 mtu 1500 address 02:72:77:00:00:00 netns /ns0
     type veth peer name c0 mtu 1500 address 02:72:77:00:00:01 netns /ns1
    """

    def end(cable: int, side: int, node: int) -> str:
        address = hardware_address(cable, side)
        return f"name {interface(cable)} mtu {network.settings.mtu} address {address} netns {namespace(node)}"

    return [
        f"link add {end(number, 0, cable.nodes[0])} type veth peer {end(number, 1, cable.nodes[1])}"
        for number, cable in network.cables.items()
        if number not in but
    ]


def node_lines(network: LabNetwork, forwarding: LabTables, node: int) -> list[str]:
    """Everything that `ip` is told inside one namespace, from loopback to routes."""
    lines = ["link set lo up"]
    if node < network.fabric.hosts:
        lines += [_address_line("add", node, path) for path in range(forwarding.paths)]
    for cable, end in network.ends_of_node[node]:
        lines += interface_lines(network, cable, end)
    lines += _rule_lines(forwarding, node)
    return lines + route_lines(network, forwarding, node)


def interface_lines(network: LabNetwork, cable: int, end: int) -> list[str]:
    """One end of a cable with its address and its neighbour, whom nobody has to ask for."""
    name, other = interface(cable), 1 - end
    return [
        f"addr replace {link_address(cable, end)}/31 dev {name}",
        f"link set {name} gso_max_size {network.segment_bytes} up",
        f"neigh replace {link_address(cable, other)} lladdr {hardware_address(cable, other)} dev {name} nud permanent",
    ]


def route_lines(network: LabNetwork, forwarding: LabTables, node: int, cut: frozenset[int] = frozenset()) -> list[str]:
    """The routes of a node: its main table, then a table for each source that goes elsewhere; none over cut cables."""
    tables = forwarding.nodes[node]
    named = {"main": tables.main}
    named |= {str(number): table for number, table in enumerate(tables.by_source.values(), _FIRST_TABLE)}
    whole = {name: _without(network, table, cut) for name, table in named.items()}
    return [line for name, table in whole.items() for line in _table_lines(network, node, table, name)]


def retable_lines(network: LabNetwork, before: LabTables, after: LabTables, node: int) -> list[str]:
    """Replace the tables of a node by others: rules first, then addresses, then routes."""
    lines = [line.replace("rule add", "rule del") for line in _rule_lines(before, node)]
    lines += [f"route flush table {number}" for number, _ in enumerate(before.nodes[node].by_source, _FIRST_TABLE)]
    if node < network.fabric.hosts:
        lines += [_address_line("add", node, path) for path in range(before.paths, after.paths)]
    lines += _rule_lines(after, node) + route_lines(network, after, node)
    gone = before.nodes[node].main.keys() - after.nodes[node].main.keys()
    lines += [f"route flush exact {destination}/32 table main" for destination in sorted(gone)]
    if node < network.fabric.hosts:
        lines += [_address_line("del", node, path) for path in range(after.paths, before.paths)]
    return lines


def _address_line(verb: str, host: int, path: int) -> str:
    label = f" label {ADDRESS_LABEL}" if verb == "add" else ""
    return f"addr {verb} {host_address(host, path)}/32 dev lo{label}"


def rewire_lines(network: LabNetwork, node: int, kept: Collection[int]) -> list[str]:
    """The new interfaces of a node, those of cables that are not kept."""
    ends = (one for one in network.ends_of_node[node] if one[0] not in kept)
    return [line for cable, end in ends for line in interface_lines(network, cable, end)]


def _rule_lines(forwarding: LabTables, node: int) -> list[str]:
    sources = forwarding.nodes[node].by_source
    return [f"rule add from {source} lookup {number}" for number, source in enumerate(sources, _FIRST_TABLE)]


def _without(network: LabNetwork, table: Table, cut: frozenset[int]) -> Table:
    """A table without next hops over cut cables, and without destinations that have no other."""
    left = {
        destination: tuple(link for link in links if network.end_of_link[link][0] not in cut)
        for destination, links in table.items()
    }
    return {destination: links for destination, links in left.items() if links}


def _table_lines(network: LabNetwork, node: int, table: Table, name: str) -> Iterator[str]:
    for destination, links in table.items():
        hops = [_hop(network, link) for link in links]
        source = f" src {_own_address(destination, node)}" if node < network.fabric.hosts else ""
        via = f" {hops[0]}" if len(hops) == 1 else "".join(f" nexthop {hop}" for hop in hops)
        yield f"route replace {destination}/32 table {name}{source}{via}"


def _hop(network: LabNetwork, link: int) -> str:
    cable, end = network.end_of_link[link]
    return f"via {link_address(cable, 1 - end)} dev {interface(cable)}"


def _own_address(destination: str, node: int) -> str:
    """The address of a host on the path that a destination address is for."""
    return host_address(node, int(destination.split(".")[1]))
