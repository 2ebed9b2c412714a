"""What happens to a Slurm cluster with a controller beside it: jobs come, are cancelled, both sides are killed.

Somebody looks all the time whether a node is in two jobs; in the end both sides must have the same view: nothing.
"""

import random
import threading
import time
from dataclasses import dataclass, field

from slurm_machine import ENDED, PATIENCE_S

NODES = (1, 1, 1, 2, 2, 2, 4, 4, 8)
NAMES = ("train", "eval", 'a "quoted" name', "$(touch /ropewalk-was-here)", "; reboot", "line\\nbreak", "naïve ☂")


@dataclass
class Told:
    """What was seen."""

    jobs: int = 0
    cancelled: int = 0
    kills: int = 0
    restarts: int = 0
    without_answer: int = 0
    """Submissions for which the controller did not answer."""
    polls: int = 0
    violations: list = field(default_factory=list)
    outcomes: dict = field(default_factory=dict)
    seconds: float = 0.0


class Watcher(threading.Thread):
    """Looks at Slurm's list again and again: no node may be in two jobs."""

    def __init__(self, machine, told):
        super().__init__(daemon=True)
        self._machine, self._told, self._stop_now = machine, told, threading.Event()

    def run(self):
        while not self._stop_now.wait(0.1):
            jobs = self._machine.jobs()
            if jobs is None:
                continue
            self._told.polls += 1
            twice = nodes_twice(jobs)
            if twice:
                self._told.violations.append(twice)

    def stop(self):
        self._stop_now.set()
        self.join(PATIENCE_S)


def nodes_twice(jobs):
    from ropewalk.tenancy.imports.hostlist import expand

    seen = {}
    found = []
    for number, job in jobs.items():
        if job["job_state"] in ("RUNNING", "CONFIGURING", "COMPLETING") and job["nodes"]:
            for node in expand(job["nodes"]):
                if node in seen:
                    found.append((node, seen[node], number))
                seen[node] = number
    return found


def tell_story(machine, served, jobs, *, seed=1, kills=2, restarts=1, ctld_kills=0, cancels=0.15):
    """Run it; answers what was seen. Raises where one side never comes to rest."""
    told, dice = Told(), random.Random(seed)
    began = time.monotonic()
    watcher = Watcher(machine, told)
    watcher.start()
    try:
        moments = _moments(dice, jobs, kills, restarts, ctld_kills)
        for number in range(jobs):
            _submit(machine, dice, told)
            if dice.random() < cancels:
                _cancel(machine, dice, told)
            for what in moments.get(number, ()):
                _happen(machine, served, dice, told, what)
            time.sleep(dice.uniform(0.0, 0.15))
        machine.wait_for(machine.all_over, "all jobs are over in Slurm")
        machine.wait_for(lambda: not served.jobs(), "no job is left in the controller")
    finally:
        watcher.stop()
    for job in machine.jobs().values():
        told.outcomes[job["job_state"]] = told.outcomes.get(job["job_state"], 0) + 1
    told.seconds = time.monotonic() - began
    return told


def views_agree(machine, served, running):
    """Do both sides run so many jobs right now, the same ones, on the same nodes?"""
    from ropewalk.tenancy.imports.hostlist import expand

    jobs = machine.jobs() or {}
    theirs = {
        f"slurm:{number}": set(expand(job["nodes"])) for number, job in jobs.items() if job["job_state"] == "RUNNING"
    }
    ours = {
        job["external"]: {server["name"] for server in job["allocation"]["servers"]}
        for job in served.jobs("running")
        if job["external"]
    }
    return len(theirs) == running and theirs == ours


def _moments(dice, jobs, kills, restarts, ctld_kills):
    """After which job what happens, spread evenly with some chance."""
    events = ["kill"] * kills + ["restart"] * restarts + ["kill ctld"] * ctld_kills
    dice.shuffle(events)
    found = {}
    for place, what in enumerate(events):
        at = (place + 1) * jobs // (len(events) + 1)
        found.setdefault(max(1, at + dice.randint(-1, 1)), []).append(what)
    return found


def _starting(machine):
    return any(job["job_state"] == "CONFIGURING" for job in (machine.jobs() or {}).values())


def _submit(machine, dice, told):
    options = [f"--nodes={dice.choice(NODES)}", f"--job-name={dice.choice(NAMES)}", "--time=10"]
    if dice.random() < 0.05:
        options.append("--array=0-2")
        told.jobs += 2
    user = dice.choice((None, None, 65534))
    _, said = machine.sbatch(*options, script=f"sleep {dice.uniform(0.1, 1.5):.2f}", user=user)
    told.jobs += 1
    told.without_answer += "does not answer" in said


def _cancel(machine, dice, told):
    live = [number for number, job in (machine.jobs() or {}).items() if job["job_state"] not in ENDED]
    if live:
        machine.ask("scancel", dice.choice(live), check=False)
        told.cancelled += 1


def _happen(machine, served, dice, told, what):
    if what == "kill":
        served.kill()
        told.kills += 1
        for _ in range(2):
            _submit(machine, dice, told)
        time.sleep(dice.uniform(0.0, 1.0))
        served.start()
        return
    if what == "restart":
        # Slurm queues a job again, minutes later, whose prolog was killed with slurmctld: not what this is about.
        machine.wait_for(lambda: not _starting(machine), "no job is about to start")
    machine.ctld("kill" if what == "kill ctld" else "stop")
    told.restarts += 1
    time.sleep(dice.uniform(0.2, 1.0))
    machine.ctld("start")
    machine.wait_for(lambda: machine.jobs() is not None, "slurmctld answers again")
