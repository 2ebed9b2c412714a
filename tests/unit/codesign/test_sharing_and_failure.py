"""Partitions of a cluster, a second panel, and a fibre that breaks."""

import pytest
from tiny_plans import circle, tables_and_stack

from ropewalk.codesign.failure import break_fibre, detour, without_cable
from ropewalk.codesign.prices import price_list
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.codesign.sharing import look_ahead, one_panel, partition, whole_wiring
from ropewalk.errors import FabricError, InputError
from ropewalk.routing import shortest


def test_jobs_get_servers_of_their_own_and_no_cable_leaves_a_partition():
    jobs = [PlanQuestion("dlrm", published_servers(12, 5)), PlanQuestion("bert", published_servers(8, 5))]
    first, second = partition(24, jobs)
    assert (list(first.servers), list(second.servers)) == (list(range(12)), list(range(12, 20)))
    cables = whole_wiring(24, [(first, circle(12)), (second, circle(8, (1, 3)))])
    assert all((a < 12) == (b < 12) for a, b, _ in cables)
    assert max(max(a, b) for a, b, _ in cables) == 19


def test_too_many_jobs_and_mixed_ports_are_refused_together():
    jobs = [PlanQuestion("dlrm", published_servers(16)), PlanQuestion("bert", published_servers(16, 8))]
    with pytest.raises(InputError, match="2 findings"):
        partition(24, jobs)


def test_a_second_panel_hides_all_patching_but_the_first():
    runs = [3600.0, 3600.0, 3600.0]
    single = one_panel(runs, price_list(), 4, 12.5e9, patch_s=180.0)
    double = look_ahead(runs, price_list(), 4, 12.5e9, patch_s=180.0, flip_s=0.01)
    assert single.idle_s == pytest.approx(3 * 180.0)
    assert double.idle_s == pytest.approx(180.0 + 3 * 0.01)
    assert double.cost > single.cost


def test_a_job_shorter_than_the_patching_waits_for_the_rest_of_it():
    double = look_ahead([60.0, 60.0], price_list(), 4, 12.5e9, patch_s=180.0, flip_s=0.0)
    assert double.starts_s == pytest.approx((180.0, 360.0))


def test_the_hop_that_lost_its_cable_goes_over_a_cable_for_pairs_where_that_is_as_short():
    broken = without_cable(circle(12), 0, 5)
    # 0-6-5 uses the cable between opposite servers; 0-1-…, 0-11-… take three hops over rings.
    assert detour(broken, 0, 5) == (0, 6, 5)
    assert (0, 5) not in {(a, b) for a, b, _ in broken.cables}


def test_a_broken_fibre_slows_the_step_until_a_spare_port_is_patched():
    wiring = circle(12)
    found = break_fibre(tables_and_stack(12), wiring, lambda _: shortest, (0, 5))
    assert found.detour == (0, 6, 5)
    assert found.over_pair_cable
    assert found.before_s < found.degraded_s
    assert found.repatched_s == found.before_s
    assert 0 < found.lost_s < found.patch_s
    assert break_fibre(tables_and_stack(12), wiring, lambda _: shortest, (0, 5), spare_ports=0).repatched_s is None


def test_without_cables_for_pairs_the_ring_is_closed_over_other_rings():
    found = break_fibre(tables_and_stack(12), circle(12, matched=False), lambda _: shortest, (0, 1))
    assert len(found.detour) > 2
    assert not found.over_pair_cable
    assert found.slow_down > 1.2


def test_a_cable_that_is_not_there_cannot_break_and_the_last_one_leaves_no_way():
    with pytest.raises(FabricError, match="no cable joins"):
        without_cable(circle(12), 0, 3)
    with pytest.raises(FabricError, match="patch a spare port"):
        detour(without_cable(circle(2, (1,), matched=False), 0, 1), 0, 1)
