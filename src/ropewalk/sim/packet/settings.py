"""What a packet-level run can be told: packets, switches, the transport, how transfers spread over paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from numbers import Integral

from ropewalk.errors import Findings, GraphError
from ropewalk.sim.packet.transport import TransportSettings


class PathSpread(Enum):
    """What becomes of a transfer between two hosts that have several paths."""

    HASH = "hash"
    """One flow on one path, chosen by a hash of seed and transfer with the shares of the paths as chances."""
    SPLIT = "split"
    """One flow for each path, with its share of the bytes."""
    SPRAY = "spray"
    """Packets take the paths in turn. Paths that leave by different ports are different flows."""


class Completion(Enum):
    """When a transfer is done."""

    RECEIVER = "receiver"
    """When its last byte has arrived: what a collective waits for."""
    SENDER = "sender"
    """When the last acknowledgement is back: what simulators report as flow completion time."""


@dataclass(frozen=True)
class SwitchSettings:
    """Buffer, pause and marking thresholds of every switch."""

    buffer_bytes: int | None = None
    """Of a whole switch. None: 12 MiB for each 40 Gbps of the fastest port, as chips have it, and no less than twice
    what reserve and headroom of its ports take."""
    reserve_bytes: int = 4096
    """Kept for each port that comes in."""
    headroom_bytes: int | None = None
    """Kept for each port that comes in, for what is under way when a pause is sent. None: three times what fits on the
    wire, or what a pause needs at worst where that is more."""
    alpha_shift: int = 3
    """A class of an ingress may hold the free shared buffer shifted right by this: 3 is an eighth."""
    resume_bytes: int = 3072
    """How far below its threshold an ingress must fall before its sender may go on."""
    pause: bool = True
    """Priority flow control. Without it the fabric is lossy: packets beyond a limit of the egress queue are dropped."""
    pause_frames_first: bool = True
    """Whether pause frames overtake acknowledgements that wait for the same port."""
    queue_limit_bytes: int | None = None
    """Lossy only: the most that one egress queue holds, whatever the buffer has left."""
    fair: bool = False
    """Whether flows take turns at every port, byte by byte, instead of leaving in the order in which packets came."""
    mark: bool = True
    kmin_bytes: float | None = None
    """Marking starts above this queue. None: 4 kB for each Gbps of the port (100 kB at 25 Gbps)."""
    kmax_bytes: float | None = None
    """Every packet is marked above this queue. None: 16 kB for each Gbps of the port."""
    pmax: float = 0.2

    def check(self, findings: Findings, wire_bytes: int) -> None:
        if self.buffer_bytes is not None and self.buffer_bytes < wire_bytes:
            findings.add(
                f"the switch buffer of {self.buffer_bytes} bytes does not hold one packet of {wire_bytes} bytes: "
                "enlarge the buffer or shrink the packets"
            )
        for label, value in (
            ("reserve", self.reserve_bytes),
            ("resume offset", self.resume_bytes),
            ("headroom", self.headroom_bytes or 0),
        ):
            if value < 0:
                findings.add(f"the {label} of a port is {value} bytes: give zero or more")
        if not 0 <= self.alpha_shift <= 30:
            findings.add(f"alpha_shift is {self.alpha_shift}: give 0 (the whole free buffer) to 30")
        if self.queue_limit_bytes is not None and self.queue_limit_bytes < wire_bytes:
            findings.add(
                f"the queue limit of {self.queue_limit_bytes} bytes does not hold one packet of {wire_bytes} bytes: "
                "raise it"
            )
        if not 0 <= self.pmax <= 1:
            findings.add(f"Pmax is {self.pmax}: a probability is between 0 and 1")
        if (self.kmin_bytes is None) != (self.kmax_bytes is None):
            findings.add(
                "only one of Kmin and Kmax is given: give both, or neither for values that grow with the port speed"
            )
        elif self.kmin_bytes is not None and self.kmax_bytes is not None:
            for label, threshold in (("Kmin", self.kmin_bytes), ("Kmax", self.kmax_bytes)):
                if not threshold >= 0:
                    findings.add(f"{label} is {threshold} bytes: give zero or more")
            if self.kmin_bytes > self.kmax_bytes:
                findings.add(
                    f"Kmin is {self.kmin_bytes:.0f} bytes, above Kmax with {self.kmax_bytes:.0f}: "
                    "Kmin must not exceed Kmax"
                )


_WHOLE = ("buffer_bytes", "reserve_bytes", "headroom_bytes", "alpha_shift", "resume_bytes", "queue_limit_bytes")


def _check_whole(record: object, names: tuple[str, ...], findings: Findings) -> None:
    """Bytes, classes and seeds are counted, not measured."""
    for name in names:
        value = getattr(record, name)
        if value is not None and not isinstance(value, Integral):
            findings.add(f"{name} is {value!r}: give a whole number")


@dataclass(frozen=True)
class PacketSettings:
    """Everything about a packet-level run that is neither the tasks nor the fabric nor the routes."""

    transport: TransportSettings
    switch: SwitchSettings = field(default_factory=SwitchSettings)
    payload_bytes: int = 1000
    header_bytes: int = 48
    ack_bytes: int = 60
    pause_bytes: int = 64
    ack_in_control_class: bool = False
    """Acknowledgements travel in the strict control class, uncounted, instead of in the class of their data."""
    host_queue: bool = False
    """Whether hosts put all that windows allow into the queue of their port at once, as the TCP of a kernel does, and
    acknowledgements behind it. Otherwise a port asks its flows in turn when it is free, as NICs do."""
    token_buckets: bool = False
    """Whether links are shaped by token buckets: a packet arrives as it leaves, and then its link waits for as long as
    a wire would have taken."""
    spread: PathSpread = PathSpread.HASH
    completion: Completion = Completion.RECEIVER
    most_classes: int = 7
    """Data classes that ports tell apart; where transfers have more priorities, neighbouring ones share a class."""
    seed: int = 0
    truncate_ns: bool = False
    """Cut times on the wire to whole nanoseconds, as ns-3 does; otherwise they are exact to the picosecond."""
    sample_every_s: float | None = None
    """Where given: queues of all links and bytes received by hosts are noted this often (less so in long runs)."""

    @property
    def wire_bytes(self) -> int:
        """The longest data packet on the wire."""
        return self.payload_bytes + self.header_bytes

    def check(self) -> None:
        """Refuse what no network could do."""
        findings = Findings(GraphError, "packet settings")
        if not isinstance(self.transport, TransportSettings):
            raise GraphError(
                f"{self.transport!r} is not a transport: give a record such as Dcqcn(), or use settings_named"
            )
        _check_whole(
            self, ("payload_bytes", "header_bytes", "ack_bytes", "pause_bytes", "most_classes", "seed"), findings
        )
        _check_whole(self.switch, _WHOLE, findings)
        findings.raise_if_any()
        if not 0 <= self.seed < 2**63:
            findings.add(f"the seed is {self.seed}: give a whole number from 0 to 2**63 - 1")
        if not 1 <= self.payload_bytes <= 65536:
            findings.add(f"the payload of a packet is {self.payload_bytes} bytes: give 1 to 65536, such as 1000")
        if not 0 <= self.header_bytes <= 4096:
            findings.add(f"the headers of a packet are {self.header_bytes} bytes: give 0 to 4096")
        for label, value in (("an acknowledgement", self.ack_bytes), ("a pause frame", self.pause_bytes)):
            if not 1 <= value <= 65536:
                findings.add(f"{label} has {value} bytes: give 1 to 65536")
        if not 1 <= self.most_classes <= 7:
            findings.add(f"{self.most_classes} data classes are asked for: ports have 1 to 7")
        if self.sample_every_s is not None and not self.sample_every_s >= 1e-9:
            findings.add(f"samples every {self.sample_every_s} s: give at least 1ns")
        if self.transport.telemetry and self.spread is PathSpread.SPRAY:
            findings.add(
                f"{self.transport.name} compares telemetry of consecutive packets, which spraying sends over different "
                "ports: hash flows onto paths or split them"
            )
        self.switch.check(findings, self.wire_bytes)
        self.transport.check(findings)
        findings.raise_if_any()
