"""All-to-all schedules on the fabrics with independently known optima: promised, proved and simulated at that rate."""

from __future__ import annotations

import pytest
from optimum_worlds import known_fabric, known_fabrics

from ropewalk.collectives.all_to_all import best_paths, direct_schedule, relayed_schedule
from ropewalk.collectives.optimum import network_of
from ropewalk.fabric import Torus
from ropewalk.sim.simulate import simulate_rounds
from ropewalk.task import lockstep

KNOWN = [known for known in known_fabrics() if "alltoall" in known["expected"]]


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN])
def test_the_ways_of_an_all_to_all_carry_the_known_rate_in_theory_and_in_simulation(known):
    # The largest is built here, because its symmetry is known then; without, it has 24,577 variables.
    fabric = Torus((4, 4, 4), bandwidth=1.0).build() if known["name"] == "torus4x4x4" else known_fabric(known)
    paths = best_paths(network_of(fabric))
    paths.check()
    assert paths.gap == 0
    assert float(paths.algbw) == pytest.approx(known["expected"]["alltoall"], abs=1e-6)
    schedule = direct_schedule(paths)
    schedule.routes.check()
    run = simulate_rounds(lockstep(schedule.program, 1e6, hosts=schedule.hosts), schedule.routes)
    assert run.makespan * float(paths.algbw) == pytest.approx(1e6, rel=1e-6)


@pytest.mark.parametrize("known", [pytest.param(k, id=k["name"]) for k in KNOWN if len(k["compute"]) <= 32])
def test_passing_chunks_on_comes_within_a_hundredth_of_the_known_rate(known):
    paths = best_paths(network_of(known_fabric(known)))
    relayed_schedule(paths, 2).program.check()
    schedule = relayed_schedule(paths, 250)
    assert float(schedule.promise) == pytest.approx(known["expected"]["alltoall"], rel=1e-2)
    run = simulate_rounds(lockstep(schedule.program, 1e6, hosts=schedule.hosts), schedule.routes)
    assert 1 - 1e-9 <= run.makespan * float(schedule.promise) / 1e6 < 1.01
