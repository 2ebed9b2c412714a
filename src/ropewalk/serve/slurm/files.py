"""Everything that Slurm needs to work with the controller, as files that are complete as they are.

>>> from ropewalk.tenancy.plant import plant
>>> print(topology_conf(plant("leaf-spine:2x4x4", gpus_per_server=2)), end="")
SwitchName=leaf0 Nodes=server[0-1]
SwitchName=leaf1 Nodes=server[2-3]
SwitchName=spines Switches=leaf[0-1]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ropewalk.errors import ClusterError, Findings, InputError
from ropewalk.files import is_folder, is_there, write_whole
from ropewalk.tenancy.imports.hostlist import compress
from ropewalk.tenancy.plant import Plant

SCRIPTS = ("prolog_slurmctld", "epilog_slurmctld", "prolog", "epilog", "task_prolog", "ropewalk-srun")
"""Files that are run; Slurm refuses them without the right to."""
TEMPLATES = ("job_submit.lua", *SCRIPTS, "ropewalk.conf", "README.md")
_PATH = re.compile(r"/[A-Za-z0-9_./-]+")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class SlurmSite:
    """Where things are on the machines of a Slurm cluster, and how long Slurm waits for the controller."""

    socket: str = "/run/ropewalk/ropewalk.sock"
    at: str = "/etc/slurm/ropewalk"
    """Where prologs and epilogs lie."""
    run: str = "/run/ropewalk-jobs"
    """Where nodes keep the order of nodes while a job runs."""
    state: str = "/run/ropewalk"
    """Where SlurmUser may write, on the machine of slurmctld."""
    partition: str = "batch"
    operators: tuple[int, ...] = (0,)
    """User ids that may release and change held jobs."""
    wait_s: float = 0.2
    pause_s: int = 10
    """After a failure, time until the service is asked again."""
    rules_wait_s: int = 5
    """How long a job may wait for its routes before it starts without them."""

    def __post_init__(self) -> None:
        findings = Findings(ClusterError, "files for Slurm")
        for what in ("socket", "at", "run", "state"):
            value = getattr(self, what)
            if not _PATH.fullmatch(value):
                findings.add(f"{what} is {value!r}: give an absolute path of letters, digits and _ . / -")
        if len(self.socket.encode()) > 107:
            findings.add(f"the socket's path has {len(self.socket)} characters: give 107 or fewer")
        if not _NAME.fullmatch(self.partition):
            findings.add(f"partition is {self.partition!r}: give a name of letters, digits and _ . -")
        if any(user < 0 for user in self.operators):
            findings.add("an operator is a user id below 0: give 0 or more")
        for what, seconds in (("wait", self.wait_s), ("pause", self.pause_s), ("rules wait", self.rules_wait_s)):
            if not 0 < seconds <= 3600:
                findings.add(f"{what} is {seconds} s: give more than 0 and at most 3600")
        findings.raise_if_any()


def slurm_files(plant: Plant, site: SlurmSite) -> dict[str, str]:
    """File name -> content."""
    _check_names(plant)
    values = {
        "SOCKET": site.socket,
        "AT": site.at.rstrip("/"),
        "RUN": site.run.rstrip("/"),
        "STATE": site.state.rstrip("/"),
        "PARTITION": site.partition,
        "OPERATORS": ", ".join(f"[{user}] = true" for user in sorted({0, *site.operators})),
        "WAIT": f"{site.wait_s:g}",
        "PAUSE": str(site.pause_s),
        "RULES_WAIT": str(site.rules_wait_s),
        "GPUS": str(plant.gpus_per_server),
        "NODES": compress(plant.server_names),
        "PLANT": plant.name,
    }
    files = {name: _filled(name, values) for name in TEMPLATES}
    return files | {"topology.conf": topology_conf(plant)}


def topology_conf(plant: Plant) -> str:
    """Leafs and the one switch above them, as `topology/tree` reads it; Slurm has no word for single spines.

    With three tiers the spines of a pod are one switch, and the cores another; on rails a unit is one.
    """
    lines, pods = [], dict[int, list[str]]()
    for unit, name in enumerate(plant.unit_names):
        first, behind = plant.first_server[unit], plant.first_server[unit + 1]
        if first < behind:
            lines.append(f"SwitchName={name} Nodes={compress(plant.server_names[first:behind])}")
            pods.setdefault(int(plant.tiers.pod_of_leaf[unit * plant.rails]), []).append(name)
    used = [name for names in pods.values() for name in names]
    if len(pods) > 1:
        above = [f"pod{pod}" if f"pod{pod}" not in used else f"spines-of-pod{pod}" for pod in pods]
        lines += [
            f"SwitchName={pod} Switches={compress(names)}" for pod, names in zip(above, pods.values(), strict=True)
        ]
        used, tops = above, ("cores", "all-cores", "above-all-pods")
    else:
        tops = ("spines", "all-spines", "above-all-leafs")
    top = next(name for name in tops if name not in used)
    return "\n".join([*lines, f"SwitchName={top} Switches={compress(used)}"]) + "\n"


def write_slurm_files(files: dict[str, str], folder: str | Path) -> tuple[Path, ...]:
    """Write all of them, each whole; scripts can be run."""
    target = Path(folder)
    if is_there(target) and not is_folder(target):
        raise InputError(f"{target} is a file: give a folder")
    for name, content in files.items():
        write_whole(target / name, content)
        if name in SCRIPTS:
            (target / name).chmod(0o755)
    return tuple(target / name for name in files)


def _filled(name: str, values: dict[str, str]) -> str:
    text = (resources.files("ropewalk.serve.slurm") / "templates" / name).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], text)


def _check_names(plant: Plant) -> None:
    findings = Findings(ClusterError, f"plant {plant.name}")
    for name in (*plant.server_names, *plant.leaf_names):
        if not _NAME.fullmatch(name):
            findings.add(f"{name!r} cannot be a name in Slurm's files: rename it with letters, digits and _ . -")
    findings.raise_if_any()
