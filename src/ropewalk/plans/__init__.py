"""Plans: everything decided about training a model on a cluster, in one file that every command reads and writes."""

from ropewalk.plans.document import dumps, loads, read_plan, write_plan
from ropewalk.plans.marks import FORMAT, is_plan
from ropewalk.plans.plan import Communication, Designed, ModelUse, Plan, Prediction

__all__ = [
    "FORMAT",
    "Communication",
    "Designed",
    "ModelUse",
    "Plan",
    "Prediction",
    "dumps",
    "is_plan",
    "loads",
    "read_plan",
    "write_plan",
]
