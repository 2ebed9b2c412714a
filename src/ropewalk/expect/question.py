"""What is asked: a cluster, the benchmarks and sizes to expect, and measurements to judge."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

from ropewalk import units
from ropewalk.collectives.program import MOST_ARROWS
from ropewalk.errors import Findings, InputError
from ropewalk.expect.benchmarks import BENCHMARKS, PRINTED
from ropewalk.hardware import Cluster

SMALLEST, LARGEST, FACTOR = 8, 1 << 34, 2
MOST_SIZES = 1000
MOST_IN_PAIRS = isqrt(MOST_ARROWS)
"""GPUs that may all send to each other at once."""
_AS_IN_NCCL_TESTS = re.compile(r"\s*([0-9]{1,15})\s*([KMGkmg]?)\s*")


def size_as_written(text: str) -> int:
    """A size with a unit, or as nccl-tests has it: bytes without one, K, M and G for 1024 and its powers.

    >>> size_as_written("8"), size_as_written("512M") == size_as_written("512MiB"), size_as_written("1MB")
    (8, True, 1000000)
    """
    short = _AS_IN_NCCL_TESTS.fullmatch(text)
    if short is None:
        return units.size(text)
    return int(short[1]) << 10 * " KMG".index(short[2].upper() or " ")


def sizes_between(smallest: int, largest: int, factor: int) -> tuple[int, ...]:
    """Sizes as nccl-tests steps through them (-b, -e, -f).

    >>> sizes_between(8, 64, 2)
    (8, 16, 32, 64)
    """
    findings = Findings(InputError, "sizes")
    if smallest < 1:
        findings.add(f"the smallest is {smallest} bytes: give at least 1, such as 8B")
    if largest < smallest:
        findings.add(f"the largest, {largest} bytes, is below the smallest, {smallest}: give a larger one")
    if factor < 2:
        findings.add(f"a factor of {factor} does not increase sizes: give 2 or more")
    findings.raise_if_any()
    found = [smallest]
    while found[-1] * factor <= largest:
        found.append(found[-1] * factor)
    return tuple(found)


@dataclass(frozen=True)
class ExpectQuestion:
    """What a healthy cluster should show; and whether measurements are those of one."""

    cluster: Cluster
    benchmarks: tuple[str, ...] = PRINTED
    sizes: tuple[int, ...] = sizes_between(SMALLEST, LARGEST, FACTOR)
    files: tuple[Path, ...] = ()
    """Outputs of nccl-tests, NCCL Inspector, PyTorch's profiler, or tables of pairs."""
    hosts: tuple[str, ...] = ()
    """Names of the servers in the files, server0 first; in the order of the files unless given."""
    measured: str | None = None
    """The benchmark of files that do not say which they are of."""

    def __post_init__(self) -> None:
        findings = Findings(InputError, "expect")
        for name in (*self.benchmarks, *([self.measured] if self.measured else [])):
            if name not in BENCHMARKS:
                findings.add(BENCHMARKS.unknown(name))
        if self.cluster.gpus < 2:
            findings.add("the cluster has one GPU, which communicates with nothing: describe two or more")
        if len(self.sizes) > MOST_SIZES:
            findings.add(f"{len(self.sizes)} sizes exceed the limit of {MOST_SIZES}: use a larger factor")
        if "alltoall" in self.benchmarks and not self.files and self.cluster.gpus > MOST_IN_PAIRS:
            others = ",".join(name for name in self.benchmarks if name != "alltoall") or "all_reduce"
            findings.add(
                f"alltoall is simulated between {MOST_IN_PAIRS:,} GPUs or fewer, not {self.cluster.gpus:,}: "
                f"give --collective {others}"
            )
        for name in {name for name in self.hosts if self.hosts.count(name) > 1}:
            findings.add(f"server {name} is named twice: name every server once")
        findings.raise_if_any()
