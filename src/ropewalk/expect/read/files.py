"""Which tool wrote a file is seen from what is in it; measurements of all files are one list."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

from ropewalk.documents import decode, read_bytes
from ropewalk.errors import Findings, InputError
from ropewalk.expect.read.inspector import Seen, is_inspector, records_of_inspector, seen_by_inspector
from ropewalk.expect.read.kineto import is_kineto, read_kineto, shortest_of
from ropewalk.expect.read.nccl_tests import is_nccl_tests, read_nccl_tests
from ropewalk.expect.read.pairs import is_pairs, read_pairs
from ropewalk.expect.read.record import Record, Source
from ropewalk.progress import Progress, silent

MOST_BYTES = 1 << 30
"""Of one file, unpacked: a trace of PyTorch takes several times its size in memory."""
_GZIP = b"\x1f\x8b"


def read_records(files: Sequence[Path], benchmark: str | None = None, progress: Progress = silent) -> list[Record]:
    """Everything that these files measured; all problems are said at once."""
    findings = Findings(InputError, "measurements")
    found: list[Record] = []
    seen: list[Seen] = []
    kernels: list[Record] = []
    for done, path in enumerate(files):
        progress(done, len(files), f"reading {path.name}")
        source = Source(str(path), _text(path), benchmark)
        if is_kineto(source.text):
            kernels += read_kineto(source, findings)
        elif is_inspector(source.text):
            seen += seen_by_inspector(source, findings)
        elif is_nccl_tests(source.text):
            found += read_nccl_tests(source, findings)
        elif is_pairs(source.text):
            found += read_pairs(source, findings)
        else:
            findings.add(
                f"{path} is no output of nccl-tests, NCCL Inspector or PyTorch's profiler, nor a table with a column "
                "ranks: check the path, or see docs/expect.md for the table"
            )
    found += shortest_of(kernels) + records_of_inspector(seen, findings)
    if not found and not findings:
        findings.add("no collective of two ranks or more was measured: read a file that has some")
    findings.raise_if_any()
    return found


def _text(path: Path) -> str:
    subject = f"measurements {path}"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{subject} are more than {MOST_BYTES >> 20} MiB: record fewer steps")
    except OSError:
        pass  # read_bytes says what is the matter
    content = read_bytes(path, subject, InputError)
    if content[:2] == _GZIP:
        content = _unpacked(content, subject)
    return decode(content, subject, InputError)


def _unpacked(content: bytes, subject: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            found = packed.read(MOST_BYTES + 1)
    except (EOFError, OSError, zlib.error):
        raise InputError(f"{subject} are cut or no gzip file: copy the file again") from None
    if len(found) > MOST_BYTES:
        raise InputError(f"{subject} unpack to more than {MOST_BYTES >> 20} MiB: record fewer steps")
    return found
