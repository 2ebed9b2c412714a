"""A random walk through the controller: every operation, often at a bad moment, with all invariants after each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from serve_invariants import check

from ropewalk.serve import operation as asked
from ropewalk.serve.controller import Controller
from ropewalk.serve.encoding import decode, encode
from ropewalk.serve.job import ServedJob
from ropewalk.serve.outcome import Outcome, Refused
from ropewalk.serve.settings import Settings
from ropewalk.serve.state import Counters, State
from ropewalk.tenancy.parts import drained_of, part_names
from ropewalk.tenancy.plant import Plant

POLICIES = ("ecmp", "source", "laas", "vclos", "vclos-all-divisors", "ocs-vclos", "topoopt")
WEIGHTS = {
    "submit": 34, "end": 26, "cancel": 4, "resize": 6, "hold": 2, "release": 3, "requeue": 1, "bind": 2, "expire": 2,
    "adopt": 3, "drain": 2, "restore": 3, "fail": 2, "repair": 4, "rules": 8, "policy": 1,
    "progress": 4,
}  # fmt: skip


def operations(state: State, chance: random.Random, policies: tuple[str, ...]) -> asked.Operation:
    """Something to do next, mostly about jobs that exist."""
    kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    jobs = list(state.jobs.values())
    running = [job.id for job in jobs if job.state == "running"]
    pending = [job.id for job in jobs if job.state == "pending"]
    some = chance.choice([*running, *pending, *list(state.ended)[-3:], "j999999"]) if chance.random() < 0.1 else None
    alive = some or (chance.choice(running) if running else "j1")
    waits = some or (chance.choice(pending) if pending else "j1")
    plant = state.occupancy.plant
    if kind == "submit":
        return _submit(state, chance)
    if kind == "end":
        return asked.End(alive, chance.choice(asked.OUTCOMES))
    if kind == "cancel":
        return asked.Cancel(chance.choice([alive, waits]))
    if kind == "resize":
        return asked.Resize(chance.choice([alive, alive, waits]), _gpus(plant, chance), chance.random() < 0.3)
    if kind == "hold":
        return asked.Hold(waits)
    if kind == "requeue":
        return asked.Requeue(alive)
    if kind == "release":
        held = [job.id for job in jobs if job.held]
        return asked.Release(chance.choice(held) if held else waits)
    if kind == "bind":
        unbound = [job.id for job in jobs if job.expires_at is not None]
        return asked.Bind(chance.choice(unbound) if unbound else alive, f"slurm:{chance.randrange(100)}")
    if kind == "progress":
        return asked.Progress(alive, 100, chance.uniform(0.1, 10.0), chance.randint(1, 100))
    if kind == "expire":
        return asked.Expire()
    if kind == "adopt":
        return _adopt(plant, running, chance)
    if kind == "rules":
        old = [job for job in jobs if job.releasing]
        job = chance.choice(old) if old else None
        return asked.RulesGone(job.id if job else alive, chance.choice([None, job.releasing[0][0]]) if job else None)
    if kind == "policy":
        return asked.ChangePolicy(
            chance.choice([None, *policies]),
            chance.choice([None, "fifo", "smallest", "edf", "shortest"]),
            chance.choice([None, "none", "easy", "conservative"]),
            chance.choice([None, True, False]),
        )
    parts = tuple({_part(state, kind, chance) for _ in range(chance.randint(1, 2))})
    return {"drain": asked.Drain, "restore": asked.Restore, "fail": asked.Fail, "repair": asked.Repair}[kind](parts)


def _submit(state: State, chance: random.Random) -> asked.Submit:
    plant = state.occupancy.plant
    servers: tuple[str, ...] = ()
    gpus = _gpus(plant, chance)
    if chance.random() < 0.1:
        servers = tuple(chance.sample(plant.server_names, min(plant.servers, chance.randint(1, 4))))
        gpus = len(servers) * chance.randint(1, plant.gpus_per_server)
    return asked.Submit(
        f"job {state.next_job}", gpus, servers=servers,
        expected_s=chance.choice([None, 1.0, 60.0, 3600.0]),
        deadline_s=chance.choice([None, 100.0]),
        priority=chance.choice([0.0, 0.0, 0.0, 1.0, -1.0]),
        requeue=chance.random() < 0.4,
        hold=chance.random() < 0.05,
        expires_s=chance.choice([None, None, None, 5.0]),
        promised_step_s=chance.choice([None, 0.1]),
    )  # fmt: skip


def _gpus(plant: Plant, chance: random.Random) -> int:
    """Small, of whole servers, a power of two, or anything up to a little more than there is."""
    size = plant.gpus_per_server
    return chance.choice([
        chance.randint(1, size), size * chance.randint(1, max(2, plant.servers // 2)), 1 << chance.randrange(8),
        chance.randint(1, plant.gpus + 1) if chance.random() < 0.2 else size,
    ])  # fmt: skip


def _adopt(plant: Plant, running: list[str], chance: random.Random) -> asked.Adopt:
    servers = tuple(chance.sample(plant.server_names, min(plant.servers, chance.randint(1, 4))))
    gpus = chance.choice([None, len(servers) * chance.randint(1, plant.gpus_per_server)])
    displaces = tuple(chance.sample(running, min(len(running), chance.randint(1, 3)))) if chance.random() < 0.5 else ()
    external = chance.choice([None, f"slurm:{chance.randrange(100)}"])
    return asked.Adopt(
        "there before", servers, gpus, started_at=0.0, requeue=chance.random() < 0.5, displaces=displaces,
        external=external,
    )  # fmt: skip


def _part(state: State, kind: str, chance: random.Random) -> str:
    """A part; one that is out of service where parts come back."""
    from ropewalk.tenancy.parts import part_names

    plant = state.occupancy.plant
    out = part_names(plant, state.failed if kind == "repair" else state.drained)
    if kind in ("restore", "repair") and out and chance.random() < 0.9:
        return chance.choice(out)
    which = chance.random()
    if which < 0.4 or not plant.spines:
        return f"server:{chance.choice(plant.server_names)}"
    if which < 0.5:
        return f"leaf:{chance.choice(plant.leaf_names)}"
    if which < 0.6:
        return f"spine:{chance.choice(plant.spine_names)}"
    if plant.cores and which < 0.75:
        cores = [f"core:{name}" for name in plant.core_names]
        links = [f"link:{spine}-{core}" for spine in plant.spine_names for core in plant.core_names]
        return chance.choice(cores if which < 0.65 else links)
    return f"link:{chance.choice(plant.leaf_names)}-{chance.choice(plant.spine_names)}"


@dataclass
class Walk:
    """A controller on its walk, and a twin that is rebuilt from documents now and then and must never differ."""

    plant: Plant
    settings: Settings
    seed: int
    policies: tuple[str, ...] = POLICIES
    restart_every: int = 50
    counts: Counter[str] = field(default_factory=Counter)
    log: list[tuple[asked.Operation, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.one = Controller.empty(self.plant, self.settings)
        self.twin = Controller.empty(self.plant, self.settings)
        self.now = 0.0

    def step(self) -> None:
        """One operation on both, and everything that must hold then."""
        self.now += self.chance.choice([0.0, 0.1, 1.0, 10.0])
        operation = operations(self.one.state, self.chance, self.policies)
        self.log.append((operation, self.now))
        name = type(operation).__name__
        before = digest(self.one.state)
        try:
            outcome = self.one.apply(operation, self.now)
        except Refused as refusal:
            self.counts[f"{name} refused: {refusal.code}"] += 1
            assert digest(self.one.state) == before, f"{operation} was refused and has changed something"
            _refused(self.twin, operation, self.now, refusal)
            return
        self.counts[name] += 1
        for event in outcome.events:
            self.counts[f"event {event.kind}"] += 1
        check(self.one.state)
        again = self.twin.apply(operation, self.now)
        assert _plain(again) == _plain(outcome), f"{operation} had two outcomes"
        if self.chance.randrange(self.restart_every) == 0:
            self.twin = restarted(self.twin, self.one.state.plant)
            check(self.twin.state)

    def finish(self) -> None:
        """Everything ends: nothing may be left."""
        for operation in _endings(self.one.state):
            self.one.apply(operation, self.now)
            check(self.one.state)
        state = self.one.state
        assert not state.jobs, f"{list(state.jobs)} are left"
        assert state.occupancy.used == 0
        assert not state.occupancy.releasing


def _endings(state: State) -> Iterator[asked.Operation]:
    while state.jobs:
        job = next(iter(state.jobs.values()))
        yield asked.Cancel(job.id)
        if job.id in state.jobs:
            yield asked.RulesGone(job.id)


def _refused(twin: Controller, operation: asked.Operation, now: float, refusal: Refused) -> None:
    again = None
    try:
        twin.apply(operation, now)
    except Refused as refused:
        again = refused.as_document()
    assert again == refusal.as_document(), f"{operation} was refused only once, or for another reason"


def restarted(controller: Controller, plant: Plant) -> Controller:
    """The controller as it comes back from what a store keeps."""
    state = controller.state
    kept = (*state.jobs.values(), *state.ended.values())
    jobs = [ServedJob.from_document(decode(encode(job.as_document()))) for job in kept]
    was, now = state.occupancy.plant, state.settings.rule.plant(plant)
    drained, failed = (drained_of(now, part_names(was, parts)) for parts in (state.drained, state.failed))
    new = Controller.from_documents(
        plant, state.settings, jobs, drained=drained, failed=failed, counters=Counters(state.next_job), now=state.now
    )
    assert (new.state.drained, new.state.failed) == (state.drained, state.failed)
    assert new.state.ended == dict(state.ended)
    for job in state.ended:
        new.state.ended.move_to_end(job)  # a store has them by when they ended, not by when their links were released
    return new


def digest(state: State) -> tuple[object, ...]:
    """Everything that a refusal must leave alone."""
    occupancy = state.occupancy
    return (
        tuple(state.jobs.items()), tuple(state.ended), tuple(state.line), state.settings, state.drained, state.failed,
        state.next_job, sorted(occupancy.jobs), sorted(occupancy.releasing), occupancy.free_gpus.tobytes(),
        occupancy.free_cables.tobytes(), occupancy.cables_free.tobytes(), occupancy.free_in_server.tobytes(),
    )  # fmt: skip


def _plain(outcome: Outcome) -> tuple[object, ...]:
    return outcome.answer, outcome.changed, outcome.events, outcome.parts, outcome.settings
