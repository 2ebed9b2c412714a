"""One door to every trace: the format is told, or recognised by how the file begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ropewalk.errors import ClusterError
from ropewalk.files import is_folder
from ropewalk.tenancy.traces import jobs_csv, logs, pai, philly, simulator_traces
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.sheet import text_lines
from ropewalk.tenancy.traces.trace import EVERYTHING, JobTrace, Selection, Skip, gather

Loader = Callable[[Path, Skip], Iterator[TraceJob]]
SNIFFED = 1 << 16
"""Lines that are looked at to recognise a format."""


@dataclass(frozen=True)
class TraceFormat:
    """How one kind of trace is recognised and read."""

    load: Loader
    required: Sequence[str] = ()
    optional: Collection[str] = ()
    about: str = ""

    def is_of(self, header: Sequence[str]) -> bool:
        return bool(self.required) and set(self.required) <= set(header) <= {*self.required, *self.optional}


FORMATS: dict[str, TraceFormat] = {
    "jobs": TraceFormat(jobs_csv.own, jobs_csv.NEEDED, jobs_csv.OPTIONAL, "ropewalk's own jobs.csv"),
    "helios": TraceFormat(logs.helios, logs.HELIOS, about="cluster_log.csv of Helios"),
    "acme": TraceFormat(logs.acme, logs.SEREN, logs.KALOS_MORE, "trace_seren.csv and trace_kalos.csv of Acme"),
    "philly": TraceFormat(philly.philly, about="cluster_job_log of Philly, JSON"),
    "philly-muri": TraceFormat(simulator_traces.muri, simulator_traces.MURI, about="Philly as prepared for Muri"),
    "philly-gavel": TraceFormat(simulator_traces.gavel, about="Philly as prepared for Gavel, tab-separated"),
    "pai": TraceFormat(pai.pai, pai.JOBS, about="pai_job_table.csv of PAI 2020, its task table beside it"),
    "tiresias": TraceFormat(simulator_traces.tiresias, simulator_traces.TIRESIAS, about="jobs of Tiresias' simulator"),
    "itp": TraceFormat(logs.itp, logs.ITP, about="a cluster of Microsoft's ITP, as released with ElasticFlow"),
    "elasticflow": TraceFormat(
        simulator_traces.elasticflow, simulator_traces.ELASTICFLOW, about="ITP as prepared for ElasticFlow"
    ),
    "gen-parallel": TraceFormat(
        logs.gen_parallel, logs.GEN_PARALLEL, about="15,000 jobs of Helios or Philly as cut for Gen-Parallel-Workloads"
    ),
}


def read_trace(
    path: str | Path,
    format_name: str | None = None,
    *,
    selection: Selection = EVERYTHING,
    keep_clock: bool | None = None,
) -> JobTrace:
    """Read a trace; without a format it is recognised by its header.

    The clock begins with the first job that is kept, except in our own jobs.csv, which means the times it says.
    """
    file = Path(path)
    if is_folder(file):
        raise ClusterError(f"trace {path} is a folder: name the file with the jobs")
    chosen = sniff(file) if format_name is None else format_name
    if chosen not in FORMATS:
        raise ClusterError(f"the trace format {chosen!r} is unknown: use one of {', '.join(FORMATS)}")
    skipped: Counter[str] = Counter()

    def skip(reason: str) -> None:
        skipped[reason] += 1

    keeps = chosen == "jobs" if keep_clock is None else keep_clock
    return gather(file, chosen, FORMATS[chosen].load(file, skip), skipped, selection, keeps)


def sniff(path: Path) -> str:
    """The name of the format that a file begins like."""
    lines = islice(text_lines(path), SNIFFED)
    beginning = next((told for line in lines if (told := line.lstrip("\ufeff \t\r\n"))), "")
    if not beginning:
        raise ClusterError(f"trace {path} is empty: give a file with a header and at least one job")
    if beginning.startswith("["):
        return "philly"
    first = beginning.splitlines()[0]
    if first.count("\t") == len(simulator_traces.GAVEL_FIELDS) - 1:
        return "philly-gavel"
    header = [name.strip() for name in first.split(",")]
    found = [name for name, one in FORMATS.items() if one.is_of(header)]
    if found:
        return found[0]
    return _nearest(path, header)


def _nearest(path: Path, header: Sequence[str]) -> str:
    """No format has this header. Of one it shares most columns with, the loader says what is unknown or missing."""
    tables = {name: one for name, one in FORMATS.items() if one.required}
    shared = {name: len(set(header) & {*one.required, *one.optional}) for name, one in tables.items()}
    nearest = max(shared, key=lambda name: (shared[name] / len(tables[name].required), -len(tables[name].required)))
    if shared[nearest] * 2 < len(header) or shared[nearest] < 2:
        raise ClusterError(
            f"trace {path}: line 1: the format is not recognised by {', '.join(header)[:80]!r}: begin with a header "
            f"such as {','.join(jobs_csv.NEEDED)},duration_s, or give --trace-format: {', '.join(FORMATS)}"
        )
    return nearest
