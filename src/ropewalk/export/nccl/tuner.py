"""The table of NCCL's example tuner plugin: which algorithm and protocol to use for which sizes, as CSV.

A row says: for this collective, from so many bytes to so many, use this. The first row that fits counts. Columns are
collective_type, min_bytes, max_bytes, algorithm, protocol, channels, nNodes, nRanks, numPipeOps, regBuff; -1 fits
anything. The plugin as NVIDIA publishes it takes -1 channels for one channel, so give their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.documents.numbers import whole
from ropewalk.errors import Findings, InputError
from ropewalk.files import write_whole

ANY = -1
ALL_SIZES = 2**64 - 1
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "allreduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
    "allgather": ("ring", "collnet_direct", "nvls", "pat"),
    "reducescatter": ("ring", "collnet_direct", "nvls", "pat"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}
"""What NCCL has for each collective."""
PROTOCOLS = ("ll", "ll128", "simple")
HEADER = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"
"""A comment, because the plugin takes every other line for a row."""

Choice = tuple[str, str]
"""(algorithm, protocol)."""
Samples = Mapping[int, Mapping[Choice, float]]
"""Bytes -> seconds of every choice; between two sizes times are taken to be straight lines."""


@dataclass(frozen=True)
class TunerRow:
    collective: str
    min_bytes: int
    max_bytes: int
    algorithm: str
    protocol: str
    channels: int = ANY
    nodes: int = ANY
    ranks: int = ANY
    pipe_ops: int = ANY
    registered: int = ANY

    def flaws(self) -> list[str]:
        """What NCCL would not understand or not do."""
        found = []
        if self.collective not in ALGORITHMS:
            found.append(f"the collective {self.collective!r} is unknown: use one of {', '.join(ALGORITHMS)}")
        elif self.algorithm not in ALGORITHMS[self.collective]:
            known = ", ".join(ALGORITHMS[self.collective])
            found.append(f"NCCL has no {self.algorithm} {self.collective}: use one of {known}")
        if self.protocol not in PROTOCOLS:
            found.append(f"the protocol {self.protocol!r} is unknown: use one of {', '.join(PROTOCOLS)}")
        if not 0 <= self.min_bytes <= self.max_bytes <= ALL_SIZES:
            found.append(
                f"sizes from {self.min_bytes} to {self.max_bytes} are not a range: write the smaller number first"
            )
        counts = ((name, getattr(self, name)) for name in ("channels", "nodes", "ranks", "pipe_ops"))
        found += [f"{name} is {n}: give 1 or more, or -1 for any" for name, n in counts if n < 1 and n != ANY]
        if self.registered not in (ANY, 0, 1):
            found.append(f"registered is {self.registered}: give 0, 1, or -1 for both")
        return found

    def fits(self, size_bytes: int) -> bool:
        return self.min_bytes <= size_bytes <= self.max_bytes


def tuner_rows(
    collective: str, samples: Samples, *, channels: int = ANY, nodes: int = ANY, ranks: int = ANY
) -> list[TunerRow]:
    """The fastest choice for every size, as rows that cover all sizes.

    Below the smallest and above the largest sample the choice there is kept. Of equally fast choices, the one that
    comes first in the samples stays as long as it is among the fastest.

    >>> tree, ring = ("tree", "ll"), ("ring", "simple")
    >>> times = {1000: {tree: 1.0, ring: 3.0}, 5000: {tree: 5.0, ring: 3.0}}
    >>> [(row.max_bytes, row.algorithm) for row in tuner_rows("allreduce", times)]
    [(3000, 'tree'), (18446744073709551615, 'ring')]
    """
    if not samples:
        raise InputError(f"no times of {collective} are given: measure or simulate at least one size")
    sizes = sorted(samples)
    choices = list(samples[sizes[0]])
    if not choices or any(set(samples[size]) != set(choices) for size in sizes):
        raise InputError(f"the times of {collective} are not of the same algorithms at every size: complete the table")
    best = [(0, min(choices, key=lambda choice: samples[sizes[0]][choice]))]
    for low, high in pairwise(sizes):
        best += _changes(samples[low], samples[high], low, high, best[-1][1])
    begins = dict(best)  # of two changes at one size the later one counts
    order = list(begins)
    kept = order[:1] + [after for before, after in pairwise(order) if begins[before] != begins[after]]
    ends = [*(after - 1 for after in kept[1:]), ALL_SIZES]
    rows = [
        TunerRow(collective, begin, end, *begins[begin], channels, nodes, ranks)
        for begin, end in zip(kept, ends, strict=True)
    ]
    findings = Findings(InputError, f"tuning of {collective}")
    for flaw in dict.fromkeys(flaw for row in rows for flaw in row.flaws()):
        findings.add(flaw)
    findings.raise_if_any()
    return rows


def _changes(
    at_low: Mapping[Choice, float], at_high: Mapping[Choice, float], low: int, high: int, choice: Choice
) -> list[tuple[int, Choice]]:
    """Where the fastest choice changes between two sizes: the lower envelope of straight lines, from the left."""
    changes: list[tuple[int, Choice]] = []
    at = float(low)
    while True:
        slope = (at_high[choice] - at_low[choice]) / (high - low)
        crossing: tuple[float, float, Choice] | None = None
        for other in at_low:
            steeper = slope - (at_high[other] - at_low[other]) / (high - low)
            if other == choice or steeper <= 0:
                continue
            where = max(at, low + (at_low[other] - at_low[choice]) / steeper)
            # Of several that cross here, the flattest is the fastest beyond.
            if where < high and (crossing is None or (where, -steeper) < crossing[:2]):
                crossing = (where, -steeper, other)
        if crossing is None:
            return changes
        at, _, choice = crossing
        changes.append((int(at) + 1, choice))


def to_csv(rows: Sequence[TunerRow]) -> str:
    return "\n".join([HEADER, *(",".join(map(str, astuple(row))) for row in rows), ""])


def write_tuner(rows: Sequence[TunerRow], path: str | Path) -> None:
    """Write the file that `NCCL_TUNER_CONFIG_FILE` names."""
    findings = Findings(InputError, f"tuner table {path}")
    for number, row in enumerate(rows):
        for flaw in row.flaws():
            findings.add(f"row {number}: {flaw}")
    findings.raise_if_any()
    write_whole(path, to_csv(rows))


def read_tuner(path: str | Path) -> list[TunerRow]:
    """The rows of a table, read strictly where the plugin would guess."""
    subject = f"tuner table {path}"
    findings = Findings(InputError, subject)
    text = read_text(Path(path), subject, InputError)
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if not 8 <= len(cells) <= 10:
            findings.add(f"line {number}: has {len(cells)} columns: write 8 to 10 ({HEADER[2:]})")
            continue
        try:
            low, high, *rest = (whole(cell) for cell in (*cells[1:3], *cells[5:]))
        except ValueError:
            findings.add(f"line {number}: sizes, channels, nodes and ranks are whole numbers: fix {line[:60]!r}")
            continue
        row = TunerRow(cells[0], low, high, cells[3], cells[4], *rest)
        for flaw in row.flaws():
            findings.add(f"line {number}: {flaw}")
        rows.append(row)
    findings.raise_if_any()
    return rows
