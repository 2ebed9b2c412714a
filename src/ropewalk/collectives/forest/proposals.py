"""Guesses how a switch can be replaced by direct ways between its neighbours: shallow ones first.

A guess says how much of what comes in from u goes out to t. It is only a guess: whoever uses it checks by maximum
flows that no member loses anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

Ends = tuple[int, int]
Guess = dict[Ends, int]


def guesses(
    arriving: dict[int, int],
    leaving: dict[int, int],
    is_member: Callable[[int], bool],
    server: Callable[[int], int],
    already: Mapping[Ends, int] | None,
) -> Iterator[Guess]:
    """Rails, full mesh, jumps by powers of two, rings both ways and a ring one way.

    Ports of one `server` have a better way between them, so what can go far goes far. Rails join the ports that have
    the same place in different servers: what arrives there is handed on inside, and two hops reach everyone. Those that
    have little `already` come first, so that several switches between the same servers share the work; None leaves
    rails out.
    """

    def near(u: int, t: int) -> bool:
        return server(u) == server(t)

    ports = sorted(arriving.keys() | leaving.keys())
    n = len(ports)
    rails = [] if already is None else _rails(ports, is_member, server)
    if already is not None and rails:
        rails.sort(key=lambda ends: already.get(ends, 0))
        yield _guess(ports, arriving, leaving, [], is_member, near, rails)
    powers = [1 << bit for bit in range((n - 1).bit_length()) if 1 << bit < n]
    for jumps in (list(range(1, n)), powers, [1, n - 1], [1]):
        yield _guess(ports, arriving, leaving, jumps, is_member, near, [])


def _rails(ports: list[int], is_member: Callable[[int], bool], server: Callable[[int], int]) -> list[Ends]:
    """Pairs of members with the same place in different servers; none if servers have one member each."""
    groups: dict[int, list[int]] = {}
    for port in ports:
        if is_member(port):
            groups.setdefault(server(port), []).append(port)
    listed = list(groups.values())
    if len(listed) < 2 or max(map(len, listed)) < 2:
        return []
    return [
        (port, there[place % len(there)])
        for jump in range(1, len(listed))
        for at, here in enumerate(listed)
        for there in [listed[(at + jump) % len(listed)]]
        for place, port in enumerate(here)
    ]


def _guess(
    ports: list[int],
    arriving: dict[int, int],
    leaving: dict[int, int],
    jumps: list[int],
    is_member: Callable[[int], bool],
    near: Callable[[int, int], bool],
    rails: list[Ends],
) -> Guess:
    come, go = dict(arriving), dict(leaving)
    guess: Guess = {}
    _to_and_from_switches(ports, come, go, is_member, guess)
    n = len(ports)
    if rails:
        _spread_evenly(rails, max(Counter(u for u, _ in rails).values()), come, go, guess)
    far = [(ports[at], ports[(at + jump) % n]) for jump in jumps for at in range(n)]
    _spread_evenly([(u, t) for u, t in far if u != t and not near(u, t)], max(1, len(jumps)), come, go, guess)
    every = [(ports[at], ports[(at + jump) % n]) for jump in range(1, n) for at in range(n)]
    _spread_evenly([(u, t) for u, t in every if not near(u, t)], n - 1, come, go, guess)
    _spread_evenly(every, n - 1, come, go, guess)
    return guess


def _to_and_from_switches(
    ports: list[int], come: dict[int, int], go: dict[int, int], is_member: Callable[[int], bool], guess: Guess
) -> None:
    """What members exchange with switches further on, shared in proportion; transit gets what is left."""
    members = [port for port in ports if is_member(port)]
    if not members:
        return
    for port in ports:
        if is_member(port):
            continue
        # Whoever got a little less from this switch is to get a little more from the next.
        members = members[1:] + members[:1]
        for inwards in (True, False):
            total = (come if inwards else go).get(port, 0)
            room = [(go if inwards else come).get(member, 0) for member in members]
            for member, amount in zip(members, _in_proportion(total, room), strict=True):
                _put((port, member) if inwards else (member, port), amount, come, go, guess)


def _in_proportion(total: int, room: list[int]) -> list[int]:
    """Whole parts of a total in proportion to the room there is, none above it."""
    whole = sum(room)
    if whole <= total:
        return room
    ends = [total * sum(room[: at + 1]) // whole for at in range(len(room))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _spread_evenly(pairs: list[Ends], jumps: int, come: dict[int, int], go: dict[int, int], guess: Guess) -> None:
    """Go round the pairs, a little to each, until nothing more fits."""
    while True:
        room = [min(come.get(u, 0), go.get(t, 0)) for u, t in pairs]
        if not any(room):
            return
        pairs = [pair for pair, value in zip(pairs, room, strict=True) if value]
        smallest = min(value for value in room if value) // jumps
        piece = max(1, smallest, sum(room) // (jumps * len(pairs)))
        for u, t in pairs:
            _put((u, t), min(piece, come.get(u, 0), go.get(t, 0)), come, go, guess)


def _put(ends: Ends, amount: int, come: dict[int, int], go: dict[int, int], guess: Guess) -> None:
    if amount > 0:
        guess[ends] = guess.get(ends, 0) + amount
        come[ends[0]] -= amount
        go[ends[1]] -= amount
