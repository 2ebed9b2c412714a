"""A measured communication pattern: what a job computes and exchanges in an iteration, as somebody has seen it.

```yaml
format: ropewalk pattern 1
gpus: 16
compute: 180ms
exchanges:
  - {collective: hierarchical-ring, size: 1.3GB, overlap: 90ms}
  - {collective: all-to-all, size: 64MB, group: 8, after: 20ms}
```

Or, where only the rate of a NIC was seen, `profile` with the time from which each rate holds and the `period` of an
iteration; every stretch with a rate becomes an exchange that moves as many bytes over each NIC:

```yaml
format: ropewalk pattern 1
period: 260ms
collective: hierarchical-ring
profile:
  - [0ms, 0Gbps]
  - [120ms, 40Gbps]
  - [200ms, 0Gbps]
```
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ropewalk import units
from ropewalk.documents import beginning, parse_json, parse_yaml, read_text
from ropewalk.errors import ClusterError, Findings, InputError
from ropewalk.files import is_file
from ropewalk.tenancy.collectives import collective_named
from ropewalk.tenancy.work import Iteration, JobExchange

FORMAT = "ropewalk pattern 1"
SUFFIXES = (".yaml", ".yml", ".json")
USUAL = "hierarchical-ring"
MOST_EXCHANGES = 1000
SILENT = re.compile(r"0(\.0*)?\s*([kMGT]?bps|[kMGT]?B/s)?")
ENTRIES = {"format", "gpus", "compute", "exchanges", "period", "collective", "profile"}


@dataclass(frozen=True)
class MeasuredPattern:
    """One iteration, either exchange by exchange or by what each NIC sent when."""

    compute_s: float
    """Of the whole iteration; with stretches everything in which NICs were silent."""
    exchanges: tuple[JobExchange, ...] = ()
    stretches: tuple[tuple[float, float], ...] = ()
    """(seconds of silence before it, bytes of each NIC) in order."""
    period_s: float = 0.0
    collective: str = USUAL
    gpus: int | None = None
    """How many it was seen on; None: any number."""

    def work(self, gpus: int, nic_seconds: Callable[[JobExchange], float], bandwidth: float) -> Iteration:
        """The iteration of a job; `nic_seconds` is what an exchange takes on a quiet network."""
        if self.gpus not in (None, gpus):
            raise ClusterError(f"its pattern was seen on {self.gpus} GPUs, the job has {gpus}: measure it on {gpus}")
        if not self.stretches or gpus == 1:
            return Iteration(self.compute_s or self.period_s, self.exchanges if gpus > 1 else ())
        unit_s = nic_seconds(JobExchange(self.collective, 1.0))
        made = tuple(
            JobExchange(self.collective, sent / bandwidth / unit_s, after_s=silent) for silent, sent in self.stretches
        )
        took_s = sum(nic_seconds(replace(one, after_s=0.0)) for one in made)
        silent_s = sum(one.after_s for one in made)
        if took_s + silent_s > self.period_s * (1 + 1e-9):
            raise ClusterError(
                f"its NICs sent {took_s:g} s at full speed and were idle {silent_s:g} s before, in a period of "
                f"{self.period_s:g} s: give the network's own speed (--bandwidth), or a longer period"
            )
        return Iteration(max(self.period_s - took_s, silent_s), made)


def is_pattern(path: Path) -> bool:
    """Is this a file whose first lines say that it is a pattern?"""
    if path.suffix.lower() not in SUFFIXES or not is_file(path):
        return False
    return FORMAT.rpartition(" ")[0] in beginning(path)


def read_pattern(path: Path) -> MeasuredPattern:
    """A pattern from its file, with everything that is wrong said at once."""
    subject = f"pattern {path}"
    text = read_text(path, subject, ClusterError)
    parse = parse_json if path.suffix.lower() == ".json" else parse_yaml
    document = parse(text, subject, ClusterError)
    findings = Findings(ClusterError, subject)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ClusterError(f"{subject} does not begin with `format: {FORMAT}`: add that line")
    for name in document.keys() - ENTRIES:
        findings.add(f"{name}: unknown entry: remove it; there are {', '.join(sorted(ENTRIES))}")
    found = _profiled(document, findings) if "profile" in document else _listed(document, findings)
    findings.raise_if_any()
    return found


def _listed(document: dict[str, Any], findings: Findings) -> MeasuredPattern:
    compute_s = _quantity(document, "compute", units.seconds, findings, 0.0)
    rows = document.get("exchanges", [])
    if not isinstance(rows, list) or len(rows) > MOST_EXCHANGES or not all(isinstance(row, dict) for row in rows):
        findings.add(
            f"exchanges must be a list of at most {MOST_EXCHANGES} entries such as {{collective: ring, size: 1GB}}"
        )
        return MeasuredPattern(compute_s)
    exchanges = []
    for number, row in enumerate(rows, 1):
        for name in row.keys() - {"collective", "size", "overlap", "after", "group", "stride"}:
            findings.add(f"exchange {number}: {name}: unknown entry: remove it")
        collective = _collective(row.get("collective", USUAL), findings)
        try:
            exchanges.append(
                JobExchange(
                    collective,
                    _quantity(row, "size", lambda text: float(units.size(text)), findings),
                    _quantity(row, "overlap", units.seconds, findings, 0.0),
                    _whole(row, "group", 0, findings),
                    _whole(row, "stride", 1, findings),
                    after_s=_quantity(row, "after", units.seconds, findings, 0.0),
                )
            )
        except InputError as problem:
            findings.add(f"exchange {number}: {problem}")
    try:
        Iteration(compute_s, tuple(exchanges))
    except InputError as problem:
        findings.add(str(problem))
    return MeasuredPattern(compute_s, tuple(exchanges), gpus=_whole(document, "gpus", 0, findings) or None)


def _profiled(document: dict[str, Any], findings: Findings) -> MeasuredPattern:
    period_s = _quantity(document, "period", units.seconds, findings)
    rows = document["profile"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and len(row) == 2 for row in rows):
        findings.add("profile is not a list of [time, rate] such as [120ms, 40Gbps]")
        return MeasuredPattern(0.0)
    steps = [
        (_read(row[0], "profile", units.seconds, findings), _read(row[1], "profile", _rate, findings))
        for row in rows[: MOST_EXCHANGES + 1]
    ]
    ends = [*steps, (period_s, 0.0)]
    in_order = steps[0][0] == 0 and all(sooner <= later for (sooner, _), (later, _) in pairwise(ends))
    if len(rows) > MOST_EXCHANGES or not in_order:
        findings.add(f"profile must begin at 0s, increase up to the period, and have at most {MOST_EXCHANGES} rows")
    silent, stretches = 0.0, []
    for (begin, rate), (end, _) in pairwise(ends):
        if rate > 0 and end > begin:
            stretches.append((silent, rate * (end - begin)))
            silent = 0.0
        else:
            silent += end - begin
    return MeasuredPattern(
        0.0, (), tuple(stretches), period_s, _collective(document.get("collective", USUAL), findings),
        _whole(document, "gpus", 0, findings) or None,
    )  # fmt: skip


def _rate(text: str) -> float:
    """A rate may be 0, which a link's may not."""
    return 0.0 if SILENT.fullmatch(text.strip()) else units.bandwidth(text)


def _quantity(
    row: dict[str, Any], name: str, read: Callable[[str], float], findings: Findings, usual: float | None = None
) -> float:
    if name not in row:
        if usual is None:
            findings.add(f"{name} is missing: give it")
        return usual or 0.0
    return _read(row[name], name, read, findings)


def _read(value: object, name: str, read: Callable[[str], float], findings: Findings) -> float:
    try:
        number = read(str(value))
    except InputError as problem:
        findings.add(f"{name}: {problem}")
        return 0.0
    if number < 0:
        findings.add(f"{name} is {value}: give 0 or more")
    return number


def _whole(row: dict[str, Any], name: str, usual: int, findings: Findings) -> int:
    value = row.get(name, usual)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        findings.add(f"{name} is {value!r}: give a whole number")
        return usual
    return value


def _collective(name: object, findings: Findings) -> str:
    try:
        collective_named(str(name))
    except InputError as problem:
        findings.add(str(problem))
        return USUAL
    return str(name)
