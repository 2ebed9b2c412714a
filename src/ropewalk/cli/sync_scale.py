"""How large a study is unless people say so: what fluid carries in a second, packets would carry in hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

AS_FLUID = {"--hosts": "64", "--size": "575MB", "--hop-latency": "0us"}
"""The parameters of VGG-19 over wires without length, as closed forms have it."""
PACKET_BY_PACKET = {"--hosts": "16", "--size": "4MB", "--hop-latency": "1us"}
"""All combinations with two transports in about ten seconds; transports need a round trip to react to."""

RUN_PACKETS = ("packet", "auto")
TO_COMPARE = ("closed", "flow")


def usual_scale(levels: Sequence[str]) -> dict[str, str]:
    """Options of a study that were left out, as typed."""
    return PACKET_BY_PACKET if _runs_packets(levels) else AS_FLUID


def with_comparison(levels: Sequence[str]) -> tuple[str, ...]:
    """Packets beside what formula and fluid say, which costs next to nothing.

    >>> with_comparison(("packet",))
    ('closed', 'flow', 'packet')
    >>> with_comparison(("flow",))
    ('flow',)
    """
    first = [level for level in TO_COMPARE if level not in levels] if _runs_packets(levels) else []
    return (*first, *levels)


def scaled_down(levels: Sequence[str], given: Mapping[str, str | None], physical: Sequence[str]) -> list[str]:
    """What was made smaller because nobody said how large, in words."""
    from ropewalk.fabric.expression import has_open_size

    if not _runs_packets(levels):
        return []
    sized = {"--hosts"} if not any(has_open_size(name) for name in physical) else set()
    left_out = [
        f"{name} {value} (fluid: {AS_FLUID[name]})"
        for name, value in PACKET_BY_PACKET.items()
        if given[name] is None and name not in sized
    ]
    return [f"packet-level defaults: {', '.join(left_out)}"] if left_out else []


def _runs_packets(levels: Sequence[str]) -> bool:
    return any(level in RUN_PACKETS for level in levels)
