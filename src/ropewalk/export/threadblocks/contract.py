"""What a collective must leave in the output buffers, from its name and the sizes of the buffers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ropewalk.errors import ProgramError, ProofError
from ropewalk.export.threadblocks.values import Value, symbol, told

Expected = Callable[[int, int], Value]
"""(rank, index in its output) -> the value that must stand there."""


def aliases(collective: str, rank: int, inputs: int, outputs: int) -> int:
    """Where the input of a rank begins in its output when both share memory; negative when the output begins later.

    >>> aliases("allgather", 2, 3, 12), aliases("reducescatter", 2, 12, 3), aliases("allreduce", 2, 8, 8)
    (6, -6, 0)
    """
    shift = {"allgather": rank * inputs, "reducescatter": -rank * outputs}
    return shift.get(collective, 0)


def require(
    collective: str,
    ranks: int,
    sizes: Sequence[tuple[int, int]],
    outputs: Sequence[Sequence[Value]],
    subject: str,
    root: int | None = None,
) -> None:
    """Raise `ProofError` unless the outputs are what the collective promises; `sizes` are (input, output) chunks."""
    if collective not in CONTRACTS:
        known = ", ".join(CONTRACTS)
        raise ProgramError(f"{subject}: the collective {collective!r} is unknown: give one of {known}")
    if len(set(sizes)) != 1:
        raise ProgramError(f"{subject}: ranks have buffers of different sizes: give all of them the same")
    inputs, size = sizes[0]
    expected, must = CONTRACTS[collective](subject, ranks, inputs, size, outputs, root)
    for rank in must:
        for index, value in enumerate(outputs[rank]):
            wanted = expected(rank, index)
            if value != wanted:
                raise ProofError(
                    f"{subject}: output {index} of rank {rank} ends with {told(value)} instead of {told(wanted)}"
                )


Contract = Callable[
    [str, int, int, int, Sequence[Sequence[Value]], int | None],
    tuple[Expected, Sequence[int]],
]


def _sizes(subject: str, good: bool, inputs: int, outputs: int, rule: str) -> None:
    if not good:
        raise ProgramError(f"{subject}: {inputs} input and {outputs} output chunks do not fit: {rule}")


def _everyone(ranks: int) -> int:
    return (1 << ranks) - 1


def _all_reduce(
    subject: str, ranks: int, inputs: int, size: int, _: Sequence[Sequence[Value]], __: int | None
) -> tuple[Expected, Sequence[int]]:
    _sizes(subject, inputs == size, inputs, size, "an allreduce has equally many of both")
    return lambda _rank, index: (index, _everyone(ranks), 0), range(ranks)


def _all_gather(
    subject: str, ranks: int, inputs: int, size: int, _: Sequence[Sequence[Value]], __: int | None
) -> tuple[Expected, Sequence[int]]:
    _sizes(
        subject, inputs * ranks == size, inputs, size, f"an allgather of {ranks} ranks has {ranks} outputs per input"
    )
    return lambda _rank, index: symbol(index // inputs, index % inputs), range(ranks)


def _reduce_scatter(
    subject: str, ranks: int, inputs: int, size: int, _: Sequence[Sequence[Value]], __: int | None
) -> tuple[Expected, Sequence[int]]:
    rule = f"a reducescatter of {ranks} ranks has {ranks} inputs per output"
    _sizes(subject, size * ranks == inputs, inputs, size, rule)
    return lambda rank, index: (rank * size + index, _everyone(ranks), 0), range(ranks)


def _all_to_all(
    subject: str, ranks: int, inputs: int, size: int, _: Sequence[Sequence[Value]], __: int | None
) -> tuple[Expected, Sequence[int]]:
    good = inputs == size and inputs % ranks == 0
    _sizes(subject, good, inputs, size, f"an alltoall has equally many of both, a multiple of {ranks}")
    share = inputs // ranks
    return lambda rank, index: symbol(index // share, rank * share + index % share), range(ranks)


def _broadcast(
    subject: str, ranks: int, inputs: int, size: int, outputs: Sequence[Sequence[Value]], root: int | None
) -> tuple[Expected, Sequence[int]]:
    _sizes(subject, inputs == size and size > 0, inputs, size, "a broadcast has equally many of both")
    if root is None:
        # The formats do not say who the root is; whoever's input reached the first output must have reached all.
        once = outputs[0][0][1]
        root = once.bit_length() - 1 if once else 0
    chosen = root
    return lambda _rank, index: symbol(chosen, index), range(ranks)


def _reduce(
    subject: str, ranks: int, inputs: int, size: int, outputs: Sequence[Sequence[Value]], root: int | None
) -> tuple[Expected, Sequence[int]]:
    _sizes(subject, inputs == size and size > 0, inputs, size, "a reduce has equally many of both")
    whole = (0, _everyone(ranks), 0)
    if root is None:
        root = next((rank for rank in range(ranks) if outputs[rank][0] == whole), 0)
    return lambda _rank, index: (index, _everyone(ranks), 0), [root]


CONTRACTS: dict[str, Contract] = {
    "allgather": _all_gather,
    "reducescatter": _reduce_scatter,
    "allreduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "alltoall": _all_to_all,
}
