"""Questions about a small transformer, answered through every part: prices, strategy, step, tasks, simulation."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ropewalk.errors import DeviceError, InputError, StrategyError, WorkloadError
from ropewalk.hardware import Given, read_cluster
from ropewalk.plans import dumps, loads
from ropewalk.report.training import memory_bars, training_page
from ropewalk.sim.level import LevelUse
from ropewalk.strategy import Part, Strategy
from ropewalk.task.transport import Transport
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from ropewalk.training.planned import plan_of, question_of
from ropewalk.workload.opaque import Measured
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Layer, chain

SMALL = "gpt:layers=4,hidden=256,heads=8,vocabulary=2048"
QUESTION = TrainingQuestion(SMALL, gpus=8, sequence=128, batch=32)


def of(gpus, device=None, **options):
    return read_cluster(given=Given(gpus, device, **options))


def times(found):
    numbers = found.statistics
    return numbers.step_time_s, numbers.compute_s, numbers.exposed_communication_s, numbers.bubble_s


@pytest.mark.parametrize(
    ("degrees", "purposes"),
    [
        ({}, {"data"}),
        ({"tensor": 8}, {"tensor"}),
        ({"tensor": 2, "pipeline": 2, "micro_batch": 4}, {"tensor", "data", "pipeline"}),
        ({"usual": Strategy(zero=3)}, {"zero"}),
    ],
)
def test_every_rank_accounts_for_the_step_and_the_right_streams_are_used(degrees, purposes):
    found = answer(replace(QUESTION, **degrees))
    whole, *parts = times(found)
    assert sum(parts) == pytest.approx(whole)
    assert whole > parts[0] > 0
    assert purposes <= set(found.statistics.times.exposed_by_purpose_s) <= purposes | {"data", "zero"}
    assert 0 < found.statistics.mfu < 1


def test_one_gpu_communicates_with_nobody():
    found = answer(replace(QUESTION, gpus=1))
    whole, compute, exposed, bubble = times(found)
    assert (exposed, bubble) == (0, 0)
    assert compute == pytest.approx(whole)
    assert found.statistics.bottleneck is None


def test_any_device_will_do_for_one_gpu_but_several_must_be_wired():
    assert times(answer(replace(QUESTION, cluster=of(1, "cpu"), gpus=None, precision="fp32")))[0] > 0
    with pytest.raises(InputError, match="the wiring of servers of gpu cpu is not known"):
        of(8, "cpu")


def test_a_slower_network_never_makes_a_step_faster():
    speeds = (1e9, 5e9, 50e9)
    spent = [times(answer(replace(QUESTION, cluster=of(16, nic_bandwidth=speed), gpus=None)))[0] for speed in speeds]
    assert spent[0] > spent[1] >= spent[2]


def test_a_straggler_holds_up_everybody_and_the_others_wait():
    even, held = answer(QUESTION), answer(replace(QUESTION, stragglers={3: 2.0}))
    assert times(held)[0] > 1.5 * times(even)[0]
    compute = held.statistics.times.compute_s
    assert compute[3] == pytest.approx(2 * compute[0])
    assert held.statistics.times.bubble_s[0] > held.statistics.times.bubble_s[3]


def test_jitter_depends_on_the_seed_alone():
    first, again, other = (
        times(answer(replace(QUESTION, jitter=0.1, network=NetworkUse(seed=seed)))) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_rounds_one_by_one_agree_with_fluid_collectives_in_one_server():
    asked = replace(QUESTION, tensor=8)
    fluid, rounds = (answer(replace(asked, network=NetworkUse(collectives=mode))) for mode in ("fluid", "rounds"))
    assert times(rounds) == pytest.approx(times(fluid))
    assert rounds.run.trace.graph.tasks > fluid.run.trace.graph.tasks


def test_the_answer_as_json_has_what_people_ask_for_and_is_the_same_twice():
    asked = replace(QUESTION, pipeline=2)
    first, second = (json.dumps(answer(asked).as_json(), allow_nan=False) for _ in range(2))
    assert first == second
    found = json.loads(first)
    wanted = {"step_time_s", "compute_s", "exposed_communication_s", "bubble_s", "mfu", "memory_bytes",
              "bottleneck_link", "cost_source", "strategy", "fabric", "stages", "versions", "seed"}  # fmt: skip
    assert wanted <= set(found)
    assert found["cost_source"].startswith("measured on h200")
    assert found["strategy"]["pipeline"] == len(found["stages"]) == 2
    layers = [name for stage in found["stages"] for name in stage["layers"]]
    assert layers == [layer.name for layer in open_workload(SMALL, batch=1, sequence=128).layers]
    assert len(found["ranks"]["compute_s"]) == 8


def test_a_workload_made_in_python_is_as_good_as_a_name():
    made = open_workload(SMALL, batch=4, sequence=128)
    assert times(answer(replace(QUESTION, model=made))) == times(answer(QUESTION))


def test_what_does_not_fit_is_refused_or_noted():
    asked = replace(QUESTION, model="gpt3-175b", batch=8, sequence=None, cluster=of(8, "h100"))
    with pytest.raises(StrategyError, match=r"stage 0 needs .* GB on gpu h100"):
        answer(asked)
    noted = answer(replace(asked, memory_check=False))
    assert "would not fit" in noted.notes[0]
    assert noted.memory.most > noted.capacity_bytes


def test_a_profile_keeps_its_batch_and_says_that_its_times_are_its_own():
    layers = [Layer(f"layer {number}", (Measured(1e-3, 2e-3, weights=1000),), 100) for number in range(3)]
    found = answer(TrainingQuestion(chain("timed", layers, batch=16, source="profile timed.txt"), gpus=2))
    assert found.cost_source == (
        "all layers: times of profile timed.txt; all else: measured on h200 (shipped table), at full clock"
    )
    assert found.strategy.global_batch == 32
    assert found.statistics.compute_s >= 9e-3
    with pytest.raises(WorkloadError, match="fixed at micro-batches of 16"):
        answer(TrainingQuestion(chain("timed", layers, batch=16), gpus=2, batch=8))


def test_rings_cost_what_they_cost_on_the_gpu_unless_told_otherwise():
    newer, older = (answer(replace(QUESTION, cluster=of(8, gpu))).transport for gpu in ("h100", "a100"))
    assert newer.efficiency_inside > older.efficiency_inside
    given = Transport(efficiency_inside=0.5)
    assert answer(replace(QUESTION, network=NetworkUse(transport=given))).transport == given


def test_another_device_says_that_its_costs_are_modelled():
    assert "roofline" in answer(replace(QUESTION, cluster=of(8, "a100"))).cost_source


@pytest.mark.parametrize(
    ("change", "error", "part"),
    [
        ({"model": "gtp2"}, WorkloadError, "gpt2"),
        ({"gpus": 7, "cluster": of(8)}, StrategyError, "the cluster has 8 GPUs, but 7 are requested"),
        ({"precision": "fp7"}, DeviceError, "bf16"),
        ({"tensor": 3, "gpus": 3, "batch": 33}, StrategyError, "8 attention heads"),
        ({"batch": 7}, StrategyError, "batch of 7"),
        ({"network": NetworkUse(algorithm="star")}, InputError, "star"),
        ({"network": NetworkUse(collectives="solid")}, InputError, "solid"),
        ({"network": NetworkUse("dimension")}, InputError, "router dimension needs coordinates"),
        ({"detail": "atom"}, StrategyError, "atom"),
        ({"order": "tp"}, StrategyError, "placement order"),
        ({"cluster": of(16, nic_bandwidth=10.0), "gpus": None}, InputError, "slower than 1 Mbps"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(change, error, part):
    with pytest.raises(error, match=part):
        answer(replace(QUESTION, **change))


def test_progress_is_told_from_reading_to_the_last_task():
    told = []
    answer(QUESTION, lambda done, total, now: told.append((done, total, now)))
    assert told[0] == (0, None, "reading the model")
    assert [now for _, _, now in told][-1] == "tasks done"


def test_the_page_shows_stages_and_memory(read_page_text):
    found = answer(replace(QUESTION, pipeline=2, tensor=2))
    bars = memory_bars(found)
    assert [bar.name for bar in bars] == ["stage 0", "stage 1"]
    assert sum(bars[0].parts.values()) == pytest.approx(float(found.memory.total[0]))
    text = read_page_text(training_page(found))
    for part in ("dp 2, tp 2, pp 2", "measured on h200", "Peak memory", found.fabric.name):
        assert part in text


def test_ranks_have_the_names_of_their_stages():
    found = answer(replace(QUESTION, pipeline=2))
    assert found.rank_names()[0] == "stage 0 · gpu 0"
    assert found.rank_names()[7] == "stage 1 · gpu 7"
    assert np.bincount(found.stage_of_rank).tolist() == [4, 4]


def test_gpus_that_no_part_names_are_idle(read_page_text):
    layers = len(answer(QUESTION).workload.layers)
    parts = (Part(0, 1, (1,)), Part(2, layers - 1, (3,)))
    found = answer(replace(QUESTION, batch=None, decided=Strategy(pipeline=2, micro_batches=2, parts=parts)))
    assert found.rank_names() == ["idle · gpu 0", "stage 0 · gpu 1", "idle · gpu 2", "stage 1 · gpu 3"]
    text = read_page_text(training_page(found))
    assert "idle" in text
    assert "stage -1" not in text


def test_two_copies_of_stages_with_their_own_replicas_run_at_every_level_and_from_their_plan():
    parts = (Part(0, 3, (0, 1, 2, 3)), Part(4, 5, (4, 5)))
    strategy = Strategy(pipeline=2, micro_batch=8, micro_batches=4, schedule="dualpipe", parts=parts)
    question = replace(QUESTION, batch=None, decided=strategy)
    found = {
        level: answer(replace(question, network=NetworkUse(level=LevelUse(level))))
        for level in ("flow", "wire", "packet")
    }
    flow, wire, packet = (one.statistics.step_time_s for one in found.values())
    assert flow < wire < 1.1 * flow
    assert packet == pytest.approx(wire, rel=0.1)
    first, last = (stage["layers"] for stage in found["flow"].stages())
    assert sorted(first) == sorted(last)
    again = answer(question_of(loads(dumps(plan_of(found["flow"])))))
    assert again.strategy == strategy
    assert again.statistics.step_time_s == flow


@pytest.fixture
def read_page_text():
    return lambda html: html.replace("\u00a0", " ")


def test_a_power_limit_slows_computing_down_and_the_quick_step_is_the_same() -> None:
    from ropewalk.training.quick import QuickSteps

    free, held = (
        TrainingQuestion("llama-7b:layers=4", read_cluster(given=Given(8, name)), batch=16)
        for name in ("h200", "h200@400W")
    )
    found = answer(held)
    assert found.statistics.step_time_s > 1.1 * answer(free).statistics.step_time_s
    assert found.cost_source.endswith("of the full clock under 400 W, eager stack")
    assert QuickSteps(held).run(found.strategy).step_time_s == pytest.approx(found.statistics.step_time_s, rel=1e-12)


def test_times_of_a_profile_keep_the_clock_they_were_measured_at() -> None:
    layers = [Layer(f"layer {number}", (Measured(1e-3, 2e-3, weights=1000),), 100) for number in range(3)]
    timed = chain("timed", layers, batch=16, source="profile timed.txt")
    free, held = (answer(TrainingQuestion(timed, of(2, name))).statistics for name in ("h200", "h200@200W"))
    assert held.step_time_s == free.step_time_s
