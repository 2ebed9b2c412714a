"""Jobs as logs tell them: loaders for published traces, the authors' preparation of them, and synthetic ones."""

from ropewalk.cluster.traces.arrivals import load_of, mean_gap_for, poisson
from ropewalk.cluster.traces.formats import FORMATS, read_trace, sniff
from ropewalk.cluster.traces.generate import Synthetic
from ropewalk.cluster.traces.job import TraceJob
from ropewalk.cluster.traces.jobs_csv import to_csv, write_jobs
from ropewalk.cluster.traces.mix import Mix
from ropewalk.cluster.traces.prepare import VCLOS_STUDY, Preparation, prepare
from ropewalk.cluster.traces.published import DURATIONS, SIZES, Durations, Sizes
from ropewalk.cluster.traces.trace import Selection, Trace

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
