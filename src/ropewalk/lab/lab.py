"""A lab: a fabric that runs as a network of namespaces, for the length of a block or until it is taken down.

with built(LabNetwork(fabric), pinned(routes)) as lab:
    ...  # in the process of host 3: lab.namespace(3).enter(), and only then make connections
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ropewalk.errors import LabError
from ropewalk.lab.commands import (
    cable_lines,
    interface_lines,
    kernel_settings,
    node_lines,
    retable_lines,
    rewire_lines,
    route_lines,
)
from ropewalk.lab.forwarding import LabTables
from ropewalk.lab.job import Connection
from ropewalk.lab.namespaces import Namespace, held
from ropewalk.lab.needs import missing
from ropewalk.lab.netlink import Counted
from ropewalk.lab.network import LabNetwork, host_address, interface
from ropewalk.lab.process import TEMPORARY, Batch, KernelRefusal, LabProcess
from ropewalk.lab.queues import flow_lines, rate_line, shaping_lines
from ropewalk.routing import Routes


@dataclass(frozen=True, eq=False)
class Lab:
    """A network that is up, and the process through which it is changed."""

    network: LabNetwork
    forwarding: LabTables
    process: LabProcess

    def namespace(self, host: int) -> Namespace:
        return Namespace(self.process.holder, host, host_address(host))

    def set_rates(self, rates: dict[int, int]) -> None:
        """Give links other speeds, in bits per second of the lab."""
        batches = []
        for link, bits in rates.items():
            cable, end = self.network.end_of_link[link]
            node = self.network.cables[cable].nodes[end]
            batches.append((node, "tc", [rate_line(self.network, cable, bits)]))
        self.process.ask(batches=batches)

    def cut(self, cable: int) -> None:
        """Take a cable down: both ends lose their carrier, and the kernel drops the routes over it."""
        lines = [f"link set {interface(cable)} down"]
        self.process.ask(batches=[(node, "ip", lines) for node in self.network.cables[cable].nodes])

    def restore(self, cable: int, still_cut: frozenset[int] = frozenset()) -> None:
        """Bring a cable up again, with the routes over it; others may still be cut."""
        nodes = self.network.cables[cable].nodes
        self.process.ask(
            batches=[(node, "ip", interface_lines(self.network, cable, end)) for end, node in enumerate(nodes)]
        )
        routes = ((node, route_lines(self.network, self.forwarding, node, still_cut)) for node in nodes)
        self.process.ask(batches=[(node, "ip", lines) for node, lines in routes])

    @contextmanager
    def routed(self, tables: LabTables) -> Iterator[Lab]:
        """The same network with other tables, for the length of a block."""
        self._retable(self.forwarding, tables)
        try:
            yield replace(self, forwarding=tables)
        finally:
            self._retable(tables, self.forwarding)

    @contextmanager
    def fair(self, connections: Sequence[Connection], routes: Routes) -> Iterator[None]:
        """Connections take turns on the links they cross, for the length of a block, unless these are FIFO."""
        if not self.network.settings.fair:
            yield
            return
        self._classes(flow_lines(self.network, connections, routes))
        try:
            yield
        finally:
            there = self.process.count().keys()  # somebody may have changed circuits meanwhile
            lines = flow_lines(self.network, connections, routes, "del")
            self._classes(
                {node: [line for line in some if (node, line.split()[3]) in there] for node, some in lines.items()}
            )

    def _classes(self, lines: dict[int, list[str]]) -> None:
        self.process.ask(batches=[(node, "tc", some) for node, some in lines.items() if some])

    def _retable(self, before: LabTables, after: LabTables) -> None:
        nodes = range(self.network.fabric.nodes)
        batches = [(node, "ip", retable_lines(self.network, before, after, node)) for node in nodes]
        self.process.ask(batches=[(node, tool, lines) for node, tool, lines in batches if lines])

    def rewired(self, network: LabNetwork, tables: LabTables, dark_s: float = 0.0) -> Lab:
        """Other circuits between the same nodes: cables that go are unplugged, and after `dark_s` new ones are there.

        Cables that stay carry on meanwhile.
        """
        before, after, process = self.network.cables, network.cables, self.process
        gone = [
            (cable.nodes[0], f"link del {interface(number)}") for number, cable in before.items() if number not in after
        ]
        process.ask(batches=[(node, "ip", [line]) for node, line in gone])
        time.sleep(dark_s)
        nodes, kept = range(network.fabric.nodes), before.keys() & after.keys()
        if cables := cable_lines(network, lambda node: held(process.holder, node), kept):
            process.ask(batches=[(0, "ip", cables)])
        ends = ((node, "ip", rewire_lines(network, node, kept)) for node in nodes)
        speeds = ((node, "tc", shaping_lines(network, node, kept)) for node in nodes)
        process.ask(batches=[(node, tool, lines) for node, tool, lines in (*ends, *speeds) if lines])
        changed = replace(self, network=network)
        changed._retable(self.forwarding, tables)
        return replace(changed, forwarding=tables)

    def counters(self) -> dict[int, Counted]:
        """What every link has sent, by its number in the fabric."""
        counted, link_of = self.process.count(), self.network.link_of_end
        return dict(sorted((link_of[end], one) for end, one in counted.items() if end in link_of))


@contextmanager
def built(network: LabNetwork, forwarding: LabTables, document: str = TEMPORARY) -> Iterator[Lab]:
    """A lab for the length of a block, or longer where its process is told to keep it.

    Until then it ends with this process, however that ends. Where the kernel refuses, everything that it lacks is said.
    """
    network.check()
    try:
        with LabProcess.hold(network.fabric.nodes, document) as process:
            lab = Lab(network, forwarding, process)
            _build(lab)
            yield lab
    except KernelRefusal as problem:
        raise LabError("; ".join(missing()) or str(problem)) from None


def _build(lab: Lab) -> None:
    network, process = lab.network, lab.process
    nodes = range(network.fabric.nodes)
    settings = kernel_settings(network)
    cables = cable_lines(network, lambda node: held(process.holder, node))
    process.ask(settings=[(node, settings) for node in nodes], batches=[(0, "ip", cables)] if cables else [])
    batches: list[Batch] = [(node, "ip", node_lines(network, lab.forwarding, node)) for node in nodes]
    batches += [(node, "tc", lines) for node in nodes if (lines := shaping_lines(network, node))]
    process.ask(batches=batches)
