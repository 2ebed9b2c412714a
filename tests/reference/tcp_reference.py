"""TCP in plain Python over one switch, written from the RFCs: slow, and sharing nothing with the packet engine.

Senders, each on a host of its own, send one message each to the same receiver. A port sends one packet at a time; the
port of the switch that faces the receiver has a queue of limited bytes, and marks what leaves it while more than K
bytes stay behind. Acknowledgements find idle links but wait for each other. Times are integer picoseconds.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

SECOND = 10**12


@dataclass
class Rules:
    """What the connections and the network are told."""

    flavour: str = "newreno"
    payload: int = 1000
    header: int = 58
    ack: int = 64
    ps_per_byte: int = 200
    queue_limit: int = 10**9
    mark_above: float = inf
    initial: int = 10
    buffer: int = 1024
    start_limit: int = 2
    ack_every: int = 2
    ack_delay: int = 40 * SECOND // 1000
    min_rto: int = 200 * SECOND // 1000
    max_rto: int = 60 * SECOND
    gain: float = 1 / 16


class Clock:
    """What is due, in the order of time."""

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, time: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time, next(self._order), action))

    def run(self, done: Callable[[], bool]) -> None:
        while not done():
            self.now, _, action = heapq.heappop(self._due)
            action()


class Port:
    """A queue in front of a wire. `pull` is asked for a packet where the queue is empty; `sink` gets what arrives."""

    def __init__(self, clock: Clock, rules: Rules, latency: int, limit: float = inf, mark_above: float = inf) -> None:
        self.clock, self.rules, self.latency, self.limit, self.mark_above = clock, rules, latency, limit, mark_above
        self.queue: deque[dict[str, int]] = deque()
        self.bytes = self.drops = 0
        self.busy = False
        self.pull: Callable[[], dict[str, int] | None] = lambda: None
        self.sink: Callable[[dict[str, int]], None] = lambda packet: None

    def take(self, packet: dict[str, int]) -> None:
        if self.bytes + packet["size"] > self.limit:
            self.drops += 1
            return
        self.queue.append(packet)
        self.bytes += packet["size"]
        self.kick()

    def kick(self) -> None:
        if self.busy:
            return
        if self.queue:
            packet = self.queue.popleft()
            self.bytes -= packet["size"]
            if self.bytes > self.mark_above:
                packet["mark"] = 1
        else:
            pulled = self.pull()
            if pulled is None:
                return
            packet = pulled
        self.busy = True
        out = self.clock.now + packet["size"] * self.rules.ps_per_byte
        self.clock.at(out + self.latency, lambda: self.sink(packet))
        self.clock.at(out, self._free)

    def _free(self) -> None:
        self.busy = False
        self.kick()


@dataclass
class Connection:
    """Both ends of a connection; all numbers of segments, except times."""

    number: int
    segments: int
    rules: Rules
    clock: Clock
    nic: Port
    back: Callable[[dict[str, int]], None]
    log: list[tuple[int, int, float]]
    # Sender.
    cwnd: float = 0.0
    ssthresh: float = inf
    una: int = 0
    nxt: int = 0
    top: int = 0
    again: int | None = None
    duplicates: int = 0
    recover: int = -1
    recovering: bool = False
    partials: int = 0
    srtt: float | None = None
    rttvar: float = 0.0
    rto: float = 0.0
    timed: tuple[int, int] | None = None
    due: int | None = None
    timeouts: int = 0
    fast_retransmits: int = 0
    row: int = 0
    # CUBIC.
    peak: float = 0.0
    epoch: int | None = None
    until_peak: float = 0.0
    friendly: float = 0.0
    prior: float = 0.0
    # DCTCP.
    alpha: float = 1.0
    seen: list[int] = field(default_factory=lambda: [0, 0])
    window_end: int = 0
    cut_up_to: int = -1
    # Receiver.
    expected: int = 0
    held: set[int] = field(default_factory=set)
    unanswered: int = 0
    answer_due: int = 0
    ce: int = 0
    delivered_at: int = -1

    def begin(self) -> None:
        self.cwnd = float(self.rules.initial)
        self.rto = self.rules.min_rto
        self.nic.pull = self.next_packet
        self.note()
        self.nic.kick()

    def note(self) -> None:
        self.log.append((self.clock.now, self.number, self.cwnd))

    # ---- sending

    def usable(self) -> int:
        window = int(self.cwnd)
        if not self.recovering and self.una > self.recover:
            window += min(self.duplicates, 2)
        return max(min(window, self.rules.buffer), 1)

    def next_packet(self) -> dict[str, int] | None:
        if self.una >= self.segments:
            return None
        if self.again is not None:
            segment, self.again = self.again, None
        elif self.nxt < self.segments and self.nxt - self.una < self.usable():
            segment = self.nxt
            self.nxt += 1
        else:
            return None
        if segment < self.top:
            self.timed = None
        elif self.timed is None:
            self.timed = (segment + 1, self.clock.now)
        self.top = max(self.top, segment + 1)
        if self.due is None:
            self.start_timer()
        return {"segment": segment, "size": self.rules.payload + self.rules.header, "mark": 0, "flow": self.number}

    def start_timer(self) -> None:
        due = self.clock.now + int(self.rto)
        self.due = due
        self.clock.at(due, lambda: self.time_out() if self.due == due else None)

    def time_out(self) -> None:
        if self.una >= self.segments:
            return
        if self.row == 0:
            self.ssthresh = self.after_loss(timeout=True)
        self.row += 1
        self.timeouts += 1
        self.cwnd, self.duplicates, self.recovering, self.recover = 1.0, 0, False, self.top
        self.rto = min(2 * self.rto, self.rules.max_rto)
        self.timed = self.due = self.again = None
        self.nxt = self.una
        self.note()
        self.nic.kick()

    def after_loss(self, *, timeout: bool) -> float:
        flight = min(self.nxt - self.una, int(self.cwnd))
        if self.rules.flavour != "cubic":
            return max(flight / 2, 2.0)
        self.prior, self.epoch = self.cwnd, None
        if timeout:
            self.peak = 0.0
        else:
            self.peak = self.cwnd * 0.85 if self.cwnd < self.peak else self.cwnd
        return max(flight * 0.7, 2.0)

    def on_ack(self, ack: dict[str, int]) -> None:
        if self.una >= self.segments:
            return
        if ack["segment"] > self.una:
            self.on_new(ack["segment"], ack["mark"] == 1)
        elif ack["segment"] == self.una and self.nxt > self.una:
            self.on_duplicate()
        self.note()
        self.nic.kick()

    def on_new(self, segment: int, marked: bool) -> None:
        newly, flight = segment - self.una, self.nxt - self.una
        self.una = segment
        self.nxt = max(self.nxt, segment)
        if self.again is not None and self.again < segment:
            self.again = None
        if self.timed is not None and segment >= self.timed[0]:
            self.learn(self.clock.now - self.timed[1])
            self.timed = None
        may_grow = self.rules.flavour != "dctcp" or self.count_marks(newly, marked)
        self.row = 0
        if self.recovering and segment < self.recover:
            self.again = segment
            self.cwnd = max(self.cwnd - newly + 1, 1.0)
            self.partials += 1
            if self.partials == 1:
                self.start_timer()
            return
        if self.recovering:
            self.recovering = False
            self.cwnd = min(self.ssthresh, max(self.nxt - self.una, 1) + 1.0)
        elif may_grow:
            self.grow(newly, flight)
        self.duplicates = 0
        if self.nxt == self.una:
            self.due = None
        else:
            self.start_timer()

    def learn(self, sample: int) -> None:
        if self.srtt is None:
            self.srtt, self.rttvar = float(sample), sample / 2
        else:
            self.rttvar = 0.75 * self.rttvar + 0.25 * abs(self.srtt - sample)
            self.srtt = 0.875 * self.srtt + 0.125 * sample
        self.rto = min(max(self.srtt + 4 * self.rttvar, self.rules.min_rto), self.rules.max_rto)

    def grow(self, newly: int, flight: int) -> None:
        if self.cwnd < self.ssthresh:
            if self.cwnd < 2 * flight:
                self.cwnd = min(self.cwnd + min(newly, self.rules.start_limit), self.ssthresh)
        elif flight >= int(self.cwnd):
            if self.rules.flavour == "cubic":
                self.cubic(newly)
            else:
                self.cwnd += newly / self.cwnd
        self.cwnd = min(self.cwnd, float(self.rules.buffer))

    def cubic(self, newly: int) -> None:
        if self.epoch is None:
            self.epoch, self.friendly = self.clock.now, self.cwnd
            self.peak = max(self.peak, self.cwnd)
            self.until_peak = ((self.peak - self.cwnd) / 0.4) ** (1 / 3)
        elapsed = (self.clock.now - self.epoch) / SECOND

        def curve(time: float) -> float:
            return self.peak + 0.4 * (time - self.until_peak) ** 3

        slope = 1.0 if self.friendly >= self.prior else 3 * (1 - 0.7) / (1 + 0.7)
        self.friendly += slope * newly / self.cwnd
        if curve(elapsed) < self.friendly:
            self.cwnd = max(self.cwnd, self.friendly)
        else:
            target = min(max(curve(elapsed + (self.srtt or 0.0) / SECOND), self.cwnd), 1.5 * self.cwnd)
            self.cwnd += (target - self.cwnd) / self.cwnd * newly

    def count_marks(self, newly: int, marked: bool) -> bool:
        self.seen[0] += newly
        self.seen[1] += newly if marked else 0
        if self.una > self.window_end:
            self.alpha = (1 - self.rules.gain) * self.alpha + self.rules.gain * self.seen[1] / self.seen[0]
            self.seen = [0, 0]
            self.window_end = self.nxt
        if self.una <= self.cut_up_to:
            return False
        if marked and not self.recovering:
            self.cwnd = self.ssthresh = max(self.cwnd * (1 - self.alpha / 2), 2.0)
            self.cut_up_to = self.nxt
        return not marked

    def on_duplicate(self) -> None:
        if self.recovering:
            self.cwnd += 1
            return
        self.duplicates += 1
        if self.duplicates == 3 and self.una > self.recover:
            self.ssthresh = self.after_loss(timeout=False)
            self.cwnd = self.ssthresh + 3
            self.recover, self.recovering, self.partials, self.again = self.top, True, 0, self.una
            self.fast_retransmits += 1

    # ---- receiving

    def on_data(self, packet: dict[str, int]) -> None:
        mark = packet["mark"] if self.rules.flavour == "dctcp" else 0
        if mark != self.ce:
            if self.unanswered:
                self.answer()
            self.ce = mark
        waits = packet["segment"] == self.expected and not self.held
        if packet["segment"] >= self.expected:
            self.held.add(packet["segment"])
        while self.expected in self.held:
            self.held.remove(self.expected)
            self.expected += 1
        if self.expected == self.segments and self.delivered_at < 0:
            self.delivered_at = self.clock.now
        self.unanswered += 1
        if waits and self.expected < self.segments and self.unanswered < self.rules.ack_every:
            if self.unanswered == 1:
                due = self.clock.now + self.rules.ack_delay
                self.answer_due = due
                self.clock.at(due, lambda: self.answer() if self.unanswered and self.answer_due == due else None)
            return
        self.answer()

    def answer(self) -> None:
        self.unanswered = 0
        self.back({"segment": self.expected, "size": self.rules.ack, "mark": self.ce, "flow": self.number})


def incast(rules: Rules, segments: list[int], starts: list[int], latency: list[int]) -> tuple[list[Connection], int]:
    """One message from each sender to the receiver, host 0 of `latency`; returns the connections and the drops."""
    clock = Clock()
    to_receiver = Port(clock, rules, latency[0], rules.queue_limit, rules.mark_above)
    from_receiver = Port(clock, rules, latency[0])
    connections = []
    log: list[tuple[int, int, float]] = []
    backs = []
    for number, count in enumerate(segments):
        nic, back = (Port(clock, rules, latency[number + 1]) for _ in range(2))
        connection = Connection(number, count, rules, clock, nic, from_receiver.take, log)
        nic.sink = to_receiver.take
        back.sink = connection.on_ack
        backs.append(back)
        connections.append(connection)
        clock.at(starts[number], connection.begin)
    to_receiver.sink = lambda packet: connections[packet["flow"]].on_data(packet)
    from_receiver.sink = lambda packet: backs[packet["flow"]].take(packet)
    clock.run(lambda: all(connection.una >= connection.segments for connection in connections))
    return connections, to_receiver.drops
