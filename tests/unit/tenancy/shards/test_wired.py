"""What exchanges take on the cables of a shard, against closed forms and bytes counted cable by cable."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ropewalk.codesign.wiring_for import wiring_for
from ropewalk.errors import ClusterError, FabricError, Findings, PhysicsError
from ropewalk.hardware import Cluster, Ports, Servers
from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.invariants import check_allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.rates import SharedNetwork
from ropewalk.tenancy.shards.allocate import servers_of, shard, shard_of
from ropewalk.tenancy.shards.demands import demands_of
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.shards.wired import wired_for
from ropewalk.tenancy.work import Iteration, JobExchange

RACKS = plant("leaf-spine:8x8x16", gpus_per_server=4)
BEHIND = PanelPlant.of_plant(RACKS)
ONE_PORT = BEHIND.nic_bandwidth


def seconds(exchange: JobExchange, gpus: int, where: PanelPlant = BEHIND) -> float:
    found = wired_for(where, Iteration(0.0, (exchange,)), shard(Occupancy(where), "a", gpus))
    assert found is not None
    return found.seconds_a_byte[0] * exchange.size_bytes


@pytest.mark.parametrize("servers", [2, 3, 5, 8, 16])
@pytest.mark.parametrize("collective", ["ring", "hierarchical-ring"])
def test_an_all_reduce_keeps_all_ports_of_all_servers_busy(servers: int, collective: str) -> None:
    took = seconds(JobExchange(collective, 1e9), 4 * servers)
    assert took == pytest.approx(2 * (servers - 1) / servers * 1e9 / (4 * ONE_PORT), rel=1e-9)


def test_an_all_gather_takes_half_of_an_all_reduce() -> None:
    both = [seconds(JobExchange(name, 1e9), 32) for name in ("all-gather", "hierarchical-ring")]
    assert both[1] == pytest.approx(2 * both[0])


@pytest.mark.parametrize("servers", [3, 5, 8, 12, 16])
def test_an_all_to_all_takes_what_its_busiest_cable_needs(servers: int) -> None:
    """Bytes of every pair added up along its routes, in plain Python."""
    exchange = JobExchange("all-to-all", 4.0 * servers * 1e6)
    asked = demands_of(exchange, np.arange(4 * servers) // 4)
    group = Servers(servers, 4, "h200", BEHIND.server_bandwidth, 4, ONE_PORT)
    made = wiring_for(asked, Cluster((group,), Ports(4, duplex=False), 0.0))
    cables = {(a, b): count for a, b, count in made.wiring.cables}
    carried: Counter[tuple[int, int]] = Counter()
    for share, path in made.routes:
        for hop in pairwise(path):
            carried[hop] += share * float(asked.pairs[path[0], path[-1]])
    busiest = max(sent / (cables[hop] * ONE_PORT) for hop, sent in carried.items())
    assert seconds(exchange, 4 * servers) == pytest.approx(busiest, rel=1e-6)


def test_neighbours_of_a_pipeline_are_joined_directly() -> None:
    exchange = JobExchange("pipeline", 1e9, group=8, stride=4)
    # Four ranks of a server send to four of the next, and as much comes back: two of four ports lead each way.
    assert seconds(exchange, 32) == pytest.approx(4 * 1e9 / (2 * ONE_PORT))


def test_groups_inside_servers_need_no_cables() -> None:
    held = shard(Occupancy(BEHIND), "a", 16)
    assert wired_for(BEHIND, Iteration(0.1, (JobExchange("ring", 1e9, group=4),)), held) is None
    assert wired_for(BEHIND, Iteration(0.1), held) is None


def test_jobs_that_send_the_same_in_other_amounts_share_a_wiring() -> None:
    held = shard(Occupancy(BEHIND), "a", 32)
    small, large = (
        wired_for(BEHIND, Iteration(1.0, (JobExchange("ring", size), JobExchange("all-to-all", size / 3))), held)
        for size in (1e6, 7e9)
    )
    assert small is large


def test_a_ring_that_uses_one_nic_of_a_server_gets_no_faster_by_cables_for_all() -> None:
    network = SharedNetwork(BEHIND, "source", 0)
    held = shard(Occupancy(BEHIND), "a", 32)
    one = network.footprint(Iteration(0.0, (JobExchange("ring", 1e9),)), held)
    all_ = network.footprint(Iteration(0.0, (JobExchange("hierarchical-ring", 1e9),)), held)
    assert one.alone_iteration_s == one.quiet_iteration_s
    assert one.alone_iteration_s > 3 * all_.alone_iteration_s


def test_on_an_ideal_network_nothing_is_relayed() -> None:
    held = shard(Occupancy(BEHIND), "a", 128)
    work = Iteration(0.0, (JobExchange("all-to-all", 1e9),))
    wired = SharedNetwork(BEHIND, "source", 0).footprint(work, held)
    assert SharedNetwork(BEHIND, "ideal", 0).footprint(work, held).alone_iteration_s == wired.quiet_iteration_s
    assert wired.alone_iteration_s > 1.5 * wired.quiet_iteration_s


def test_ports_are_used_once_and_nothing_leaves_a_shard() -> None:
    state = Occupancy(BEHIND)
    sent, received = np.zeros(BEHIND.servers, int), np.zeros(BEHIND.servers, int)
    owner: dict[int, str] = {}
    for number, gpus in enumerate((12, 40, 4, 64, 8)):
        held = shard(state, f"job{number}", gpus)
        state.place(held)
        wired = wired_for(BEHIND, Iteration(0.0, (JobExchange("all-to-all", 1e9), JobExchange("ring", 1e9))), held)
        servers = servers_of(BEHIND, held)
        for server in servers:
            assert owner.setdefault(server, held.job) == held.job
        for a, b, count in wired.wiring.cables if wired else ():
            sent[servers[a]] += count
            received[servers[b]] += count
    assert (sent <= BEHIND.ports).all()
    assert (received <= BEHIND.ports).all()
    state.check()


def test_rails_become_racks() -> None:
    rails = plant("rails:8x4x4", gpus_per_server=4)
    behind = PanelPlant.of_plant(rails)
    assert (behind.rails, behind.leafs, behind.servers) == (1, 2, 8)
    assert shard(Occupancy(behind), "a", 32).stage == "shard"


def test_what_cannot_be_patched_is_refused() -> None:
    with pytest.raises(FabricError, match="give 1, or 2"):
        PanelPlant.of_plant(RACKS, panels=3)
    large = Plant("large", 1, np.zeros(1200, np.int32), np.ones((1, 1), np.int32))
    with pytest.raises(FabricError, match="a rack of 1200 servers needs a port for each, and a panel has 1008"):
        PanelPlant.of_plant(large)
    assert "a panel has 1008, and large has 1200" in (POLICIES["topoopt"].applies((), large) or "")
    with pytest.raises(ClusterError, match="no patch panels"):
        shard(Occupancy(RACKS), "a", 8)


def test_more_servers_than_a_panel_has_ports_stand_in_islands_and_shards_stay_in_one() -> None:
    behind = PanelPlant.of_plant(plant("leaf-spine:6x4x8", gpus_per_server=4), panel_ports=5)
    assert (behind.islands, behind.island_of_rack.tolist()) == (3, [0, 0, 1, 1, 2, 2])
    state = Occupancy(behind)
    state.place(shard(state, "a", 12))
    state.place(shard(state, "b", 12))
    state.place(shard(state, "c", 12))
    assert [sorted({*state.jobs[job].leafs}) for job in "abc"] == [[0, 1], [2, 3], [4, 5]]
    assert state.check() is None
    waits = shard(state, "d", 8)
    assert isinstance(waits, Waiting)
    assert waits.explanation == "8 GPUs need 2 servers behind the same panels, and no island has more than 1 idle"
    assert not waits.never
    never = shard(Occupancy(behind), "e", 20)
    assert isinstance(never, Waiting)
    assert never.never
    assert "the largest island has 4" in never.explanation


def test_islands_are_few_and_of_like_size() -> None:
    rows = np.repeat(np.arange(256, dtype=np.int32), 16)
    large = PanelPlant.of_plant(Plant("large", 8, rows, np.ones((256, 1), np.int32)))
    assert np.bincount(large.island_of_server).tolist() == [832, 832, 832, 832, 768]


def test_chosen_gpus_of_two_islands_are_no_shard() -> None:
    state = Occupancy(PanelPlant.of_plant(plant("leaf-spine:4x4x8", gpus_per_server=4), panel_ports=4))
    assert isinstance(shard_of(state, "a", range(8)), Allocation)
    refused = shard_of(state, "a", [0, 1, 2, 3, 16, 17, 18, 19])
    assert isinstance(refused, Waiting)
    assert "different islands" in refused.explanation
    shard_on_both = replace(shard_of(state, "a", range(8)), gpus=(0, 16), leaf_of_gpu=(0, 2), leafs=(0, 2))
    findings = Findings(PhysicsError, "shards")
    check_allocation(state.plant, shard_on_both, findings)
    with pytest.raises(PhysicsError, match="islands that no cable joins"):
        findings.raise_if_any()
