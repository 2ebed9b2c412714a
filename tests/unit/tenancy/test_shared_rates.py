"""How long iterations take alone, by hand, and together."""

from __future__ import annotations

import numpy as np
import pytest
from job_exchanges import EXCHANGES

from ropewalk.errors import ClusterError
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.paths import SwitchNetwork, ideal, links_of
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import routing_named
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.work import Iteration, JobExchange

NIC = 12.5e9


def on(where: Plant, job: str, gpus: list[int]) -> Allocation:
    """A job on shared links."""
    leafs = where.leaf_of_gpu[gpus].tolist()
    return Allocation(
        job, tuple(gpus), "shared", tuple(sorted(set(leafs))), (), (), (-1,) * len(gpus), tuple(leafs), "none"
    )


def ring_seconds(seconds: float, gpus: int) -> JobExchange:
    """A ring all-reduce that takes so long where only NICs limit it."""
    return JobExchange("ring", seconds * NIC * gpus / (2 * (gpus - 1)))


def test_halving_doubling_takes_its_closed_form() -> None:
    """V (2 (1 - 1/G) / B_inside + 2 (1/G - 1/N) / B_nic), the published form without start-up times."""
    where = plant("leaf-spine:4x4x8", gpus_per_server=4)
    network = SharedNetwork(where, "ideal", 0)
    found = network.footprint(Iteration(0.0, (JobExchange("halving-doubling", 1e9),)), on(where, "a", list(range(32))))
    form = 1e9 * (2 * (1 - 1 / 4) / where.server_bandwidth + 2 * (1 / 4 - 1 / 32) / where.nic_bandwidth)
    assert found.quiet_iteration_s == pytest.approx(form)


def test_an_exchange_costs_only_what_it_takes_beyond_its_overlap() -> None:
    where = plant("leaf-spine:2x4x4", gpus_per_server=1)
    network = SharedNetwork(where, "ideal", 0)
    exchange = ring_seconds(0.4, 8)
    for overlap, wanted in ((0.0, 1.4), (0.1, 1.3), (0.9, 1.0)):
        work = Iteration(1.0, (JobExchange("ring", exchange.size_bytes, overlap_s=overlap),))
        assert network.footprint(work, on(where, "a", list(range(8)))).quiet_iteration_s == pytest.approx(wanted)


def test_a_bidirectional_ring_fills_nics_and_links_alike_and_meets_nobody() -> None:
    where = plant("leaf-spine:2x4x4", gpus_per_server=1)
    network = SharedNetwork(where, "source", 0)
    work = Iteration(0.1, (JobExchange("double-ring", 1e9),))
    found = network.footprint(work, on(where, "a", list(range(8))))
    assert found.met_alone == 0
    assert found.alone_iteration_s == pytest.approx(found.quiet_iteration_s)


def test_two_jobs_that_always_send_over_one_spine_get_half_each() -> None:
    where = plant("leaf-spine:2x1x4", gpus_per_server=1)
    network = SharedNetwork(where, "ecmp", 0)
    work = Iteration(0.0, (ring_seconds(1.0, 2),))
    for number, gpus in enumerate(([0, 4], [1, 5])):
        name = f"job{number}"
        network.start(name, number, network.footprint(work, on(where, name, gpus)))
    assert network.settle() == ["job0", "job1"]
    assert network.pace("job0").iteration_s == pytest.approx(2.0)
    assert network.pace("job0").met_flows == network.running("job0").sent
    network.stop("job1")
    assert network.settle() == ["job0"]
    assert network.pace("job0").iteration_s == pytest.approx(1.0)


def test_jobs_on_other_links_keep_their_pace_and_are_not_asked() -> None:
    where = plant("leaf-spine:4x1x2", gpus_per_server=1)
    network = SharedNetwork(where, "ecmp", 0)
    work = Iteration(0.5, (ring_seconds(0.5, 2),))
    for number, gpus in enumerate(([0, 2], [4, 6], [1, 3])):
        name = f"job{number}"
        network.start(name, number, network.footprint(work, on(where, name, gpus)))
        assert network.settle() == (["job0", "job2"] if number == 2 else [name])
    assert network.sharing("job0") == ["job2"]
    assert network.sharing("job1") == []


