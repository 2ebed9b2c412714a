"""What NCCL runs: its algorithms and protocols, with the latencies and ceilings that it chooses by.

The bytes of an algorithm cross the network that is simulated; what is written down here is the rest.
"""

from ropewalk.collectives.nccl.choice import ChosenRun, chosen, run_of
from ropewalk.collectives.nccl.constants import Generation, generation_of
from ropewalk.collectives.nccl.library import Library, library_for
from ropewalk.collectives.nccl.runs import Algorithm, Communicator, NcclRun, Protocol, bus_factor, runs_of

__all__ = [
    "Algorithm",
    "ChosenRun",
    "Communicator",
    "Generation",
    "Library",
    "NcclRun",
    "Protocol",
    "bus_factor",
    "chosen",
    "generation_of",
    "library_for",
    "run_of",
    "runs_of",
]  # fmt: skip
