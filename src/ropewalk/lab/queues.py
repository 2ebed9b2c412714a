"""The queue in front of every link, as lines of `tc`: its speed, and how the flows that meet there share it.

- `fair`: the connections of a job take turns, a packet each, as max-min fair flows share a link; acknowledgements go
  first. HTB does both: below a class with the speed of the link, every connection that crosses it has a class of its
  own, told by its port. Large segments are kept to a few milliseconds, so that turns are short.
- `fifo`: packets leave in the order in which they came, as from a switch with one queue per port: a token bucket.

A bucket lets a link that was idle send some bytes at once, and makes good what a late timer of the kernel has lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ropewalk.lab.forwarding import links_by_number
from ropewalk.lab.job import FIRST_PORT, PORT, Connection
from ropewalk.lab.network import FASTEST_BITS, LabNetwork, interface
from ropewalk.routing import Routes

SMALLEST_BURST, LARGEST_BURST = 64 << 10, 512 << 10
"""A token bucket smaller than a large segment of TCP makes the kernel cut every segment in software."""
_BURST_SECONDS = 0.02
_FAIR_SECONDS, _LEAST_FAIR = 0.008, 2 * 1514
"""HTB lets a segment pass that is larger than its bucket, and waits afterwards: the bucket is for late timers alone."""
_LINK, _OTHERS, _ANSWERS, _FIRST_FLOW = 1, 2, 3, 16
"""Classes of a link: all of it, what belongs to no job, acknowledgements, connection 0."""
_HANDLE = 1 << 16
_SOURCE_PORT = 34
"""Where it stands in a frame: behind 14 bytes of Ethernet and 20 of IP."""


def burst_bytes(rate_bits: int, *, fair: bool) -> int:
    """What a link may send at once after it was idle; for token buckets in powers of two, between 64 and 512 KiB.

    >>> [burst_bytes(rate, fair=False) >> 10 for rate in (10_000_000, 20_000_000, 50_000_000, 100_000_000, 10**9)]
    [64, 64, 128, 256, 512]
    >>> burst_bytes(20_000_000, fair=True)
    20000
    """
    if fair:
        return max(int(rate_bits / 8 * _FAIR_SECONDS), _LEAST_FAIR)
    wanted = max(int(rate_bits / 8 * _BURST_SECONDS), SMALLEST_BURST)
    return min(1 << (wanted - 1).bit_length(), LARGEST_BURST)


def shaping_lines(network: LabNetwork, node: int, shaped: Collection[int] = frozenset()) -> list[str]:
    """A queue in front of every link that a node sends; cables that have one already get their speed anew."""
    ends = ((cable, network.cables[cable].links[end]) for cable, end in network.ends_of_node[node])
    lines: list[str] = []
    for cable, link in ends:
        if link >= 0:
            lines += [] if cable in shaped else _queue_lines(network, cable)
            lines.append(rate_line(network, cable, network.rate_bits(link)))
    return lines


def rate_line(network: LabNetwork, cable: int, rate_bits: int) -> str:
    """Give the queue of a link its speed, or another one.

    >>> from ropewalk.fabric import Ring
    >>> rate_line(LabNetwork(Ring(3).build()), 2, 5_000_000)
    'class replace dev c2 parent 1: classid 1:1 htb rate 5000000bit burst 5000 cburst 5000 quantum 65536'
    """
    name, fair = interface(cable), network.settings.fair
    burst = burst_bytes(rate_bits, fair=fair)
    if fair:
        bucket = f"rate {rate_bits}bit burst {burst} cburst {burst} quantum {1 << 16}"
        return f"class replace dev {name} parent 1: classid 1:{_LINK} htb {bucket}"
    limit = network.settings.queue_bytes
    return f"qdisc replace dev {name} root handle 1: tbf rate {rate_bits}bit burst {burst} limit {limit}"


def flow_lines(
    network: LabNetwork, connections: Sequence[Connection], routes: Routes, verb: str = "replace"
) -> dict[int, list[str]]:
    """By node: a class for every connection on every link that it crosses; with `del` they go."""
    path_of = links_by_number(routes)
    lines: dict[int, list[str]] = {}
    for number, one in enumerate(connections):
        for link in path_of[one.src, one.dst, one.path]:
            cable, end = network.end_of_link[link]
            line = _class_line(network, cable, _FIRST_FLOW + number, 1, verb)
            lines.setdefault(network.cables[cable].nodes[end], []).append(line)
    return lines


def _queue_lines(network: LabNetwork, cable: int) -> Iterator[str]:
    """What stands before the speed of a link is set, in the order in which the kernel wants it."""
    if not network.settings.fair:
        return
    name = interface(cable)
    yield f"qdisc add dev {name} root handle 1: htb default {_OTHERS}"
    yield rate_line(network, cable, FASTEST_BITS)
    yield _class_line(network, cable, _OTHERS, 1)
    yield _class_line(network, cable, _ANSWERS, 0)
    yield f"qdisc add dev {name} parent 1:{_OTHERS} handle {_OTHERS}: bfifo limit {network.settings.queue_bytes}"
    yield f"filter add dev {name} parent 1: protocol ip prio 1 bpf bytecode '{_by_port()}'"


def _class_line(network: LabNetwork, cable: int, number: int, priority: int, verb: str = "replace") -> str:
    where = f"class {verb} dev {interface(cable)} parent 1:{_LINK} classid 1:{number:x}"
    if verb == "del":
        return where
    # Almost nothing is its own, so that everything is borrowed from the link, by turns of one segment.
    turn = network.segment_bytes
    return f"{where} htb rate 8kbit ceil {FASTEST_BITS}bit prio {priority} quantum {turn}"


def _by_port() -> str:
    """A program of the classic packet filter: what comes from the port of ranks is an answer, else a connection's."""
    steps = (
        (0x28, 0, 0, _SOURCE_PORT),  # load the source port
        (0x15, 0, 1, PORT),  # does a rank answer from it?
        (0x06, 0, 0, _HANDLE + _ANSWERS),
        (0x04, 0, 0, _HANDLE + _FIRST_FLOW),  # add
        (0x14, 0, 0, FIRST_PORT),  # subtract
        (0x16, 0, 0, 0),  # return: the class
    )
    return f"{len(steps)}," + ",".join(" ".join(map(str, step)) for step in steps)
