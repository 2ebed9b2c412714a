"""Programs run for real: on tensors over torch.distributed, as the hook of a training, in processes of this machine.

>>> from ropewalk.collectives import halving_doubling_all_reduce
>>> plan = rank_plan(halving_doubling_all_reduce(4), rank=1)
>>> [[message.peer for message in step.sends] for step in plan.steps]
[[0], [3], [3], [0]]
"""

from ropewalk.execute.hook import comm_hook
from ropewalk.execute.local_ranks import LocalRanks, RunFailed
from ropewalk.execute.plan import RankPlan, rank_plan, rank_plans
from ropewalk.execute.run import run_program
from ropewalk.execute.runner import NUMBERS, RunReport, RunRow, run_locally

__all__ = [
    "NUMBERS",
    "LocalRanks",
    "RankPlan",
    "RunFailed",
    "RunReport",
    "RunRow",
    "comm_hook",
    "rank_plan",
    "rank_plans",
    "run_locally",
    "run_program",
]
