"""Tokens on their way to experts: a copy for each expert, or one for each place that has some of them."""

from __future__ import annotations

from itertools import combinations

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import Strategy
from ropewalk.training import TrainingQuestion
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.dispatch import reached, sent_once
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.experts import Experts
from ropewalk.workload.operator import Split
from ropewalk.workload.source import open_workload

TINY = "qwen3-30b-a3b:layers=2,hidden=256,heads=4,kv_heads=2,size=64,experts_per_layer=16,choices=4,expert_ffn=128"


@pytest.mark.parametrize(("places", "experts", "choices"), [(2, 8, 3), (4, 8, 2), (4, 4, 4), (8, 8, 1)])
def test_places_that_are_reached_are_those_of_all_ways_to_choose(places, experts, choices):
    ways = [len({one * places // experts for one in way}) for way in combinations(range(experts), choices)]
    assert reached(places, experts, choices) == pytest.approx(sum(ways) / len(ways))


def test_over_four_servers_a_token_crosses_once_to_each_that_has_an_expert_of_its():
    assert sent_once(32, 8, 256, 8) == pytest.approx(reached(4, 256, 8) / 8)


def test_over_two_servers_gpus_pass_tokens_on_for_longer_than_nics_bring_them():
    nics_alone = reached(2, 128, 8) / 8
    assert nics_alone == pytest.approx(2 / 8, rel=0.01)
    assert sent_once(16, 8, 128, 8) == pytest.approx(1.32 * nics_alone, rel=0.01)


def test_inside_a_server_a_token_goes_once_to_each_gpu():
    assert sent_once(8, 8, 128, 8) == pytest.approx(reached(8, 128, 8) / 8)


def test_limited_routing_caps_the_servers_that_a_token_reaches():
    assert sent_once(64, 8, 256, 8, 0.5) == 4 / 8 < sent_once(64, 8, 256, 8)


def test_ranks_that_share_tensors_are_fewer_to_a_server():
    once = Exchange(Meeting.DISPATCH, 1000, once=True, experts=128, choices=8)
    assert once.travelling(Split(expert=16, tensor=4)) == sent_once(16, 2, 128, 8)
    assert Exchange(Meeting.DISPATCH, 1000).travelling(Split(expert=16)) == 1.0


def test_hybrid_ep_sends_a_weight_for_each_expert_of_a_domain_with_every_token():
    """As 7,168 numbers of 16 bits and 256 float32: 1.07 times as much on the way there, as much as before back."""
    operators = open_workload("deepseek-v3:stack=megatron,dispatch=hybridep,domain=64").layers[-2].operators
    there, back = (
        next(op for op in operators if isinstance(op, Exchange) and op.meeting is meeting)
        for meeting in (Meeting.DISPATCH, Meeting.COMBINE)
    )
    split = Split(expert=64)
    assert there.travelling(split) == pytest.approx((1 + 2 * 256 / 7168) * back.travelling(split))
    beyond = Split(expert=128)  # half of all experts are in its domain
    assert there.travelling(beyond) == pytest.approx((1 + 2 * 128 / 7168) * back.travelling(beyond))


def seconds(model: str, schedule: str = "1f1b") -> float:
    cluster = read_cluster(given=Given(16, "h100"))
    quick = QuickSteps(TrainingQuestion(model, cluster, sequence=512))
    return quick.run(Strategy(data=16, expert=16, micro_batches=4, schedule=schedule)).step_time_s


def test_sent_once_tokens_arrive_sooner_and_beside_another_micro_batch_sooner_still():
    whole, once = seconds(TINY), seconds(f"{TINY},dispatch=deepep")
    assert once < whole
    assert seconds(f"{TINY},dispatch=deepep", "1f1b-overlap") < once


def test_the_fullest_rank_and_padded_slots_set_the_pace():
    def slots(options: str) -> int:
        operators = open_workload(f"{TINY}{options}", 1, 512).layers[1].operators
        return next(one.slots for one in operators if isinstance(one, Experts))

    assert slots("") == 4 * 512
    assert slots(",imbalance=1.5") == slots(",capacity=1.5") == 6 * 512
    assert seconds(f"{TINY},imbalance=1.5") > seconds(TINY)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("dispatch=nvshmem", "there is no dispatcher 'nvshmem': use one of nccl, deepep, hybridep"),
        ("imbalance=0.5", "give imbalance=1 or more"),
        ("capacity=1.2,imbalance=1.1", "give either capacity or imbalance"),
        ("capacity=-1", "give a number, 0 or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, said):
    with pytest.raises(WorkloadError, match=said):
        open_workload(f"{TINY},{options}")


def test_a_model_without_experts_has_no_dispatch():
    with pytest.raises(WorkloadError, match="it has no experts: leave the dispatch deepep out"):
        open_workload("llama-7b:dispatch=deepep,domain=8")
