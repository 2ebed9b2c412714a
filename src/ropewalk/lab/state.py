"""The file that says which labs there are: one JSON document per lab, in a folder that only its user can read.

It says which process holds the namespaces and everything that was built, so that every later command finds the same
network. A holder is named by its process number, the moment it began and the boot of the machine: a number that the
kernel has given to somebody else meanwhile is not taken for it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

from ropewalk.documents import json_text
from ropewalk.documents.sealed import read_sealed, sealed
from ropewalk.errors import LabError
from ropewalk.files import is_there, write_whole
from ropewalk.lab.network import LabSettings
from ropewalk.lab.saved import SavedFabric, SavedPath
from ropewalk.records import plain, record

FORMAT = "ropewalk lab 1"
FOLDER = "ROPEWALK_LABS"
"""The environment variable that names another folder."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)


@dataclass(frozen=True)
class Holder:
    """A process, so that no other is ever taken for it."""

    pid: int
    started: int
    """Clock ticks after the boot at which it began."""
    boot: str

    @classmethod
    def of(cls, pid: int) -> Holder:
        return cls(pid, _started(pid) or 0, _boot())

    @property
    def alive(self) -> bool:
        return self.boot == _boot() and _started(self.pid) == self.started


@dataclass(frozen=True)
class LabState:
    """One lab: who holds it, what was built, what was changed since."""

    name: str
    source: str
    """What it was built from, as people typed it."""
    holder: Holder
    inodes: tuple[int, ...]
    """The namespace of every node, as the kernel numbers them."""
    fabric: SavedFabric
    scale: float
    settings: LabSettings
    routing: str
    paths: tuple[SavedPath, ...] = ()
    """Of every pair of hosts; none where the kernel hashes."""
    numbers: tuple[int, ...] = ()
    """Of its cables, where circuits were changed."""
    cut: tuple[int, ...] = ()
    """Cables that are down."""
    slowed: tuple[tuple[int, int], ...] = ()
    """Links at another speed than the fabric's: (link, bits per second in the lab)."""
    lent: bool = False
    """Whether a run with routes of its own has taken the place of the routes of the lab."""

    def check(self) -> None:
        """Refuse numbers of nodes, links and cables that the fabric does not have."""
        hosts, links = self.fabric.hosts, len(self.fabric.links)
        sound = (
            self.fabric.is_sound
            and len(self.inodes) == len(self.fabric.nodes)
            and 0 < self.scale < inf
            and all(0 <= cable < links for cable in (*self.cut, *self.numbers))
            and all(0 <= link < links and bits > 0 for link, bits in self.slowed)
            and all(0 <= src < hosts and 0 <= dst < hosts and 0 < share <= 1 for src, dst, share, _ in self.paths)
            and all(0 <= link < links for *_, path in self.paths for link in path)
        )
        if not sound:
            raise LabError(f"lab {self.name}: its state is inconsistent: take it down and up again")


def folder() -> Path:
    """Where the documents of this user's labs are."""
    if named := os.environ.get(FOLDER):
        return Path(named)
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "ropewalk" / "labs"
    return Path("/run/ropewalk/labs") if os.geteuid() == 0 else Path(f"/tmp/ropewalk-{os.geteuid()}/labs")


def names() -> list[str]:
    """Labs that were brought up and not taken down, dead ones included."""
    return sorted(path.stem for path in folder().glob("*.json")) if folder().is_dir() else []


def require_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise LabError(f"{name!r} is not a valid name: use up to 32 of a-z, 0-9 and -, such as --name pod-1")


def read(name: str) -> LabState:
    """The state of a lab, checked."""
    require_name(name)
    path = path_of(name)
    if not is_there(path):
        known = ", ".join(names())
        remedy = f"name one of {known} with --name" if known else "bring one up, such as `ropewalk lab up torus:4x4`"
        raise LabError(f"there is no lab {name!r}: {remedy}")
    subject = f"lab {name}"
    document = read_sealed(path, subject, LabError, "take it down and up again")
    if document.get("format") != FORMAT:
        raise LabError(f"{subject}: {path} is not a document of the format {FORMAT!r}: take it down and up again")
    found = record(LabState, {key: value for key, value in document.items() if key != "format"}, subject, LabError)
    if found.name != name:
        raise LabError(f"{subject}: {path} is the state of lab {found.name[:40]!r}: take it down and up again")
    found.check()
    return found


def write(state: LabState) -> None:
    """Write the document of a lab, whole or not at all."""
    write_whole(path_of(state.name), json_text(sealed({"format": FORMAT, **plain(state)})))


def remove(name: str) -> None:
    path_of(name).unlink(missing_ok=True)


@contextmanager
def changing() -> Iterator[None]:
    """One command at a time makes, changes or removes labs; the lock goes with the process that has it."""
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.stat().st_uid != os.geteuid():  # nobody else may write what says which processes to end
        raise LabError(f"{place} belongs to another user: name your own folder in {FOLDER}")
    with open(place / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def path_of(name: str) -> Path:
    return folder() / f"{name}.json"


def _started(pid: int) -> int | None:
    """When a process began; None if it does not exist or is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