def test_random_ecmp_of_eight_flows_on_eight_links_fills_the_fullest_as_often_as_chance_says() -> None:
    """8 flows on 8 up links: the fullest carries 2.60 on average (facts of random ECMP)."""
    where = plant("leaf-spine:2x8x8", gpus_per_server=1)
    job = on(where, "a", list(range(16)))
    src, dst = np.arange(8), np.arange(8, 16)
    fullest = []
    for seed in range(400):
        network = SwitchNetwork(where, where.cables, lambda: np.zeros(0), seed)
        path = routing_named("ecmp").make(network, job, src, dst)
        fullest.append(np.bincount(path[:, 0]).max())
    assert np.mean(fullest) == pytest.approx(2.60, abs=0.12)


def test_polarised_hashes_leave_parallel_cables_down_idle() -> None:
    """2 spines x 2 cables: the leaf's choice among 4 decides the spine's choice among 2 when both hash alike."""
    where = plant("leaf-spine:2x2x64x2", gpus_per_server=1)
    job = on(where, "a", list(range(128)))
    src, dst = np.arange(64), np.arange(64, 128)
    used = {}
    for name in ("ecmp", "ecmp-polarised"):
        network = SwitchNetwork(where, where.cables, lambda: np.zeros(0), 3)
        used[name] = len(np.unique(routing_named(name).make(network, job, src, dst), axis=0))
    assert used["ecmp"] == 8
    assert used["ecmp-polarised"] == 4


def test_balanced_routing_spreads_a_permutation_without_meeting() -> None:
    where = plant("leaf-spine:4x8x8", gpus_per_server=1)
    network = SharedNetwork(where, "balanced", 0)
    work = Iteration(0.1, (JobExchange("halving-doubling", 1e9),))
    assert network.footprint(work, on(where, "a", list(range(32)))).met_alone == 0


def test_source_routing_meets_itself_where_leafs_hold_unequal_numbers() -> None:
    """6 + 6 + 4 under halving-doubling collides; 4 x 4 does not (the rule of equal leafs)."""
    where = plant("leaf-spine:4x8x8", gpus_per_server=1)
    network = SharedNetwork(where, "source", 0)
    work = Iteration(0.0, (JobExchange("halving-doubling", 1e9),))
    unequal = on(where, "a", [*range(6), *range(8, 14), *range(16, 20)])
    equal = on(where, "b", [8 * leaf + place for leaf in range(4) for place in range(4)])
    assert network.footprint(work, unequal).met_alone > 0
    assert network.footprint(work, equal).met_alone == 0


def test_the_ideal_network_holds_nobody_up_even_when_oversubscribed() -> None:
    where = plant("leaf-spine:2x1x8", gpus_per_server=1)
    work = Iteration(0.0, (JobExchange("all-to-all", 1e9),))
    job = on(where, "a", list(range(16)))
    assert SharedNetwork(where, "ideal", 0).footprint(work, job).alone_iteration_s == pytest.approx(15 / 16 * 1e9 / NIC)
    assert SharedNetwork(where, "ecmp", 0).footprint(work, job).alone_iteration_s > 3 * 15 / 16 * 1e9 / NIC


def test_leafs_without_a_common_spine_and_unknown_routings_are_refused() -> None:
    where = Plant("split", 1, np.array([0, 1]), np.array([[1, 0], [0, 1]]))
    network = SharedNetwork(where, "ecmp", 0)
    with pytest.raises(ClusterError, match="no spine connects leaf0 and leaf1"):
        network.footprint(Iteration(0.0, (JobExchange("ring", 1.0),)), on(where, "a", [0, 1]))
    with pytest.raises(ClusterError, match="no routing 'magic'"):
        routing_named("magic")


@pytest.mark.parametrize("collective", [name for name in EXCHANGES if name != "xor"])
def test_every_collective_runs_alone_at_the_speed_of_nics_under_the_ideal(collective: str) -> None:
    where = plant("leaf-spine:4x8x8", gpus_per_server=2)
    network = SwitchNetwork(where, where.cables, lambda: np.zeros(links_of(where)), 0)
    found = SharedNetwork(where, "ideal", 0).footprint(
        Iteration(0.0, (JobExchange(collective, 1e9),)), on(where, "a", list(range(24)))
    )
    assert found.alone_iteration_s == found.quiet_iteration_s > 0
    assert len(found.links) == 0
    assert (ideal(network, on(where, "a", [0, 8]), np.array([0]), np.array([1]))[0] == -1).all()
