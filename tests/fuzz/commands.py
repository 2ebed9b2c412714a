"""Every command with a sound call, to which options with absurd values are added.

Commands that act on the machine (labs, services, measuring) are left out; their files are read in `sound_files`.
Commands that change the state file of a live cluster find it each time as it was.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.mutations import NUMBERS, TEXTS

SOUND = {
    "plan": "gpt2 --cluster 1x2 --batch 4 --seq 128",
    "sync": "--hosts 4 --physical ring --logical ring --size 1MB",
    "collective": "allreduce ring:4 --sizes 1MB",
    "pipeline": "gpt2 --cluster 1x2 --batch 4 --seq 128",
    "overlap": "gpt2 --cluster 2x1 --batch 4 --seq 128",
    "fabric": "ring:4",
    "expect": "1x2 --collective all_reduce",
    "simulate": "gpt2 --cluster 1x2 --batch 4 --seq 128",
    "export": "{plan} --to megatron --output {out}",
    "cost": "gpt2 --batch 2 --seq 128",
    "list": "routers",
    "cluster replay": "{jobs} --fabric leaf-spine:2x4x4 --gpus-per-server 2",
    "cluster snapshot": "{jobs} --fabric leaf-spine:2x4x4 --gpus-per-server 2 --at 2s",
    "cluster agreement": "{jobs} --fabric leaf-spine:2x4x4 --gpus-per-server 2 --at 2s --most-events 1e4",
    "cluster allocate": "--gpus 4 --fabric leaf-spine:2x4x4 --gpus-per-server 2",
    "cluster explain": "--gpus 4 --fabric leaf-spine:2x4x4 --gpus-per-server 2 --state {state}",
    "cluster rules": "a --state {state} --fabric leaf-spine:2x4x4 --gpus-per-server 2 --to {folder}",
    "cluster generate": "{made} --jobs 3",
    "cluster size": "--ports 16",
    "cluster submit": "c --gpus 2 --state {live} --fabric leaf-spine:2x4x4 --gpus-per-server 2",
    "cluster status": "--state {live}",
    "cluster queue": "--state {live}",
    "cluster what-if": "--gpus 2 --state {live}",
    "cluster end": "a --state {live}",
    "cluster cancel": "b --state {live}",
    "cluster hold": "b --note later --state {live}",
    "cluster release": "held --state {live}",
    "cluster resize": "a --gpus 2 --state {live}",
    "cluster drain": "spine:spine0 --state {live}",
    "cluster restore": "spine:spine1 --state {live}",
    "cluster fail": "leaf:leaf1 --state {live}",
    "cluster repair": "spine:spine2 --state {live}",
    "cluster policy": "laas --queue smallest --state {live}",
    "cluster report": "a --step 10 --took 2s --state {live}",
    "cluster events": "--limit 3 --state {live}",
    "serve slurm-files": "--to {slurm} --fabric leaf-spine:2x4x4 --gpus-per-server 2",
    "serve kubernetes-files": "--to {kubernetes} --fabric leaf-spine:2x4x4 --gpus-per-server 2",
    "serve systemd-unit": "--user ropewalk",
    "serve token list": "--database {database}",
    "lab status": "",
}
"""Arguments of a call that is answered within a second once kernels are compiled."""
HUGE = (
    "ring:99999999", "torus:9999x9999", "circulant:1000000", "leaf-spine:32x16x32", "dgx-h100:999999", "1x999999", "16",
    "gpt2:layers=100000", "gpt2:layers=99999999999999999999", "llama2-13b", "100Gbps", "1e30Gbps", "0Gbps", "1PB", "0B",
    "1e-9B", "0.5B", "1ps", "1e20days", "-5us", "all", "auto", "none", "default", "ring,ring,ring", "1,2,3", "{x}",
    "leaf:leaf0", "h0-h1", "../../x", "x:y:z", "1:5000", "10us",
)  # fmt: skip
PATHS = (
    "",
    ".",
    "/",
    "/dev/null",
    "nowhere/at/all.json",
    "/proc/self/mem",
    "n" * 300,
    "x.yaml",
    "x.csv",
    "x.html",
    "-",
)


@dataclass(frozen=True)
class Command:
    """A command, its sound call, and its options with the kind of value that each takes."""

    words: tuple[str, ...]
    sound: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    state: tuple[Path, bytes]
    """The state file of a live cluster, and what is in it before every call."""

    def prepare(self) -> None:
        path, content = self.state
        path.write_bytes(content)

    def call(self, case: int) -> list[str]:
        """The call of a case."""
        random = Random(f"{' '.join(self.words)} {case}")
        call = [*self.words, *self.sound]
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            if random.random() < 0.25 and len(call) > len(self.words):  # a value that is there already
                at = random.randrange(len(self.words), len(call))
                if not call[at].startswith("--"):
                    call[at] = (
                        random.choice((*TEXTS, *NUMBERS, *HUGE)).replace("\0", "").encode("utf-8", "replace").decode()
                    )
                continue
            name, kind = random.choice(self.options)
            call += [name] if kind == "flag" else [name, _value(kind, random)]
        return call


def _value(kind, random):
    values = {"int": NUMBERS, "float": NUMBERS, "path": (*PATHS, *TEXTS), "text": (*TEXTS, *NUMBERS, *HUGE, *HUGE)}[
        kind
    ]
    return random.choice(values).replace("\0", "").encode("utf-8", "replace").decode()


def commands(folder: Path) -> list[Command]:
    """All of them; files that they read are in the folder."""
    import typer

    from fuzz.sound_cluster_files import JOBS
    from fuzz.sound_files import SOUND as FILES
    from ropewalk.cli import app
    from ropewalk.serve.store import open_store

    for name in ("plan", "state"):
        FILES[name](folder)
    (folder / "jobs.csv").write_text(JOBS)
    os.environ["ROPEWALK_LABS"] = str(folder / "labs")
    live = folder / "live.json"
    live.write_bytes(_live_state(folder / "made.json"))
    open_store(str(folder / "serve.db")).close()
    places = {"plan": "plan.json", "state": "state.json", "jobs": "jobs.csv", "out": "out.sh", "folder": "rules"}
    places |= {"live": "live.json", "made": "made.csv", "database": "serve.db"}
    places |= {"slurm": "slurm", "kubernetes": "kubernetes"}
    named = {key: str(folder / value) for key, value in places.items()}
    root = typer.main.get_command(app)
    found = []
    for words, sound in SOUND.items():
        command = root
        for word in words.split():
            command = command.commands[word]
        options = tuple(_option(one) for one in command.params if one.opts[0].startswith("-") and one.name != "help")
        sound = tuple(part.format(**named) for part in sound.split())
        found.append(Command(tuple(words.split()), sound, options, (live, live.read_bytes())))
    return found


def _live_state(path: Path) -> bytes:
    """A cluster with a job that runs, one that waits and one that is held, and parts out of service."""
    from ropewalk.serve.state_file import StateFile
    from ropewalk.tenancy.plant import plant

    small = plant("leaf-spine:2x4x4", gpus_per_server=2)
    for where, body in (
        ("jobs", {"name": "a", "gpus": 4}), ("jobs", {"name": "b", "gpus": 8}),
        ("jobs", {"name": "held", "gpus": 2}), ("jobs/j3/hold", {}),
        ("drain", {"parts": ["spine:spine1"], "note": ""}), ("failures", {"parts": ["spine:spine2"], "note": ""}),
    ):  # fmt: skip
        reply = StateFile(path, lambda: small, clock=lambda: 10.0).ask("POST", f"/v1/{where}", body)
        assert reply.status < 400, reply.document
    return path.read_bytes()


def _option(parameter):
    annotation = str(parameter.type_descriptor.annotation)
    kind = next((kind for kind in ("int", "float", "path") if kind in annotation.lower()), "text")
    flag = getattr(parameter, "is_flag", False) or "bool" in annotation
    return max(parameter.opts, key=len), "flag" if flag else kind


def run(arguments):
    """The whole command line in this process; what is not an answer or a refusal is raised."""
    from ropewalk.cli import main
    from ropewalk.errors import InputError

    sys.argv = ["ropewalk", *arguments]
    try:
        main()
    except SystemExit as leaving:
        if leaving.code == 2:
            raise InputError("refused") from None
        if leaving.code not in (None, 0, 3, 4):
            raise RuntimeError(f"exit code {leaving.code}: {' '.join(arguments)}") from None
    except BaseException as problem:
        problem.add_note(" ".join(arguments))
        raise


def warmed(command):
    """Let a command answer its sound call once, so that its kernels are there when it is called again and again."""
    command.prepare()
    saved = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1), os.dup2(nothing, 2)
    try:
        run([*command.words, *command.sound])
    finally:
        os.dup2(saved[0], 1), os.dup2(saved[1], 2)
