"""Guesses how a switch can be replaced by direct ways between its neighbours: shallow ones first.

A guess says how much of what comes in from u goes out to t. It is only a guess: whoever uses it checks by maximum
flows that no member loses anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Ends = tuple[int, int]
Guess = dict[Ends, int]


def guesses(
    arriving: dict[int, int],
    leaving: dict[int, int],
    is_member: Callable[[int], bool],
    near: Callable[[int, int], bool],
) -> Iterator[Guess]:
    """Full mesh, jumps by powers of two, rings both ways and a ring one way; what has no better way goes far first."""
    ports = sorted(arriving.keys() | leaving.keys())
    n = len(ports)
    powers = [1 << bit for bit in range((n - 1).bit_length()) if 1 << bit < n]
    for jumps in (list(range(1, n)), powers, [1, n - 1], [1]):
        yield _guess(ports, arriving, leaving, jumps, is_member, near)


def _guess(
    ports: list[int],
    arriving: dict[int, int],
    leaving: dict[int, int],
    jumps: list[int],
    is_member: Callable[[int], bool],
    near: Callable[[int, int], bool],
) -> Guess:
    come, go = dict(arriving), dict(leaving)
    guess: Guess = {}
    _to_and_from_switches(ports, come, go, is_member, guess)
    n = len(ports)
    far = [(ports[at], ports[(at + jump) % n]) for jump in jumps for at in range(n)]
    _spread_evenly([(u, t) for u, t in far if u != t and not near(u, t)], len(jumps), come, go, guess)
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
