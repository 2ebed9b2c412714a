"""The programs of OCS-vClos word for word, virtual leaf by virtual leaf, and small states to ask them about."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.optical.fibres import FreeFibres
from ropewalk.tenancy.optical.plant import OpticalPlant


def random_fibres(seed: int, leafs: int, spines: int, switches: int, most: int = 2) -> FreeFibres:
    """Fibres free at random, more or fewer of them."""
    rng = np.random.default_rng(seed)
    leaf = rng.random((leafs, switches)) < rng.uniform(0.4, 1.0)
    spine = rng.binomial(most, rng.uniform(0.3, 1.0), (spines, switches)).astype(np.int64)
    return FreeFibres(leaf, spine)


def filled(plant: OpticalPlant, sizes: list[int], releases: list[int]) -> Occupancy:
    """A state after jobs of these sizes came, where they could, and some of them went."""
    state = Occupancy(plant)
    for number, size in enumerate(sizes):
        got = ocs_vclos(state, f"job{number}", size)
        if isinstance(got, Allocation):
            state.place(got)
        if number < len(releases) and state.jobs:
            state.release(sorted(state.jobs)[releases[number] % len(state.jobs)])
    return state


class Program:
    """A linear program over named whole numbers."""

    def __init__(self) -> None:
        self.number: dict[object, int] = {}
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def variable(self, name: object, upper: float, cost: float = 0.0) -> None:
        self.number[name] = len(self.upper)
        self.upper.append(upper)
        self.cost.append(cost)

    def row(self, terms: dict[object, float], low: float, high: float) -> None:
        self.rows.append(({self.number[name]: value for name, value in terms.items()}, low, high))

    def best(self) -> float | None:
        """The least cost, or None where there is no solution."""
        matrix = np.zeros((len(self.rows), len(self.upper)))
        for number, (terms, _, _) in enumerate(self.rows):
            for column, value in terms.items():
                matrix[number, column] = value
        answer = milp(
            self.cost,
            integrality=np.ones(len(self.cost), np.int64),
            bounds=Bounds(0, self.upper),
            constraints=LinearConstraint(matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows]),
        )
        assert answer.status in (0, 2), answer.message
        return None if answer.x is None else float(round(answer.fun))


def leaf_program(idle: list[int], leafs: int, servers: int) -> float | None:
    """5a: x[i, a] virtual leafs of so many servers; as few idle servers on the used leafs as possible."""
    program = Program()
    for leaf, free in enumerate(idle):
        program.variable(("used", leaf), 1, free)
        for a in range(free // servers):
            program.variable(("x", leaf, a), 1)
    virtual = [name for name in program.number if isinstance(name, tuple) and name[0] == "x"]
    program.row(dict.fromkeys(virtual, 1.0), leafs, leafs)
    for name in virtual:
        program.row({name: 1.0, ("used", name[1]): -1.0}, -np.inf, 0)
    return program.best()


def network_program(fibres: FreeFibres, leafs: NDArray[np.int64], width: int) -> float | None:
    """5b for virtual leafs that are given; the least sum of free ports of touched spines."""
    virtual = [(leaf, a) for leaf in range(len(leafs)) for a in range(int(leafs[leaf]))]
    return _network(fibres, virtual, len(virtual), width, chosen=True)


def joint_program(fibres: FreeFibres, room: NDArray[np.int64], leafs: int, width: int) -> float | None:
    """5a and 5b at once: is there any choice of virtual leafs that can be joined?"""
    virtual = [(leaf, a) for leaf in range(len(room)) for a in range(int(room[leaf]))]
    return _network(fibres, virtual, leafs, width, chosen=False)


def _network(
    fibres: FreeFibres, virtual: list[tuple[int, int]], leafs: int, width: int, *, chosen: bool
) -> float | None:
    spines, switches = fibres.spine.shape
    program = Program()
    for spine in range(spines):
        program.variable(("y", spine), width)
        program.variable(("touched", spine), 1, int(fibres.of_spine[spine]))
    for leaf, a in virtual:
        program.variable(("x", leaf, a), 1)
    for (leaf, a), spine, switch in product(virtual, range(spines), range(switches)):
        program.variable(("c", leaf, a, spine, switch), 1)
    circuits = [name for name in program.number if name[0] == "c"]  # type: ignore[index]
    program.row({("y", spine): 1.0 for spine in range(spines)}, width, width)
    program.row({("x", leaf, a): 1.0 for leaf, a in virtual}, leafs, leafs)
    for leaf, a in virtual:
        own = {name: 1.0 for name in circuits if name[1:3] == (leaf, a)}
        program.row({**own, ("x", leaf, a): -float(width)}, 0, 0)
        for spine in range(spines):
            program.row({**{n: 1.0 for n in own if n[3] == spine}, ("y", spine): -1.0}, -np.inf, 0)
        if chosen:
            program.row({("x", leaf, a): 1.0}, 1, 1)
    for leaf, switch in product(sorted({leaf for leaf, _ in virtual}), range(switches)):
        there = {name: 1.0 for name in circuits if (name[1], name[4]) == (leaf, switch)}
        program.row(there, -np.inf, int(fibres.leaf[leaf, switch]))
    for spine in range(spines):
        program.row({("y", spine): 1.0, ("touched", spine): -float(width)}, -np.inf, 0)
        own = {name: 1.0 for name in circuits if name[3] == spine}
        program.row({**own, ("y", spine): -float(leafs)}, 0, 0)
        for switch in range(switches):
            there = {name: 1.0 for name in own if name[4] == switch}
            program.row(there, -np.inf, int(fibres.spine[spine, switch]))
    return program.best()
