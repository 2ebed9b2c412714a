"""Steps as Chakra execution traces, the files that ASTRA-sim and other simulators read, and such traces as steps.

Collective programs are written as traces of sends and receives by `write_program`, and proved by `replay`.
"""

from ropewalk.export.chakra.program_read import read_program_trace
from ropewalk.export.chakra.program_write import program_traces, write_program
from ropewalk.export.chakra.read import read_chakra
from ropewalk.export.chakra.replay import replay
from ropewalk.export.chakra.write import write_chakra

__all__ = [
    "program_traces",
    "read_chakra",
    "read_program_trace",
    "replay",
    "write_chakra",
    "write_program",
]
