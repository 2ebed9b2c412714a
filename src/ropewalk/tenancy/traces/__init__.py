"""Jobs as logs tell them: loaders for published traces, the authors' preparation of them, and synthetic ones."""

from ropewalk.tenancy.traces.arrivals import load_of, mean_gap_for, poisson
from ropewalk.tenancy.traces.formats import FORMATS, read_trace, sniff
from ropewalk.tenancy.traces.generate import Synthetic
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.jobs_csv import to_csv, write_jobs
from ropewalk.tenancy.traces.mix import Mix
from ropewalk.tenancy.traces.prepare import VCLOS_STUDY, Preparation, prepare
from ropewalk.tenancy.traces.published import DURATIONS, SIZES, Durations, Sizes
from ropewalk.tenancy.traces.trace import Selection, Trace

__all__ = [
    "DURATIONS",
    "FORMATS",
    "SIZES",
    "VCLOS_STUDY",
    "Durations",
    "Mix",
    "Preparation",
    "Selection",
    "Sizes",
    "Synthetic",
    "Trace",
    "TraceJob",
    "load_of",
    "mean_gap_for",
    "poisson",
    "prepare",
    "read_trace",
    "sniff",
    "to_csv",
    "write_jobs",
]
