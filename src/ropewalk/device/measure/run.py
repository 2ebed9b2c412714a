"""The grid measured on this machine, line by line of a cost table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ropewalk.device.measure.build import runnable
from ropewalk.device.measure.clock import own_stream, seconds
from ropewalk.device.measure.grid import grid, measured_in
from ropewalk.device.measure.host import host_seconds
from ropewalk.device.measure.network import network_factor
from ropewalk.device.table import Row
from ropewalk.progress import Progress
from ropewalk.workload.kernel import Kernel

DTYPES = {"bf16": torch.bfloat16, "tf32": torch.float32, "fp32": torch.float32, "fp8": torch.float8_e4m3fn}
"""The precisions that are measured; tf32 keeps float32 tensors and lets matrix products round."""
WITH_HOST = ("bf16", "tf32")
"""The precisions in which the host's calls are measured: fp32 has those of tf32, fp8 those of bf16."""


@dataclass(frozen=True)
class Hardware:
    """What the framework says about the machine."""

    title: str
    numbers: dict[str, float]


def hardware(where: str) -> Hardware:
    """Name, multiprocessors, memory and cache of the device."""
    if where == "cuda":
        seen = torch.cuda.get_device_properties(0)
        return Hardware(
            seen.name,
            {
                "multiprocessors": seen.multi_processor_count,
                "memory_bytes": float(seen.total_memory),
                "cache_bytes": float(getattr(seen, "L2_cache_size", 0) or 32e6),
                "launch_s": 2.5e-6,
            },
        )
    return Hardware(
        "", {"multiprocessors": torch.get_num_threads(), "memory_bytes": 64e9, "cache_bytes": 32e6, "launch_s": 1e-6}
    )


def measure_grid(
    where: str, precisions: Sequence[str], *, small: bool, progress: Progress | None
) -> tuple[list[Row], list[str]]:
    """Rows of the table, and what could not be measured, with the reason."""
    every = grid(small=small)
    cache = hardware(where).numbers["cache_bytes"]
    rows: list[Row] = []
    failed: list[str] = []
    for number, precision in enumerate(precisions):
        dtype = DTYPES[precision]
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
        kernels = measured_in(precision, every, gpu=where == "cuda")
        if precision in WITH_HOST:
            calls = host_seconds(where, dtype)
            calls["network"] = network_factor(where, dtype, calls)
            rows += [(precision, "host", name, "", f"{a:.4g};{b:.4g}") for name, (a, b) in calls.items()]
        for index, kernel in enumerate(kernels):
            if progress is not None:
                progress(number * len(kernels) + index, len(kernels) * len(precisions), f"{precision} {kernel.kind}")
            try:
                with own_stream(where):
                    runs = [runnable(kernel, where, dtype) for _ in range(_copies(kernel, dtype, cache))]
                    took = seconds(runs, where)
            except (RuntimeError, NotImplementedError, AttributeError) as problem:
                failed.append(f"{precision} {kernel.kind} {kernel.form} {kernel.dims}: {problem}".splitlines()[0])
                continue
            rows.append((precision, kernel.kind, kernel.form, " ".join(map(str, kernel.dims)), f"{took:.4g}"))
    return rows, failed


def _copies(kernel: Kernel, dtype: torch.dtype, cache_bytes: float) -> int:
    """Sets of tensors that take turns, so that a kernel limited by memory does not find its data in the cache.

    In a step other kernels run in between; only what is small enough stays in the cache there as well.
    """
    if kernel.kind not in LIMITED_BY_MEMORY:
        return 1
    return int(min(MOST_COPIES, 1 + 2 * cache_bytes // max(kernel.moved_bytes(dtype.itemsize), 1)))


LIMITED_BY_MEMORY = ("pointwise", "quantise", "rowwise", "batch_norm", "pool", "embedding", "embedding_bag")
MOST_COPIES = 8
