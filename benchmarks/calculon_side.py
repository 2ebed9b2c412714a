"""Calculon's half of the comparison: steps read as JSON, answered as JSON.

`against_calculon.py` runs it with a Python that has what Calculon imports (numpy, psutil, pandas); its only argument is
the folder of a Calculon checkout.

Input on stdin, in Calculon's words: {"model": {…}, "system": "systems/NAME.json", "executions": [{…}, …],
"repeats": N}.
Output: {"import_s", "cpu_s", "wall_s", "answers": [{"step_s", …} or {"refused": why}]}; seconds are of one round.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    checkout = Path(sys.argv[1])
    sys.path.insert(0, str(checkout))
    began = time.process_time()
    from calculon import System
    from calculon.llm import Llm

    import_s = time.process_time() - began
    problem = json.load(sys.stdin)
    system = json.loads((checkout / problem["system"]).read_text())
    log = logging.getLogger("calculon")

    def ask(execution: dict[str, Any]) -> dict[str, Any]:
        try:
            model = Llm(Llm.Application(problem["model"]), log)
            known = System(system)
            model.compile(known, Llm.Execution.from_json(execution))
            model.run(known)
        except (Llm.Error, AssertionError) as error:
            return {"refused": str(error) or type(error).__name__}
        return {
            "step_s": model.get_total_time(),
            "bubble_s": model.get_bubble_time(),
            "tensor_s": model.get_tp_comm_exposed_time(),
            "pipeline_s": model.get_pp_comm_exposed_time(),
            "data_s": model.get_dp_comm_exposed_time(),
            "memory_bytes": model.get_mem_tier1_cap_req(),
        }

    least_cpu = least_wall = float("inf")
    for _ in range(problem["repeats"]):
        wall, cpu = time.perf_counter(), time.process_time()
        answers = [ask(execution) for execution in problem["executions"]]
        least_cpu = min(least_cpu, time.process_time() - cpu)
        least_wall = min(least_wall, time.perf_counter() - wall)
    print(json.dumps({"import_s": import_s, "cpu_s": least_cpu, "wall_s": least_wall, "answers": answers}))


if __name__ == "__main__":
    main()
