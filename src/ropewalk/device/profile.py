"""A cost table of the machine at hand: every kernel of the grid, the host's calls, and what the device reaches.

The table is its own description: besides measurements it holds the lines of a `Device`, so that a file is enough to
price a model. Its roofline is drawn through the best that was measured, not through a data sheet.
"""

from __future__ import annotations

import csv
import gzip
import io
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ropewalk.device.device import PRECISIONS
from ropewalk.device.table import COLUMNS, FACTS, Row
from ropewalk.errors import DeviceError
from ropewalk.extras import how_to_install
from ropewalk.files import require_writable, write_whole
from ropewalk.progress import Progress

MEASURED = ("bf16", "tf32", "fp32", "fp8")
"""The precisions that can be measured; fp32 only where it differs from tf32, fp8 where it differs from bf16."""


@dataclass(frozen=True)
class DeviceProfile:
    """What was measured, and on what."""

    title: str
    measurements: int
    failed: tuple[str, ...]
    """Kernels that the machine could not run, with the reason."""


def profile(
    path: Path,
    precisions: Sequence[str] = MEASURED,
    *,
    small: bool | None = None,
    progress: Progress | None = None,
) -> DeviceProfile:
    """Measure this machine and write its cost table; `small` measures what a CPU can, and is the default there."""
    try:
        import torch
    except ImportError:
        raise DeviceError(f"measuring needs PyTorch: {how_to_install('torch')}") from None
    from ropewalk.device.measure.run import measure_grid

    require_writable(path)
    where = "cuda" if torch.cuda.is_available() else "cpu"
    few = where == "cpu" if small is None else small
    rows, failed = measure_grid(where, precisions, small=few, progress=progress)
    if not any(kind == "matmul" for _, kind, *_ in rows):
        raise DeviceError(f"no matrix product could be measured on {where}: {failed[0] if failed else 'nothing ran'}")
    facts = _facts(torch, where, rows)
    write_whole(path, packed([*facts, *rows]))
    return DeviceProfile(next(row[4] for row in facts if row[2] == "title"), len(rows), tuple(failed))


def packed(rows: Sequence[Row]) -> bytes:
    """A table as a file: CSV, packed, the same bytes for the same rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    file = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as archive:
        archive.write(text.getvalue().encode())
    return file.getvalue()


def _facts(torch: object, where: str, rows: Sequence[Row]) -> list[Row]:
    """The device as it shows itself: its name, its memory, the best rates seen, and how fast it and its host add."""
    from ropewalk.device.measure.adding import adding
    from ropewalk.device.measure.run import hardware
    from ropewalk.workload.kernel import rebuilt

    seen = hardware(where)
    facts = {"name": where, "title": seen.title or platform.processor() or where, **seen.numbers}
    fastest: dict[str, float] = {}
    stream = 0.0
    for precision, kind, form, dims, seconds in rows:
        if kind not in ("matmul", "pointwise"):
            continue
        kernel = rebuilt(kind, form, tuple(map(int, dims.split())))
        if kind == "matmul":
            fastest[precision] = max(fastest.get(precision, 0.0), kernel.flops / float(seconds))
        elif kernel.dims[0] >= seen.numbers["cache_bytes"] / 2:
            stream = max(stream, kernel.moved_bytes(PRECISIONS[precision].element_bytes) / float(seconds))
    facts |= {f"peak_{precision}": rate for precision, rate in fastest.items()}
    facts["memory_bandwidth"] = stream or 1e10
    facts |= {"adding": adding(where), "host_adding": adding("cpu")}
    return [
        ("", FACTS, name, "", f"{value:.6g}" if isinstance(value, float) else str(value))
        for name, value in facts.items()
    ]
