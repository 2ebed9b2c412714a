"""The answer about an order: all methods beside the bound, settings searched or given, and the same on a network."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tiny_profiles import write_profile

from ropewalk.errors import DeviceError, StrategyError
from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.answer import order_of
from ropewalk.overlap.link import ExchangeKind
from ropewalk.overlap.methods import METHODS
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.simulated import simulated
from ropewalk.overlap.study import answer, best_behind_a_barrier, over_speeds, settings
from ropewalk.report.overlap_timeline import method_timeline
from ropewalk.sim.level import LevelUse
from ropewalk.training import NetworkUse, transport_of

RINGS = transport_of("h200")
NO_OVERHEADS = NetworkUse(transport=replace(RINGS, start_up_s=0.0, round_inside_s=0.0, round_across_s=0.0))
"""Operations cost their bytes alone."""


def slow(shape="2x2", nic_bandwidth=1.25e9, nvlink_bandwidth=1e11, **options):
    """Servers with one slow NIC each."""
    given = Given(nics=1, nic_bandwidth=nic_bandwidth, nvlink_bandwidth=nvlink_bandwidth, **options)
    return read_cluster(shape, given)


@pytest.fixture
def asked(tmp_path):
    path = write_profile(tmp_path)

    def ask(**options):
        return OverlapQuestion(str(path), **({"cluster": slow()} | options))

    return ask


def test_no_way_beats_the_bound_and_the_best_is_the_fastest(asked):
    found = answer(asked())
    assert [method.name for method in found.methods] == list(METHODS.names_for(ExchangeKind.ALL_REDUCE))
    assert all(min(method.step_s, method.time_s) >= found.bounds.step_s * (1 - 1e-9) for method in found.methods)
    assert found.best.time_s == min(method.time_s for method in found.methods if method.simulated_s is not None)


def test_of_ways_that_are_as_fast_the_one_with_the_fewest_operations_is_best(asked):
    found = answer(asked(cluster=slow(nic_bandwidth=1e13, nvlink_bandwidth=1e13), network=NO_OVERHEADS))
    near = [method for method in found.methods if method.step_s <= found.best.step_s * (1 + 1e-9)]
    assert len(near) > 2
    assert found.best.launches == min(method.launches for method in near)


def test_what_the_network_carries_is_every_byte_once_and_in_time(asked):
    found = answer(asked())
    for method in found.methods:
        for kind in {move.operation for move in method.moves}:
            carried = sum(move.size_bytes for move in method.moves if move.operation == kind)
            assert carried == pytest.approx(found.tensors.total_bytes)
        assert all(before.end_s <= after.begin_s + 1e-12 for before, after in pairwise(method.moves))
        assert method.forward_start_s[-1] + found.tensors.forward_s[-1] == pytest.approx(method.step_s)


def test_sums_taken_apart_scatter_every_group_and_then_gather_it(asked):
    found = answer(asked())
    method = found.method("dear")
    groups = len(method.groups)
    assert method.launches == len(method.moves) == 2 * groups
    assert [move.operation for move in method.moves] == ["reduce-scatter"] * groups + ["all-gather"] * groups
    scattered, gathered = (
        {move.tensors: move for move in half} for half in (method.moves[:groups], method.moves[groups:])
    )
    assert set(scattered) == set(gathered) == set(method.groups.members)
    assert all(
        move.begin_s >= found.tensors.ready_s[list(tensors)].max() - 1e-12 for tensors, move in scattered.items()
    )


def test_an_answer_has_an_order_whichever_way_is_best(asked):
    found = answer(asked())
    for method in found.methods:
        alone = replace(found, methods=(method,))
        assert alone.best is method
        assert alone.order()
        assert method_timeline(found, method, method.step_s) is not None


def test_pushes_and_pulls_carry_every_byte_each(asked):
    found = answer(asked(sync=ExchangeKind.PARAMETER_SERVER))
    assert [method.name for method in found.methods] == list(METHODS.names_for(ExchangeKind.PARAMETER_SERVER))
    for method in found.methods:
        for direction in ("push", "pull"):
            carried = sum(move.size_bytes for move in method.moves if move.operation == direction)
            assert carried == pytest.approx(found.tensors.total_bytes)


def test_partition_and_credit_are_searched_unless_they_are_given(asked):
    free = asked()
    tensors, link = free.tensors, free.link
    best = settings(free, tensors, link)
    for question, method in (
        (asked(partition_bytes=4e6), "1 partition sizes"),
        (asked(credit_bytes=4e6), "credit as given"),
        (asked(partition_bytes=4e6, credit_bytes=4e6), "as given"),
    ):
        found = settings(question, tensors, link)
        assert method in found.method
        assert question.partition_bytes in (None, found.best.partition_bytes)
        assert question.credit_bytes in (None, found.best.credit_bytes)
        assert found.best.step_s >= best.best.step_s - 1e-12


def test_groups_for_a_framework_with_a_barrier_are_no_slower_than_its_own(asked):
    found = answer(asked())
    groups, seconds = best_behind_a_barrier(found)
    assert groups.tensors == len(found.tensors)
    assert seconds <= min(found.method("buckets").step_s, found.method("merged").step_s) + 1e-12
    assert seconds >= found.best.step_s - 1e-12


def test_parameter_servers_that_are_few_are_slower(asked):
    few = answer(asked(sync=ExchangeKind.PARAMETER_SERVER, parameter_servers=1))
    many = answer(asked(sync=ExchangeKind.PARAMETER_SERVER, parameter_servers=2))
    assert few.best.step_s > many.best.step_s


def test_faster_networks_make_no_step_longer(asked):
    rows = over_speeds(asked(), (1.0, 10.0, 100.0))
    for name in METHODS.names_for(ExchangeKind.ALL_REDUCE):
        steps = [row.step_s for row in rows if row.method == name]
        assert steps == sorted(steps, reverse=True)
    assert all(row.step_s >= row.lower_bound_s * (1 - 1e-9) for row in rows)


def test_every_way_but_halves_of_sums_is_simulated_and_the_estimate_is_the_same_without_updates(asked):
    found = answer(asked(optimiser="none"))
    simulated = {method.name: method for method in found.methods if method.simulated_s is not None}
    assert set(simulated) == set(METHODS.names_for(ExchangeKind.ALL_REDUCE)) - {"dear"}
    for method in simulated.values():
        assert method.simulated_s == pytest.approx(method.step_s, rel=1e-9)


def test_updates_are_done_while_the_gpu_waits_where_layers_wait_for_themselves(asked):
    found = answer(asked())
    for method in found.methods:
        if method.order is not None and not method.order.across_steps:
            assert method.simulated_s == pytest.approx(method.step_s, rel=1e-9)
        elif method.order is not None:
            assert found.bounds.step_s * (1 - 1e-9) <= method.simulated_s <= method.step_s * (1 + 1e-9)


def test_an_estimate_alone_simulates_nothing(asked):
    found = answer(asked(), simulate=False)
    assert not found.is_simulated
    assert all(method.simulated_s is None and method.time_s == method.step_s for method in found.methods)


def test_an_order_that_wins_in_the_model_wins_on_a_shared_network_too(asked):
    found = answer(asked(cluster=slow("4x1", network="leaf-spine:2x1x2")))
    assert found.method("fused").time_s < found.method("buckets").time_s


def test_the_order_of_an_answer_is_that_of_its_best_way_and_simulates_to_its_time(asked):
    question = asked()
    found = answer(question)
    order = order_of(found)
    assert order == found.best.order
    again = simulated(question.training, order).statistics.step_time_s
    assert again == found.best.simulated_s


def test_packets_are_an_answer_too(asked):
    flow, packet = (
        answer(asked(network=NetworkUse(level=LevelUse(level)))).method("buckets").time_s
        for level in ("flow", "packet")
    )
    assert packet == pytest.approx(flow, rel=0.15)
    assert packet != flow


def test_questions_that_make_no_sense_are_refused(asked):
    with pytest.raises(StrategyError, match="needs no synchronisation"):
        asked(cluster=slow("1x1"))
    with pytest.raises(StrategyError, match="has no parameter servers"):
        asked(parameter_servers=2)
    with pytest.raises(StrategyError, match="use --sync all-reduce"):
        order_of(answer(asked(sync=ExchangeKind.PARAMETER_SERVER)))


def test_a_precision_that_does_not_exist_is_refused_for_profiles_too(asked):
    with pytest.raises(DeviceError, match="there is no precision 'int3'"):
        answer(asked(precision="int3"))
