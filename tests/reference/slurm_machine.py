"""A real Slurm cluster on this machine, in a folder of its own: slurmctld and a slurmd for every server of a plant.

Daemons listen on the loopback alone. Authentication is switched off, which is why nothing else may.
"""

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

KEEPER = Path(__file__).with_name("slurm_keeper.py")
NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo", "scancel")
PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""
ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL"})
CONF = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0,nohold_on_prolog_fail
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=1
MessageTimeout=90
"""


def why_not():
    """Why no Slurm can be started here; None where it can."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is not installed (Debian: apt-get install slurm-wlm lua-socket)"
    if os.geteuid() != 0:
        return "slurmd starts jobs of users, which needs root"
    return None


class SlurmMachine:
    """Started with `with`; commands of Slurm run with `ask`."""

    def __init__(self, folder, servers, files=None, *, plugin=None):
        """`files` is a folder of `ropewalk serve slurm-files`; `plugin` a job_submit.lua in its place."""
        self.folder, self.servers, self.files = Path(folder), tuple(servers), files
        self.conf = self.folder / "slurm.conf"
        self._plugin = plugin
        self._keeper = None

    def __enter__(self):
        for name in ("state", "spool", "log"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for server in self.servers:
            (self.folder / "spool" / server).mkdir(exist_ok=True)
        self.conf.write_text(self._conf())
        if self.files is not None:
            for name in ("job_submit.lua", "topology.conf"):
                shutil.copy(Path(self.files) / name, self.folder / name)
        if self._plugin is not None:
            (self.folder / "job_submit.lua").write_text(self._plugin)
        self._keeper = subprocess.Popen(
            [sys.executable, str(KEEPER), str(self.conf), *self.servers],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, env=self.environment,
        )  # fmt: skip
        assert self._keeper.stdout.readline() == "done\n"
        self.wait_for(lambda: self._idle() == len(self.servers), "all nodes idle")
        return self

    def __exit__(self, *_):
        self._keeper.stdin.close()
        self._keeper.wait(PATIENCE_S)
        self._keeper.stdout.close()

    @property
    def environment(self):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
        return clean | {"SLURM_CONF": str(self.conf)}

    def ask(self, *words, user=None, check=True, timeout=PATIENCE_S):
        """What a command of Slurm prints; as another user, who has no rights, where one is given."""
        before = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        ran = subprocess.run(
            [*before, *map(str, words)], env=self.environment, cwd="/", capture_output=True, text=True, timeout=timeout
        )
        if check and ran.returncode:
            raise AssertionError(f"{words}: {ran.stderr}")
        return ran

    def sbatch(self, *options, script="sleep 0.3", user=None, check=True):
        """The number of a job that was submitted, and what its user was told."""
        words = ["sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", script]
        ran = self.ask(*words, user=user, check=check)
        return int(ran.stdout) if ran.returncode == 0 else None, ran.stderr

    def jobs(self):
        """Slurm's list by number, as it prints it."""
        ran = self.ask("squeue", "--json", check=False)
        return None if ran.returncode else {job["job_id"]: job for job in json.loads(ran.stdout)["jobs"]}

    def ctld(self, what):
        """stop, kill or start slurmctld."""
        self._keeper.stdin.write(f"{what} ctld\n")
        self._keeper.stdin.flush()
        assert self._keeper.stdout.readline() == "done\n"

    def log(self):
        return (self.folder / "log" / "slurmctld.log").read_text(errors="replace")

    def wait_for(self, true, what):
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {PATIENCE_S:g} s: {what}\n{self._left()}\n{self.log()[-1500:]}")
            time.sleep(0.05)

    def all_over(self):
        jobs = self.jobs()
        return jobs is not None and all(job["job_state"] in ENDED for job in jobs.values())

    def _left(self):
        """Jobs that are not over, in a few words each."""
        shown = (
            "job_id", "array_job_id", "array_task_id", "array_task_string", "name", "job_state", "nodes", "priority",
            "state_reason", "required_nodes", "dependency", "admin_comment",
        )  # fmt: skip
        jobs = [job for job in (self.jobs() or {}).values() if job["job_state"] not in ENDED]
        return "\n".join([f"{len(jobs)} jobs", *(str({key: job[key] for key in shown}) for job in jobs[:8])])

    def _idle(self):
        ran = self.ask("sinfo", "--noheader", "--Node", "--format=%t", check=False)
        return ran.stdout.split().count("idle")

    def _conf(self):
        ports = free_ports(len(self.servers) + 1)
        lines = [CONF.format(port=ports[0], folder=self.folder)]
        for server, port in zip(self.servers, ports[1:], strict=True):
            lines.append(
                f"NodeName={server} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=500\n"
            )
        if self.files is not None:
            lines.append(f"Include {self.files}/ropewalk.conf\n")
        else:
            plugin = "JobSubmitPlugins=lua\n" if self._plugin is not None else ""
            nodes = ",".join(self.servers)
            lines.append(f"{plugin}PartitionName=batch Nodes={nodes} Default=YES OverSubscribe=EXCLUSIVE State=UP\n")
        return "".join(lines)


def free_ports(count):
    """Ports of the loopback that nobody uses, below those that the kernel gives to whoever asks for any."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    for port in random.sample(range(10_000, lowest), lowest - 10_000):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"there are no {count} free ports below {lowest}")
