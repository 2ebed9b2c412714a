"""What NCCL runs: its algorithms and protocols, with the latencies and ceilings that it chooses by.

The bytes of an algorithm cross the network that is simulated; what is written down here is the rest.
"""

from ropewalk.collectives.nccl.constants import Generation, generation_of
from ropewalk.collectives.nccl.runs import Algorithm, Communicator, Protocol, Run, runs_of

__all__ = ["Algorithm", "Communicator", "Generation", "Protocol", "Run", "generation_of", "runs_of"]
