"""Quick steps in tiny worlds: what is simulated once, what is not, and that nothing is approximated."""

from dataclasses import replace

import numpy as np
import pytest
from nearly import differences
from timeline_bars import spread

from ropewalk.errors import GraphError, StrategyError
from ropewalk.hardware import Given, read_cluster
from ropewalk.report.rank_groups import one_per_stage
from ropewalk.report.step_timeline import step_timeline
from ropewalk.sim.level import LevelUse
from ropewalk.strategy import Order, Part, Strategy
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.quick import QuickSteps
from ropewalk.training.quick_answer import quick_answer

MODEL = "gpt:layers=6,hidden=256,heads=8,vocabulary=2048"
SERVERS = read_cluster("2x4", Given(device="a100", nics=4, nic_bandwidth=1e9))
ONE_NIC = read_cluster("2x4", Given(device="a100", nics=1, nic_bandwidth=1e9))


def asked(cluster=SERVERS, **options):
    return TrainingQuestion(MODEL, cluster, sequence=64, memory_check=False, **options)


QUICK = QuickSteps(asked())
PLAIN = Strategy(data=2, tensor=4, micro_batches=2)


def test_a_step_of_equal_ranks_has_one_task_for_each_row_of_operations():
    run = QUICK.run(PLAIN)
    # Two passes of two micro-batches, two gradient buckets at most, the update.
    assert run.system.tasks <= 8 < run.gang.operations
    assert set(run.layout.ranks.tolist()) == {8}


def test_micro_batches_recomputation_sizes_and_sharding_share_a_layout():
    quick = QuickSteps(asked())
    changes = {"micro_batches": 4}, {"micro_batch": 2}, {"recompute": "full"}, {"zero": 3}, {"sequence_parallel": True}
    for changed in ({}, *changes):
        quick.run(replace(PLAIN, **changed))
    assert len(quick.layouts) == 1


def test_ranks_at_a_shared_nic_are_told_apart_from_those_that_do_not_use_it():
    cluster = read_cluster("2x4,1x2", Given(device="a100", nics=1, nic_bandwidth=1e9))
    run = QuickSteps(asked(cluster)).run(Strategy(data=10, micro_batch=1))
    assert len(run.layout.ranks) == 1  # one all-reduce of all: nobody is earlier than another
    send = QuickSteps(asked(cluster)).run(Strategy(data=5, pipeline=2, micro_batches=2))
    assert len(send.layout.ranks) > 2


def test_passes_side_by_side_are_not_joined():
    pair = Strategy(data=1, tensor=4, pipeline=2, micro_batches=8, schedule="dualpipe")
    alone = replace(pair, schedule="1f1b")
    assert QUICK.run(alone).system.tasks < QUICK.run(alone).gang.operations / 2
    assert QUICK.run(pair).system.tasks >= QUICK.run(pair).gang.operations


@pytest.mark.parametrize("cluster", [SERVERS, ONE_NIC], ids=["a NIC per GPU", "one NIC per server"])
@pytest.mark.parametrize(
    ("strategy", "network"),
    [
        (Strategy(data=8, order=Order(1e6, priority="forward", partition_bytes=5e5)), NetworkUse()),
        (Strategy(data=4, pipeline=2, micro_batches=4, order=Order(1e6, priority="forward")), NetworkUse()),
        (Strategy(data=8, zero=3), NetworkUse(collectives="rounds")),
        (Strategy(data=8, micro_batches=2), NetworkUse(algorithm="halving-doubling")),
        (Strategy(data=4, tensor=2), NetworkUse(algorithm="data=forest")),
        (Strategy(data=2, pipeline=4, micro_batches=8, schedule="dualpipev"), NetworkUse()),
        (Strategy(pipeline=2, micro_batch=4, micro_batches=3,
                  parts=(Part(0, 3, (0, 1, 2, 3, 4, 5)), Part(4, 7, (6, 7)))), NetworkUse()),
    ],
    ids=["pieces by priority", "buckets by priority", "rounds", "halving-doubling", "forest", "pairs", "parts"],
)  # fmt: skip
def test_every_kind_of_step_takes_as_long_as_in_full_and_has_its_statistics(cluster, strategy, network):
    question = asked(cluster, network=network, decided=strategy, detail="stage")
    full, quick = answer(question), QuickSteps(question)
    assert quick.run(strategy).step_time_s == pytest.approx(full.run.makespan, rel=1e-9)
    told = quick_answer(quick, question).as_json()
    assert [gap for gap in differences(told, full.as_json()) if gap[0] != "/simulated_tasks"] == []


def test_one_rank_of_every_stage_is_drawn_as_in_full():
    question = asked(ONE_NIC, decided=Strategy(data=2, tensor=2, pipeline=2, micro_batches=4), detail="stage")
    full, found = answer(question), quick_answer(QuickSteps(question), question)
    drawn = [step_timeline(one.run, one_per_stage(one.stage_of_rank)) for one in (full, found)]
    assert drawn[0].caption == drawn[1].caption
    bars, others = (spread(one.json) for one in drawn)
    near = [np.abs(np.array(bars.pop(name)) - others.pop(name)).max() for name in ("start", "length", "span")]
    assert bars == others
    assert max(near) <= 1  # nanosecond


def test_ranks_that_are_told_apart_have_their_own_times():
    question = asked(ONE_NIC, decided=Strategy(data=4, pipeline=2, micro_batches=4), detail="stage", order="tp-pp-dp")
    full, found = answer(question), quick_answer(QuickSteps(question), question)
    times = found.statistics.times
    assert times.exposed_communication_s == pytest.approx(full.statistics.times.exposed_communication_s, rel=1e-9)
    assert len(np.unique(found.run.occupied.rank)) < full.strategy.ranks  # and not all of them were written out


def test_experts_meet_across_servers_as_long_as_in_full():
    question = replace(asked(), model="mixtral-8x7b:layers=2,hidden=256,heads=8,experts_per_layer=4,expert_ffn=512")
    strategy = Strategy(data=4, expert=4, tensor=2, micro_batches=2)
    full = answer(replace(question, decided=strategy, detail="stage")).run.trace.makespan
    assert QuickSteps(question).run(strategy).step_time_s == pytest.approx(full, rel=1e-9)


def test_a_collective_that_is_chosen_for_one_step_is_not_run_in_the_next():
    ring, halving = (QUICK.run(Strategy(data=8), algorithm=name).step_time_s for name in ("ring", "halving-doubling"))
    assert ring != halving
    assert QUICK.run(Strategy(data=8)).step_time_s == ring


@pytest.mark.parametrize(
    "options", [{"jitter": 0.1}, {"stragglers": {0: 2.0}}, {"network": NetworkUse(level=LevelUse("packet"))}]
)
def test_ranks_that_differ_and_packets_are_refused(options):
    with pytest.raises(GraphError, match="leave level, jitter and stragglers out"):
        QuickSteps(asked(**options))


def test_what_reaches_into_the_next_step_is_refused():
    with pytest.raises(StrategyError, match="in full"):
        QUICK.run(replace(PLAIN, order=Order(1e6, priority="forward", across_steps=True)))


def test_collectives_that_are_left_open_are_refused():
    with pytest.raises(GraphError, match="leaves collectives open"):
        QUICK.run(PLAIN, algorithm="auto")
