"""Kernels answer what plain Python answers, word for word, and keep every count through jobs, drains and repairs."""

from __future__ import annotations

import numpy as np
import plain_links_of_jobs as plain_links
import plain_seats_of_jobs as plain_seats
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leaf_spine_states import KINDS, state_of

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.drained import Drained
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.shared import gpus_only
from ropewalk.tenancy.vclos.laas import laas
from ropewalk.tenancy.vclos.policy import vclos

PAIRS = (
    (vclos(), plain_links.vclos),
    (laas(), plain_links.laas),
    (gpus_only, plain_seats.gpus_only),
)


@st.composite
def plants(draw: st.DrawFn) -> Plant:
    """Uneven leafs, several cables or none between some of them and some spines."""
    leafs, spines = draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 4, 8, 66]))
    servers = draw(st.lists(st.integers(0, 5), min_size=leafs, max_size=leafs).filter(any))
    size = draw(st.sampled_from([1, 2, 3, 4, 8]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    odd = rng.integers(0, 4, (leafs, spines))
    cables = np.where(rng.random((leafs, spines)) < draw(st.sampled_from([0.0, 0.3])), odd, 1)
    return Plant("odd", size, np.repeat(np.arange(leafs), servers), cables)


def some_parts(where: Plant, rng: np.random.Generator) -> Drained:
    """One part of one kind, or one of each."""
    leaf, spine = np.nonzero(where.cables)
    server, under, over, link = (bool(chance < 0.3) for chance in rng.random(4))
    number = int(rng.integers(max(1, len(leaf))))
    return Drained(
        servers=[int(rng.integers(where.servers))] * server,
        leafs=[int(rng.integers(where.leafs))] * under,
        spines=[int(rng.integers(where.spines))] * over,
        links=[(int(leaf[number]), int(spine[number]))] if link and len(leaf) else [],
    )


def ask(state: Occupancy, size: int) -> list[Allocation | Waiting]:
    answers = []
    for quick, plain in PAIRS:
        answers.append(quick(state, "new", size))
        assert answers[-1] == plain(state, "new", size)
    return answers


@settings(max_examples=60, deadline=None)
@given(where=plants(), seed=st.integers(0, 2**32 - 1), events=st.integers(1, 20))
def test_answers_and_counts_are_those_of_plain_python(where, seed, events):
    rng = np.random.default_rng(seed)
    state = Occupancy(where)
    drained: list[Drained] = []
    for number in range(events):
        kind = rng.random()
        if kind < 0.2 and state.jobs:
            state.release(str(rng.choice(list(state.jobs))))
        elif kind < 0.3:
            parts = some_parts(where, rng)
            before = state.drained
            touched = state.drain(parts)
            assert set(touched) == {job for job, held in state.jobs.items() if uses(where, held, parts)}
            drained.append(state.drained - before)
        elif kind < 0.4 and drained:
            state.restore(drained.pop())
        else:
            answer = ask(state, int(rng.integers(1, where.gpus + 2)))[int(rng.integers(len(PAIRS)))]
            if isinstance(answer, Allocation):
                renamed = Allocation.from_document({**answer.as_document(), "job": f"job{number}"})
                state.place(renamed if rng.random() < 0.5 else answer)
                if "new" in state.jobs:
                    state.release("new")
                    state.place(renamed)
        state.check()
    for job in list(state.jobs):
        state.release(job)
    state.check()


def uses(where: Plant, held: Allocation, parts: Drained) -> bool:
    """Does a job use any of the parts? A job on shared links may use every link of its leafs."""
    shared = held.stage == "shared" and len(held.leafs) > 1
    servers = {gpu // where.gpus_per_server for gpu in held.gpus}
    links = {(leaf, spine) for leaf in held.leafs for spine in range(where.spines)} if shared else set(held.links)
    spines = set(range(where.spines)) if shared else set(held.spines)
    return any(
        set(one) & two
        for one, two in zip(
            (parts.servers, parts.leafs, parts.spines, parts.links),
            (servers, set(held.leafs), spines, links),
            strict=True,
        )
    )


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_adversarial_states_get_the_same_answers(kind):
    for number in range(25):
        state, leafs, spines = state_of(kind + len(KINDS) * (5_000 + number))
        ask(state, leafs * spines)
        ask(state, leafs * spines + 1)


def test_a_large_plant_near_saturation_gets_the_same_answers():
    rng = np.random.default_rng(3)
    state = Occupancy(plant("leaf-spine:32x16x32", gpus_per_server=8))
    stages = set()
    for number in range(150):
        while state.used > 0.9 * state.plant.gpus:
            state.release(str(rng.choice(list(state.jobs))))
        answers = ask(state, int(rng.choice([1, 3, 8, 24, 32, 64, 96, 128, 192])))
        answer = answers[number % len(answers)]
        stages.add(answer.stage if isinstance(answer, Allocation) else answer.reason.value)
        if isinstance(answer, Allocation):
            state.place(Allocation.from_document({**answer.as_document(), "job": f"job{number}"}))
    state.check()
    assert {"server", "leaf", "clos", "shared", "network-fragmentation"} <= stages


def test_a_job_that_is_refused_changes_nothing():
    state = Occupancy(plant("leaf-spine:4x4x4", gpus_per_server=2))
    held = vclos()(state, "a", 8)
    assert isinstance(held, Allocation)
    state.place(held)
    before = {name: value.copy() for name, value in vars(state).items() if isinstance(value, np.ndarray)}
    free = next(gpu for gpu in range(16) if gpu not in held.gpus)
    for gpus, links, cables in (
        ((free, held.gpus[0]), (), ()),
        ((free, free), (), ()),
        ((free, 99), (), ()),
        ((free, -1), (), ()),
        ((free,), ((2, 0), held.links[0]), (0, 0)),
        ((free,), ((2, 0), (2, 0)), (0, 0)),
        ((free,), ((2, 0), (2, 1)), (0, 1)),
        ((free,), ((2, 0), (2, 1)), (0, -1)),
        ((free,), ((2, 0), (9, 0)), (0, 0)),
    ):
        with pytest.raises(ClusterError):
            state.place(Allocation("b", gpus, "clos", (), (), links, (), (), cables=cables))
        for name, value in before.items():
            assert np.array_equal(value, getattr(state, name)), name
    state.check()
