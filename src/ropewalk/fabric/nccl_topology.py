"""One server as NCCL sees it: the XML that `NCCL_TOPO_DUMP_FILE` (or RCCL) writes, as GPUs, switches and links.

GPUs are hosts, in the order of their ranks. NVSwitches are one switch, as every GPU stripes over all of them. PCIe
switches, sockets (NUMA nodes), network cards and their ports are switches too, so that a network of several servers can
be plugged into the ports (`nccl_cluster`). The schema is described in docs/fabric-files.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ropewalk.documents.from_xml import Element, read_xml
from ropewalk.errors import FabricError, Findings
from ropewalk.fabric.fabric import Fabric
from ropewalk.fabric.nccl_attributes import bus_of, count_of, lines_of, microseconds_of, pcie_of, text_of, whole_of
from ropewalk.fabric.nccl_server import INSIDE, NcclServer, Port, without_ports
from ropewalk.fabric.nccl_speeds import INSIDE_A_CHIP, PHYSICAL, LinkSpeeds, between_cpus
from ropewalk.fabric.sheet import LinkRow, NodeRow, assemble

VERSIONS = ("1", "2")
"""NCCL writes 1, RCCL 2."""
POWER_BRIDGE = "0x068001"
"""The class of what joins a GPU to a POWER socket; other targets that are no GPU are NVSwitches."""


def read_nccl_topology(path: str | Path, speeds: LinkSpeeds = PHYSICAL, inside: str = "planned") -> Fabric:
    """The fabric inside one server, without its network cards, which lead nowhere as long as it is alone.

    `inside` says which links are used: `planned`, as NCCL does, means NVLink alone where that joins all GPUs.
    """
    if inside not in INSIDE:
        raise FabricError(f"the inside of a server cannot be used as {inside!r}: choose {', '.join(INSIDE)}")
    subject = f"NCCL topology {path}"
    findings = Findings(FabricError, subject)
    server = without_ports(INSIDE[inside](read_server(Path(path), findings, speeds), findings))
    return assemble(findings, Path(path).stem, [*server.gpus, *server.switches], [*server.nvlinks, *server.links])


def read_server(path: Path, findings: Findings, speeds: LinkSpeeds = PHYSICAL, first: int = 0) -> NcclServer:
    """Read a file as the servers from number `first` on; what is wrong with it is added to the findings."""
    top = read_xml(path, findings.subject, FabricError)
    if top.name != "system":
        findings.add(
            f"line {top.line}: begins with <{top.name}>, a topology with <system>: give the file that "
            "NCCL_TOPO_DUMP_FILE names"
        )
        return NcclServer()
    if top.attributes.get("version", "1") not in VERSIONS:
        findings.add(
            f"line {top.line}: version {top.attributes['version']!r} is unknown: dump it with NCCL or RCCL again"
        )
    draft = _Reader(findings, speeds, first)
    for element in top.inside:
        if element.name == "cpu":
            draft.cpu(element)
        else:
            draft.stranger(element, top)
    return draft.server()


@dataclass
class _Gpu:
    element: Element
    server: int
    bus: int
    rank: int
    cpu: str
    """The socket that it hangs on."""
    name: str = ""

    @property
    def where(self) -> str:
        return f"line {self.element.line}"


@dataclass
class _Cpu:
    name: str
    server: int
    where: str
    bandwidth: float | None


class _Reader:
    """Walks the elements once; GPUs get their names and NVLinks when all of them are known."""

    def __init__(self, findings: Findings, speeds: LinkSpeeds, first: int) -> None:
        self.findings, self.speeds, self.first = findings, speeds, first
        self.server_of_hash: dict[str, int] = {}
        self.found = NcclServer()
        self.gpus: list[_Gpu] = []
        self.cpus: list[_Cpu] = []
        self.gpu_parents: list[tuple[_Gpu, str, float | None]] = []
        self.pci_switches: dict[tuple[int, int], str] = {}
        self.pci_links: list[tuple[int, str, Element]] = []
        self.count: Counter[tuple[str, int]] = Counter()

    def cpu(self, element: Element) -> None:
        key = element.attributes.get("host_hash", "")
        server = self.server_of_hash.setdefault(key, self.first + len(self.server_of_hash))
        whole_of(element, "numaid", self.findings)
        name = self._switch("cpu", server, element, 0)
        arch, vendor = element.attributes.get("arch", ""), element.attributes.get("vendor", "")
        family, model = (whole_of(element, key, self.findings, default=0) or 0 for key in ("familyid", "modelid"))
        self.cpus.append(_Cpu(name, server, f"line {element.line}", between_cpus(arch, vendor, family, model)))
        level = 0
        for inner in element.inside:
            if inner.name == "pci":
                level = max(level, self._pci(inner, name, server))
            elif inner.name == "nic":
                self._nic(inner, name, server, INSIDE_A_CHIP)
            else:
                self.stranger(inner, element)
        self._set_level(name, level + 1)

    def stranger(self, element: Element, parent: Element) -> None:
        self.findings.add(f"line {element.line}: <{element.name}> inside <{parent.name}> is unknown: remove it")

    def _pci(self, element: Element, parent: str, server: int) -> int:
        """Add a device and all behind it; the level of what it became."""
        bus = bus_of(element, "busid", self.findings)
        kind = text_of(element, "class", self.findings) or ""
        gpus, nics = list(element.all("gpu")), list(element.all("nic"))
        behind = [inner for inner in element.inside if inner.name == "pci"]
        for inner in element.inside:
            if inner.name not in ("pci", "gpu", "nic", "pcilink"):
                self.stranger(inner, element)
        if gpus:
            self._gpu(element, gpus, parent, server, bus)
            return 0
        if nics:
            for nic in nics:
                self._nic(nic, parent, server, pcie_of(element, self.speeds, self.findings))
            return 0
        if kind.startswith("0x03"):
            self.findings.add(
                f"line {element.line}: the GPU {element.attributes.get('busid')} has no <gpu> element, so its NVLinks "
                "are not known: dump the topology from a running job with NCCL_TOPO_DUMP_FILE"
            )
            return 0
        if not behind:
            return 0  # a card that no GPU communicates through
        name = self._switch("pci", server, element, 0)
        self._link(parent, name, pcie_of(element, self.speeds, self.findings), element)
        if bus is not None:
            self.pci_switches[server, bus] = name
        self.pci_links += [(server, name, link) for link in element.all("pcilink")]
        level = 1 + max(self._pci(inner, name, server) for inner in behind)
        self._set_level(name, level)
        return level

    def _gpu(self, element: Element, gpus: list[Element], parent: str, server: int, bus: int | None) -> None:
        gpu = gpus[0]
        if len(gpus) > 1:
            self.findings.add(
                f"line {gpus[1].line}: a second <gpu> in one device: partitioned GPUs are not supported: dump "
                "the topology with whole GPUs"
            )
        dev = whole_of(gpu, "dev", self.findings)
        rank = whole_of(gpu, "rank", self.findings, default=dev)
        speed = pcie_of(element, self.speeds, self.findings)
        if bus is None or rank is None or dev == -1:  # reported, or not visible to the job
            return
        found = _Gpu(gpu, server, bus, rank, self.cpus[-1].name)
        self.gpus.append(found)
        self.gpu_parents.append((found, parent, speed))
        for inner in gpu.inside:
            if inner.name not in ("nvlink", "xgmi", "c2c"):
                self.stranger(inner, gpu)

    def _nic(self, element: Element, parent: str, server: int, bandwidth: float | None) -> None:
        nets = [net for net in element.all("net") if "dev" in net.attributes and net.attributes.get("net", "1") != "0"]
        for inner in element.inside:
            if inner.name != "net":
                self.stranger(inner, element)
        if not nets:
            return
        name = self._switch("nic", server, element, 1)
        self._link(parent, name, bandwidth, element)
        for net in nets:
            number = whole_of(net, "dev", self.findings)
            megabits = whole_of(net, "speed", self.findings)
            latency = microseconds_of(net, "latency", self.findings)
            if number is None or megabits is None or latency is None:
                continue
            if megabits <= 0:
                self.findings.add(
                    f"line {net.line}: port {net.attributes.get('name', number)} has speed {megabits}, so the card did "
                    "not report it: write its Mbit/s there, such as 200000"
                )
                continue
            port = self._node("net", server, number)
            self.found.switches.append(NodeRow(port, 1, f"line {net.line}"))
            self._link(name, port, megabits * 1e6 / 8, net, latency=latency)
            self.found.ports.append(Port(port, name, megabits * 1e6 / 8, server, number))

    def server(self) -> NcclServer:
        """Everything together, once all elements were read."""
        self._name_gpus()
        for gpu, parent, speed in self.gpu_parents:
            self._link(gpu.name, parent, speed, gpu.element)
        self._nvlinks()
        self._other_links()
        found = self.found
        found.servers = len(self.server_of_hash)
        found.ports.sort(key=lambda port: (port.server, port.number))
        if not self.gpus and not self.findings:
            self.findings.add("there is no GPU: dump the topology from a job that uses the GPUs")
        return found

    def _name_gpus(self) -> None:
        ranks = [gpu.rank for gpu in self.gpus]
        for twice in sorted({rank for rank in ranks if ranks.count(rank) > 1}):
            lines = ", ".join(str(gpu.element.line) for gpu in self.gpus if gpu.rank == twice)
            self.findings.add(f"lines {lines}: several GPUs have rank {twice}: give each its own number")
        for gpu in sorted(self.gpus, key=lambda gpu: (gpu.server, gpu.rank)):
            gpu.name = self._node("gpu", gpu.server, self._next("gpu", gpu.server))
            self.found.gpus.append(NodeRow(gpu.name, 0, gpu.where, gpu.server))

    def _nvlinks(self) -> None:
        of_bus = {(gpu.server, gpu.bus): gpu for gpu in self.gpus}
        direct: dict[tuple[str, str], tuple[int, float, Element]] = {}
        switched: dict[str, tuple[int, float, Element]] = {}
        for gpu in self.gpus:
            for line in lines_of(gpu.element, self.speeds, self.findings):
                if line.target_class.startswith("0x03"):
                    peer = of_bus.get((gpu.server, line.target)) if line.target is not None else None
                    if peer is not None and peer is not gpu:  # other GPUs are outside the job
                        cables = direct.get((gpu.name, peer.name), (0, 0.0, line.element))[0] + line.count
                        direct[gpu.name, peer.name] = cables, line.bandwidth, line.element
                elif line.target_class == POWER_BRIDGE:
                    self._link(gpu.name, gpu.cpu, line.count * line.bandwidth, line.element, line.count)
                else:
                    cables = switched.get(gpu.name, (0, 0.0, line.element))[0] + line.count
                    switched[gpu.name] = cables, line.bandwidth, line.element
        self._direct(direct)
        if switched:
            first = next(iter(switched.values()))[2]
            switch = self._node("nvswitch", self.first, None)
            self.found.switches.append(NodeRow(switch, 1, f"line {first.line}"))
            for name, (cables, bandwidth, element) in switched.items():
                self._nvlink(name, switch, cables * bandwidth, element, cables)

    def _direct(self, direct: dict[tuple[str, str], tuple[int, float, Element]]) -> None:
        for (here, there), (cables, bandwidth, element) in direct.items():
            back = direct.get((there, here), (0, 0.0, element))[0]
            if back != cables:
                self.findings.add(
                    f"line {element.line}: {here} has {cables} links to {there}, which has {back} back: links are "
                    "bidirectional: fix one of the two counts"
                )
            if here < there or not back:
                self._nvlink(here, there, cables * bandwidth, element, cables)

    def _other_links(self) -> None:
        for gpu, element in [(owner, c2c) for owner in self.gpus for c2c in owner.element.all("c2c")]:
            count, megabytes = count_of(element, self.findings), whole_of(element, "bw", self.findings)
            if count is not None and megabytes is not None:
                self._link(gpu.name, gpu.cpu, count * megabytes * 1e6, element, count)
        joined: set[frozenset[str]] = set()
        for server, name, element in self.pci_links:
            target = bus_of(element, "target", self.findings)
            peer = None if target is None else self.pci_switches.get((server, target))
            if peer is not None and peer != name and frozenset((name, peer)) not in joined:
                joined.add(frozenset((name, peer)))
                self._link(name, peer, INSIDE_A_CHIP, element)
        for at, one in enumerate(self.cpus):
            for other in self.cpus[at + 1 :]:
                if one.server != other.server:
                    continue
                if one.bandwidth is None:
                    self.findings.add(
                        f"{one.where}: the interconnect between sockets of this processor is not known: write arch "
                        "(x86_64, arm64, ppc64) and vendor (GenuineIntel, AuthenticAMD) as NCCL does"
                    )
                    break
                self.found.links.append(LinkRow(one.name, other.name, one.bandwidth, 0.0, 1, True, other.where))

    def _switch(self, kind: str, server: int, element: Element, level: int) -> str:
        name = self._node(kind, server, self._next(kind, server))
        self.found.switches.append(NodeRow(name, level, f"line {element.line}"))
        return name

    def _set_level(self, name: str, level: int) -> None:
        at = next(at for at, row in enumerate(self.found.switches) if row.name == name)
        self.found.switches[at] = NodeRow(name, max(level, 1), self.found.switches[at].where)

    def _next(self, kind: str, server: int) -> int:
        self.count[kind, server] += 1
        return self.count[kind, server] - 1

    def _node(self, kind: str, server: int, number: int | None) -> str:
        return f"{kind}{server}" if number is None else f"{kind}{server}.{number}"

    def _nvlink(self, src: str, dst: str, bandwidth: float, element: Element, cables: int) -> None:
        self.found.nvlinks.append(LinkRow(src, dst, bandwidth, 0.0, cables, True, f"line {element.line}"))

    def _link(
        self, src: str, dst: str, bandwidth: float | None, element: Element, cables: int = 1, latency: float = 0.0
    ) -> None:
        self.found.links.append(LinkRow(src, dst, bandwidth, latency, cables, True, f"line {element.line}"))
