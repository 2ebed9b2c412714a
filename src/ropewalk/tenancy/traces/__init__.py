"""Jobs as logs tell them: loaders for published traces, the authors' preparation of them, and synthetic ones."""

from ropewalk.tenancy.traces.arrivals import load_of, mean_gap_for, poisson, reordered
from ropewalk.tenancy.traces.formats import FORMATS, read_trace, sniff
from ropewalk.tenancy.traces.generate import Synthetic
from ropewalk.tenancy.traces.job import TraceJob
from ropewalk.tenancy.traces.jobs_csv import to_csv, write_jobs
from ropewalk.tenancy.traces.mix import MIXES, Mix, mix_named
from ropewalk.tenancy.traces.prepare import VCLOS_STUDY, Preparation, prepare
from ropewalk.tenancy.traces.published import DURATIONS, SIZES, Durations, Sizes
from ropewalk.tenancy.traces.trace import JobTrace, Selection

__all__ = [
    "DURATIONS",
    "FORMATS",
    "MIXES",
    "SIZES",
    "VCLOS_STUDY",
    "Durations",
    "JobTrace",
    "Mix",
    "Preparation",
    "Selection",
    "Sizes",
    "Synthetic",
    "TraceJob",
    "load_of",
    "mean_gap_for",
    "mix_named",
    "poisson",
    "prepare",
    "read_trace",
    "reordered",
    "sniff",
    "to_csv",
    "write_jobs",
]
