"""A fabric as cables and addresses: which virtual cables join which namespaces, and what everything is called.

Two opposite links become one cable, a pair of interfaces with the same name; each end sends its link of the fabric at
the speed of that link. A link without an opposite is a cable of which one end sends. All addresses are
private and exist only inside the namespaces of one lab, so every lab has the same.

>>> from ropewalk.fabric import Ring
>>> ring = LabNetwork(Ring(3, 2.5e6).build())
>>> ring.cables[0], ring.rate_bits(0), host_address(2)
(Cable(nodes=(0, 1), links=(0, 1)), 20000000, '10.0.0.130')
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from ropewalk.errors import Findings, LabError
from ropewalk.fabric import Fabric
from ropewalk.units import show_bandwidth

MOST_NODES = 128
"""Hosts and switches of a lab: beyond it two cores are busy with packets at any speed."""
MOST_CABLES = 4096
SLOWEST_BITS, FASTEST_BITS = 100_000, 100_000_000_000
"""Speeds that a token bucket of the kernel keeps."""
FAIR, FIFO = "fair", "fifo"
"""Queues in front of links: flows take turns, or packets leave in the order in which they came."""
_HOSTS_OF_BLOCK = 128
"""Hosts 0 to 127 have the upper half of a block of 256, so that 2, 4, 8, … hosts of a leaf are a subnet."""
_SEGMENT_SECONDS, _LEAST_SEGMENT, _LARGEST_SEGMENT = 0.005, 6_000, 65_536
"""Segments that TCP hands to the network at once: short turns on the slowest link, and not too many for the cores."""


@dataclass(frozen=True)
class LabSettings:
    """How the network of a lab is set up beyond its fabric."""

    mtu: int = 1500
    congestion: str = "cubic"
    """The congestion control of TCP, which ranks choose for each connection."""
    queue: str = FAIR
    """How flows share a link: `fair` or `fifo`."""
    queue_bytes: int = 4 << 20
    """What may wait for a link: more than all windows together, so that nothing is dropped."""
    window_bytes: int = 32 << 10
    """What a connection may have under way: small windows share links as max-min fair flows do, large ones do not."""

    @property
    def fair(self) -> bool:
        return self.queue == FAIR


@dataclass(frozen=True)
class Cable:
    """Two interfaces: end e is in the namespace of `nodes[e]` and sends `links[e]`, or nothing (-1)."""

    nodes: tuple[int, int]
    links: tuple[int, int]


@dataclass(frozen=True, eq=False)
class LabNetwork:
    """A fabric to be built: at 1/`scale` of its speeds."""

    fabric: Fabric
    scale: float = 1.0
    settings: LabSettings = field(default_factory=LabSettings)
    numbers: tuple[int, ...] = ()
    """Of its cables in the order of links; from 0 on unless given. A cable that stays keeps its number."""

    def check(self) -> None:
        """Refuse a fabric that no machine can build, with all the reasons."""
        findings = Findings(LabError, f"lab of {self.fabric.name}")
        if self.fabric.nodes > MOST_NODES or len(self.cables) > MOST_CABLES:
            findings.add(
                f"it has {self.fabric.nodes} hosts and switches and {len(self.cables)} cables, and a lab at most "
                f"{MOST_NODES} and {MOST_CABLES}: build a smaller fabric of the same kind"
            )
        if self.settings.queue not in (FAIR, FIFO):
            findings.add(f"unknown queue {self.settings.queue!r}: use {FAIR} or {FIFO}")
        if not self.scale > 0:
            findings.add(f"scale must be above 0, got {self.scale:g}: 5000 builds 100 Gbps as 20 Mbps")
        elif self.fabric.links:
            slowest, fastest = (
                float(value) / self.scale for value in (min(self.fabric.bandwidth), max(self.fabric.bandwidth))
            )
            if 8 * slowest < SLOWEST_BITS or 8 * fastest > FASTEST_BITS:
                speeds = " to ".join(dict.fromkeys((show_bandwidth(slowest), show_bandwidth(fastest))))
                findings.add(
                    f"its links would run at {speeds}: choose --scale so "
                    f"that all are between {show_bandwidth(SLOWEST_BITS / 8)} and {show_bandwidth(FASTEST_BITS / 8)}"
                )
        findings.raise_if_any()

    @cached_property
    def cables(self) -> dict[int, Cable]:
        """Every link once, with an opposite link where there is one; by number."""
        paired = _paired(self.fabric)
        return dict(zip(self.numbers or range(len(paired)), paired, strict=True))

    @cached_property
    def end_of_link(self) -> dict[int, tuple[int, int]]:
        """The cable that carries each link, and the end that sends it."""
        return {
            link: (number, end)
            for number, cable in self.cables.items()
            for end, link in enumerate(cable.links)
            if link >= 0
        }

    @cached_property
    def link_of_end(self) -> dict[tuple[int, str], int]:
        """The link that an interface sends, by its node and name."""
        return {
            (self.cables[cable].nodes[end], interface(cable)): link for link, (cable, end) in self.end_of_link.items()
        }

    @cached_property
    def ends_of_node(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """(cable, end) of every interface of each node."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.fabric.nodes)]
        for number, cable in self.cables.items():
            for end, node in enumerate(cable.nodes):
                found[node].append((number, end))
        return tuple(map(tuple, found))

    def rewired(self, fabric: Fabric) -> LabNetwork:
        """The same nodes with other links: cables between the same nodes keep their numbers, others get new ones."""
        left: dict[frozenset[int], deque[int]] = defaultdict(deque)
        for number, cable in self.cables.items():
            left[frozenset(cable.nodes)].append(number)
        fresh = count(1 + max(self.cables, default=-1))
        known = (left[frozenset(cable.nodes)] for cable in _paired(fabric))
        numbers = tuple(same.popleft() if same else next(fresh) for same in known)
        return LabNetwork(fabric, self.scale, self.settings, numbers)

    def rate_bits(self, link: int) -> int:
        """Bits per second of a link in the lab."""
        return round(8 * float(self.fabric.bandwidth[link]) / self.scale)

    @cached_property
    def segment_bytes(self) -> int:
        """The largest segment that TCP hands to the network; where flows take turns, 5 ms of the slowest link.

        >>> from ropewalk.fabric import Ring
        >>> LabNetwork(Ring(3, 2.5e6).build()).segment_bytes
        12500
        """
        if not self.settings.fair or not self.fabric.links:
            return _LARGEST_SEGMENT
        slowest = float(min(self.fabric.bandwidth)) / self.scale
        return max(_LEAST_SEGMENT, min(int(slowest * _SEGMENT_SECONDS), _LARGEST_SEGMENT))

    @property
    def injected_bits(self) -> float:
        """Bits per second that all hosts together can send."""
        return 8 * float(self.fabric.host_bandwidth().sum()) / self.scale


