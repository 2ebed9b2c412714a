"""Which tool wrote a file is seen from what is in it; measurements of all files are one list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.documents.limits import MOST_OF_A_TRACE
from ropewalk.errors import Findings, InputError
from ropewalk.expect.read.inspector import InspectorReport, is_inspector, records_of_inspector, seen_by_inspector
from ropewalk.expect.read.kineto import is_kineto, read_kineto, shortest_of
from ropewalk.expect.read.nccl_tests import is_nccl_tests, read_nccl_tests
from ropewalk.expect.read.pairs import is_pairs, read_pairs
from ropewalk.expect.read.record import Record, SourceFile
from ropewalk.progress import Progress, silent


def read_records(files: Sequence[Path], benchmark: str | None = None, progress: Progress = silent) -> list[Record]:
    """Everything that these files measured; all problems are said at once."""
    findings = Findings(InputError, "measurements")
    found: list[Record] = []
    seen: list[InspectorReport] = []
    kernels: list[Record] = []
    for done, path in enumerate(files):
        progress(done, len(files), f"reading {path.name}")
        source = SourceFile(str(path), read_text(path, f"measurements {path}", InputError, MOST_OF_A_TRACE), benchmark)
        if not source.text.strip():
            findings.add(f"{path} is empty: wait until it is written, or copy it again")
        elif is_kineto(source.text):
            kernels += read_kineto(source, findings)
        elif is_inspector(source.text):
            seen += seen_by_inspector(source, findings)
        elif is_nccl_tests(source.text):
            found += read_nccl_tests(source, findings)
        elif is_pairs(source.text):
            found += read_pairs(source, findings)
        else:
            findings.add(
                f"{path} is not an output of nccl-tests, NCCL Inspector or PyTorch's profiler, nor a table with a "
                "column "
                "ranks: check the path, or see docs/expect.md for the table"
            )
    found += shortest_of(kernels) + records_of_inspector(seen, findings)
    if not found and not findings:
        findings.add("no collective of two ranks or more was measured: read a file that contains one")
    findings.raise_if_any()
    return found
