"""A Slurm that a test can hold in its hand: jobs, nodes, a scheduler that starts whatever it may, and its commands.

It follows what Debian's 22.05 was seen to do: `scontrol hold` of a running job only sets its priority, a release gives
it back, an update of `12_3` splits a task off, finished jobs stay in the list until they are forgotten.
"""

import json
from dataclasses import dataclass, field

from ropewalk.serve.slurm.commands import SlurmFailed
from ropewalk.tenancy.imports.hostlist import compress, expand


@dataclass
class PretendJob:
    id: int
    nodes_asked: int
    user: str = "ada"
    name: str = "train"
    state: str = "PENDING"
    nodes: tuple = ()
    required: tuple = ()
    priority: int = 100
    comment: str = ""
    array: str = ""
    array_id: int = 0
    task: int | None = None
    dependency: str = ""

    def row(self):
        return {
            "job_id": self.id,
            "array_job_id": self.array_id,
            "array_task_id": self.task,
            "array_task_string": self.array,
            "job_state": self.state,
            "name": self.name,
            "user_name": self.user,
            "partition": "batch",
            "nodes": compress(self.nodes),
            "node_count": self.nodes_asked,
            "max_nodes": self.nodes_asked,
            "tasks": self.nodes_asked,
            "required_nodes": ",".join(self.required),
            "excluded_nodes": "",
            "features": "",
            "resv_name": "",
            "het_job_id": 0,
            "priority": self.priority,
            "dependency": self.dependency,
            "eligible_time": 0,
            "time_limit": 60,
            "admin_comment": self.comment,
        }


@dataclass
class PretendSlurm:
    names: tuple
    jobs: dict = field(default_factory=dict)
    out: set = field(default_factory=set)
    next_id: int = 1
    crash_after: int | None = None
    """Commands that still succeed before the process of whoever asks is killed."""
    answers: bool = True

    def submit(self, nodes, **fields):
        job = PretendJob(self.next_id, nodes, **fields)
        if job.array:
            job.array_id = job.id
        self.jobs[job.id] = job
        self.next_id += 1
        return job

    def busy(self):
        return {node for job in self.jobs.values() if job.state in ("RUNNING", "COMPLETING") for node in job.nodes}

    def schedule(self):
        """Start what may start, in order; nobody waits for those before it."""
        for job in list(self.jobs.values()):
            while job.array and job.priority:
                self._task(job.id, int(expand(f"[{job.array}]")[0]))
        for job in list(self.jobs.values()):
            if job.state != "PENDING" or not job.priority or job.dependency:
                continue
            free = [name for name in self.names if name not in self.busy() and name not in self.out]
            chosen = job.required or tuple(free[: job.nodes_asked])
            if len(chosen) == job.nodes_asked and set(chosen) <= set(free):
                job.state, job.nodes = "RUNNING", tuple(sorted(chosen, key=self.names.index))

    def finish(self, job, state="COMPLETED"):
        job.state = state

    def requeue(self, job):
        job.state, job.nodes = "PENDING", ()

    def forget(self):
        self.jobs = {number: job for number, job in self.jobs.items() if job.state in ("PENDING", "RUNNING")}

    def run(self, arguments, timeout_s):
        """What `ropewalk.serve.slurm.commands.run` does, here."""
        if not self.answers:
            raise SlurmFailed("slurmctld does not answer")
        if self.crash_after is not None:
            if self.crash_after == 0:
                raise KeyboardInterrupt
            self.crash_after -= 1
        command, rest = arguments[0], list(arguments[1:])
        return {"squeue": self._squeue, "sinfo": self._sinfo, "scontrol": self._scontrol, "scancel": self._scancel}[
            command
        ](rest)

    def _squeue(self, rest):
        assert rest == ["--json"]
        return json.dumps({"jobs": [job.row() for job in self.jobs.values()]})

    def _sinfo(self, rest):
        assert rest == ["--json"]
        nodes = [
            {"name": name, "state": "down" if name in self.out else "idle", "state_flags": [], "reason": ""}
            for name in self.names
        ]
        return json.dumps({"nodes": nodes})

    def _scontrol(self, rest):
        verb, *words = rest
        if verb == "update":
            fields = dict(word.split("=", 1) for word in words)
            for job in self._named(fields.pop("JobId")):
                self._update(job, fields)
        elif verb in ("hold", "release"):
            for job in self._named(words[0]):
                job.priority = 0 if verb == "hold" else 100
        else:
            raise AssertionError(rest)
        return ""

    def _update(self, job, fields):
        if "NumNodes" in fields and job.array_id:
            raise SlurmFailed("Job resizing not supported for job arrays")
        if job.state != "PENDING" and ("NumNodes" in fields or fields.get("ReqNodeList")):
            raise SlurmFailed("Job is no longer pending execution")
        for key, value in fields.items():
            if key == "AdminComment":
                job.comment = value
            elif key == "ReqNodeList":
                job.required = tuple(expand(value)) if value else ()
            elif key == "NumNodes":
                job.nodes_asked = int(value)
            else:
                raise AssertionError(key)

    def _scancel(self, rest):
        for job in self._named(rest[0]):
            if job.state in ("PENDING", "RUNNING"):
                job.state = "CANCELLED"
        return ""

    def _named(self, text):
        """The jobs that a name means: the number of an array alone means all of its tasks."""
        number, _, tasks = text.partition("_")
        if tasks:
            return [self._task(int(number), int(task)) for task in expand(tasks)]
        found = [job for job in self.jobs.values() if job.id == int(number) or job.array_id == int(number)]
        if not found:
            raise SlurmFailed("Invalid job id specified")
        return found

    def _task(self, array, task):
        for job in self.jobs.values():
            if job.array_id == array and job.task == task:
                return job
        parent = self.jobs.get(array)
        left = [int(one) for one in expand(f"[{parent.array}]")] if parent is not None and parent.array else []
        if task not in left:
            raise SlurmFailed("Invalid job id specified")
        left.remove(task)
        if not left:
            parent.array, parent.task = "", task
            return parent
        parent.array = ",".join(map(str, left))
        fields = {"user": parent.user, "name": parent.name, "priority": parent.priority, "comment": parent.comment}
        return self.submit(parent.nodes_asked, array_id=parent.id, task=task, **fields)