def _paired(fabric: Fabric) -> list[Cable]:
    """Links with an opposite one where there is one, in the order of links; the first end is the lower node."""
    ends = list(zip(fabric.link_src.tolist(), fabric.link_dst.tolist(), strict=True))
    waiting: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    opposite: dict[int, int] = {}
    for link, (src, dst) in enumerate(ends):
        if waiting[dst, src]:
            opposite[waiting[dst, src].popleft()] = link
        else:
            waiting[src, dst].append(link)
    paired = set(opposite.values())
    cables = (Cable(ends[link], (link, opposite.get(link, -1))) for link in range(len(ends)) if link not in paired)
    return [
        cable if cable.nodes[0] < cable.nodes[1] else Cable(cable.nodes[::-1], cable.links[::-1]) for cable in cables
    ]


def interface(cable: int) -> str:
    """The name of both ends of a cable."""
    return f"c{cable}"


def hardware_address(cable: int, end: int) -> str:
    """The Ethernet address of an end; locally administered.

    >>> hardware_address(300, 1)
    '02:72:77:01:2c:01'
    """
    return f"02:72:77:{cable >> 8:02x}:{cable & 255:02x}:{end:02x}"


def host_address(host: int, path: int = 0) -> str:
    """The address of a host for the packets of one of the paths between hosts; most routings have one path.

    >>> host_address(0), host_address(260, path=2)
    ('10.0.0.128', '10.2.2.132')
    """
    block, place = divmod(host, _HOSTS_OF_BLOCK)
    return f"10.{path}.{block}.{_HOSTS_OF_BLOCK + place}"


def link_address(cable: int, end: int) -> str:
    """The address of an end of a cable; both ends are a network of two.

    >>> link_address(0, 1), link_address(200, 0)
    ('172.16.0.1', '172.16.1.144')
    """
    number = 2 * cable + end
    return f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
