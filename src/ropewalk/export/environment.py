"""The environment in which NCCL runs the collectives of a plan, as a file that a shell reads."""

from __future__ import annotations

from ropewalk.export.nccl.advice import algorithm_advice, tuner_advice
from ropewalk.export.nccl.tuner import TunerRow
from ropewalk.fabric.rails import RAIL_ONLY
from ropewalk.plans import Plan

TUNER = "nccl-tuner.csv"
MSCCLPP = "mscclpp"


def nccl_environment(plan: Plan, rows: list[TunerRow], on_mscclpp: list[str]) -> str:
    """Variables for NCCL; `on_mscclpp` are the files of collectives that it does not have.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> plan = Plan(ModelUse("gpt2"), read_cluster("2x4"), Strategy(data=8))
    >>> print(nccl_environment(plan, [TunerRow("allreduce", 0, 1 << 30, "ring", "simple")], []), end="")
    # The collectives of the plan, whatever the size of a message:
    export NCCL_ALGO=allreduce:ring NCCL_PROTO=allreduce:simple
    """
    lines = []
    if plan.cluster.rails or plan.cluster.network == RAIL_ONLY:
        lines += ["# NIC i of every server is on rail i: rings stay on their rail.", "export NCCL_CROSS_NIC=0"]
    if rows:
        lines += [
            "# The collectives of the plan, whatever the size of a message:",
            f"export {' '.join(algorithm_advice(rows))}",
        ]
    if any(row.nodes > 1 for row in rows):
        lines += [
            "# The same for groups over several servers and the sizes of the plan only, if NCCL's tuner plugin is "
            "installed (then remove the line above):",
            f"# export {' '.join(tuner_advice(f'$PWD/{TUNER}'))}",
        ]
    if on_mscclpp:
        lines += [
            f"# NCCL does not have {', '.join(on_mscclpp)}: MSCCL++ runs them from the files in {MSCCLPP}.",
            f"# export LD_PRELOAD=libmscclpp_nccl.so MSCCLPP_EXECUTION_PLAN_DIR=$PWD/{MSCCLPP}",
        ]
    return "".join(f"{line}\n" for line in lines)
