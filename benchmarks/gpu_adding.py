"""How fast the GPU at hand adds buffers, as reductions of collectives do, and what that costs a product beside it.

    python benchmarks/gpu_adding.py adding.json [--seconds 120] [--only beside]

A rate is bytes of one operand per second: what a rank receives and adds to what it has. `alone`: PyTorch's `a += b` of
64 KiB to 256 MiB, cold (buffers come from memory) and warm (they stay in the cache); `several`: the sum of n buffers at
once; `few`: on so many multiprocessors; `beside`: while products run on another stream, with how much those slow down.
The file is written after every row.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gpu_clock import Run, Stopwatch
from gpu_sustained import File

Row = dict[str, Any]
KIB, MIB = 2**10, 2**20
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
COLD_BYTES = 512 * MIB
"""Buffers that take turns add up to this, so that none is still in the cache when its turn comes."""
SPAN_S = 0.2
"""How long each measurement takes, about."""
PROGRAMS = (1, 2, 4, 8, 16, 32, 64, 132)
PRODUCTS = ((8192, 8192, 8192), (4096, 4096, 14336))
"""Rows, columns and inner of the bf16 products beside which something is added."""
BESIDE = (0, 4, 8, 16, 32)
"""Multiprocessors that add beside products; 0: as many as PyTorch takes."""


def pairs(size_bytes: int, dtype: torch.dtype, device: str, *, cold: bool) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Buffers to add: one pair, or so many that the cache forgets each before it is used again."""
    many = max(1, COLD_BYTES // (2 * size_bytes)) if cold else 1
    numbers = size_bytes // dtype.itemsize
    both = [torch.zeros(many, numbers, dtype=dtype, device=device) for _ in range(2)]
    return list(zip(*both, strict=True))


def graphed(runs: list[Run], watch: Stopwatch) -> tuple[Run, int]:
    """All calls as one launch, so that the host does not limit small ones; how many they are."""
    for run in runs[:2]:
        run()
    watch.wait()
    if not watch.cuda:
        return lambda: [run() for run in runs], len(runs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for run in runs:
            run()
    return graph.replay, len(runs)


def adds(
    size_bytes: int, dtype: torch.dtype, device: str, *, cold: bool = True, by: Callable[..., Any] | None = None
) -> list[Run]:
    """Calls that each add one buffer to another: at least eight."""
    found: list[Run] = [
        (lambda into=into, given=given: by(into, given) if by else into.add_(given))
        for into, given in pairs(size_bytes, dtype, device, cold=cold)
    ]
    return found * math.ceil(8 / len(found))


def alone(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """`a += b` by size."""
    for precision, dtype in DTYPES.items():
        for size in SIZES[:1] if quick else SIZES:
            for cold in (True, False):
                run, many = graphed(adds(size, dtype, device, cold=cold and not quick), watch)
                seconds = watch.sustained(run, 0.0 if quick else SPAN_S).seconds / many
                yield row("alone", precision, size, seconds, cold=cold)


def several(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """The sum of n received buffers and one's own at once, as trees and in-network-like exchanges add."""
    size = 64 * KIB if quick else 16 * MIB
    for precision, dtype in DTYPES.items():
        for n in (2, 4, 8):
            stacked = torch.zeros(n, size // dtype.itemsize, dtype=dtype, device=device)
            out = torch.zeros(size // dtype.itemsize, dtype=dtype, device=device)

            def run(stacked: torch.Tensor = stacked, out: torch.Tensor = out) -> Any:
                return torch.sum(stacked, 0, out=out)

            call, many = graphed([run] * 8, watch)
            seconds = watch.sustained(call, 0.0 if quick else SPAN_S).seconds / many
            yield row("several", precision, (n - 1) * size, seconds, operands=n)


def few(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """On limited numbers of multiprocessors."""
    for precision, dtype in DTYPES.items():
        for size in (MIB, 64 * MIB):
            for programs in PROGRAMS:
                if quick:
                    return
                run, many = graphed(adds(size, dtype, device, by=limited(programs)), watch)
                seconds = watch.sustained(run, SPAN_S / 2).seconds / many
                yield row("few", precision, size, seconds, programs=programs)


def limited(programs: int) -> Callable[..., Any]:
    """An add on so many multiprocessors, proved on one pair of buffers."""
    from gpu_adding_kernel import add

    into, given = (torch.arange(100_000, device="cuda", dtype=torch.float32) for _ in range(2))
    add(into, given, programs)
    torch.testing.assert_close(into, 2 * given)
    return lambda into, given: add(into, given, programs)


def beside(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """While products run on another stream: what both take longer."""
    if quick:
        return
    for shape in PRODUCTS:
        rows, columns, inner = shape
        left = torch.randn(rows, inner, device=device, dtype=torch.bfloat16)
        right = torch.randn(inner, columns, device=device, dtype=torch.bfloat16)
        out = torch.empty(rows, columns, device=device, dtype=torch.bfloat16)

        def product(given: tuple[torch.Tensor, ...] = (left, right), out: torch.Tensor = out) -> Any:
            return torch.matmul(*given, out=out)

        for precision, dtype in DTYPES.items():
            into, given = pairs(COLD_BYTES // 2, dtype, device, cold=False)[0]
            for programs in BESIDE:
                by = limited(programs) if programs else torch.Tensor.add_
                told = {"part": "beside", "precision": precision, "product": shape, "programs": programs}
                yield told | together(watch, product, partial(by, into, given), into.nbytes)


def together(watch: Stopwatch, product: Run, add: Run, size: int) -> Row:
    """Products that begin and end while adds run, and adds while products run; adds have priority."""
    product_s, add_s = (watch.sustained(run, SPAN_S).seconds for run in (product, add))
    beside_s = [
        median_within(watch, product, product_s, add, add_s, first=False),
        median_within(watch, add, add_s, product, product_s, first=True),
    ]
    return {
        "size_bytes": size, "product_alone_s": product_s, "product_beside_s": beside_s[0],
        "product_slowdown": beside_s[0] / product_s, "alone_bytes_per_s": size / add_s,
        "beside_bytes_per_s": size / beside_s[1],
    }  # fmt: skip


def median_within(watch: Stopwatch, run: Run, run_s: float, other: Run, other_s: float, *, first: bool) -> float:
    """Seconds of a run, the median of those that lie wholly within a train of the other kind; `first` has priority."""
    side, behind = torch.cuda.Stream(priority=-1 if first else 0), torch.cuda.Stream(priority=0 if first else -1)
    runs, others = math.ceil(SPAN_S / run_s), math.ceil(SPAN_S / other_s)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    watch.wait()
    with torch.cuda.stream(behind):
        begin.record()
        for _ in range(others):
            other()
        end.record()
    with torch.cuda.stream(side):
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
    watch.wait()
    took = [
        before.elapsed_time(after) / 1e3
        for before, after in itertools.pairwise(marks)
        if begin.elapsed_time(before) > 0 and after.elapsed_time(end) > 0
    ]
    return statistics.median(took) if took else math.nan


def row(part: str, precision: str, size: int, seconds: float, **more: Any) -> Row:
    told = {"part": part, "precision": precision, "size_bytes": size, "seconds": seconds}
    return told | {"bytes_per_s": size / seconds} | more


PARTS = {"alone": alone, "several": several, "few": few, "beside": beside}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the JSON file that is written")
    parser.add_argument("--seconds", type=float, default=120.0, help="nothing is begun after this")
    parser.add_argument("--quick", action="store_true", help="tiny sizes on the CPU: whether it runs")
    parser.add_argument("--only", default="", help="parts that are measured, with commas between: beside")
    options = parser.parse_args()
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)  # with one connection, streams wait for each other
    device = "cpu" if options.quick else "cuda"
    begin, watch, file = time.perf_counter(), Stopwatch(device), File(options.file, device)
    for name, part in PARTS.items():
        if options.only and name not in options.only.split(","):
            continue
        try:
            for one in part(watch, device, quick=options.quick):
                file.add("rows", one)
                passed = time.perf_counter() - begin
                print(
                    f"{passed:6.1f}", *(f"{value:.4g}" if isinstance(value, float) else value for value in one.values())
                )
                if passed > options.seconds:
                    file.add("skipped", f"the rest of {name} and what follows")
                    return
        except Exception as problem:  # one part that does not run must not cost the others
            file.add("failed", {"name": name, "why": repr(problem)[:500]})
            print(f"{name} failed: {problem!r:.300}", flush=True)
        if watch.cuda:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
