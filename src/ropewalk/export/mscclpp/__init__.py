"""MSCCL++ execution plans: programs as the JSON files that its executor loads, and such files read, run and proved.

>>> import tempfile, pathlib
>>> from ropewalk.collectives import ring_all_reduce
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.json"
>>> plan = write_mscclpp(ring_all_reduce([[0, 1, 2, 3]]), path, collective="allreduce")
>>> prove_plan(read_mscclpp(path))
"""

from ropewalk.export.mscclpp.interpret import prove_plan
from ropewalk.export.mscclpp.plan import MscclppPlan
from ropewalk.export.mscclpp.read import read_mscclpp
from ropewalk.export.mscclpp.save import plan_of, write_mscclpp

__all__ = ["MscclppPlan", "plan_of", "prove_plan", "read_mscclpp", "write_mscclpp"]
