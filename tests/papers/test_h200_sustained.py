"""What GPUs sustain under their power limit, measured on an H200 and published for a B200.

`h200_power.csv`: seven seconds of the same work on random data, the last three of them counted, with the limit that the
GPU was held to. `h200_sustained_steps.csv`: training steps after ten seconds (`recipes/gpu_steps.py`). The energies of
a FLOP and of a byte come from the first file, masked attention from a profile of two-layer Llamas of the second one's
sizes, what a tensor costs AdamW in a loop from updates of 400 and 580 tensors by themselves; nothing else was fitted to
them. Steps of the sets `unseen`, `later` and `third` were predicted before they were measured. Between the first two
days attention with dropout got prices from kernels that were measured by themselves, and from the profile of compiled
GPT-2 large, which is unseen no more. After the second day attention that PyTorch cannot fuse was priced by the kernels
that torch.compile makes of it; compiled BERT-large had shown that it was missing.
"""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from gpu_steps import MeasuredPart, MeasuredStep, h200_parts, h200_sustained_steps
from ropewalk.device.device import device
from ropewalk.device.pricer import pricer
from ropewalk.task.lower.paced import SLOWEST_OF_MORE, SLOWEST_OF_TWO
from ropewalk.workload.dense import Linear
from ropewalk.workload.workload import Layer, Workload

DATA = Path(__file__).parent.parent / "data"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


STACKS = [("eager", "bf16"), ("compiled", "bf16"), ("megatron", "bf16"), ("megatron", "fp8"), ("fsdp2", "bf16")]


@pytest.fixture(scope="module")
def steps() -> list[MeasuredStep]:
    return list(h200_sustained_steps())


def under(steps: list[MeasuredStep], stack: str, precision: str) -> list[MeasuredStep]:
    found = [step for step in steps if (step.predicted.stack, step.predicted.precision) == (stack, precision)]
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("work", ["bf16 8192", "fp8 8192"])
def test_large_products_are_met_at_every_limit(work: str) -> None:
    power, held = device("h200").power, [row for row in rows("h200_power.csv") if row["work"] == work]
    assert power is not None
    assert [int(row["limit_w"]) for row in held] == [700, 600, 500, 400, 300]
    burst = float(held[0]["burst_tflops"]) * 1e12
    for row in held:
        limited = type(power)(float(row["limit_w"]), power.idle, power.flop, power.byte)
        clock = limited.clock(1.0, 0.0, burst * power.flop[work.split()[0]])
        within = 0.05 if work.startswith("bf16") else 0.08
        assert clock * burst == pytest.approx(float(row["sustained_tflops"]) * 1e12, rel=within)


def test_every_step_is_limited_by_the_gpu_and_has_the_parameters_that_were_counted(steps: list[MeasuredStep]) -> None:
    assert all(step.is_limited_by_gpu for step in steps)
    assert [step.predicted.parameters for step in steps] == [step.parameters for step in steps]


@pytest.mark.parametrize(("stack", "precision"), STACKS)
def test_whole_steps_of_every_stack_are_met_within_three_percent_in_the_median_and_nine_at_worst(
    steps: list[MeasuredStep], stack: str, precision: str
) -> None:
    errors = [abs(step.error("step_s")) for step in under(steps, stack, precision)]
    assert statistics.median(errors) < 0.03
    assert max(errors) < 0.09


@pytest.mark.parametrize(("stack", "precision"), STACKS)
def test_both_passes_of_every_stack_are_met_within_six_percent_and_some_within_nine_or_twelve(
    steps: list[MeasuredStep], stack: str, precision: str
) -> None:
    """What was measured in FP8 narrows weights in its passes, where it is counted with the update; compiled experts are
    predicted 11.5 % too slow."""
    errors = [abs(step.error("forward_backward_s")) for step in under(steps, stack, precision)]
    assert statistics.median(errors) < (0.035 if precision == "bf16" else 0.06)
    assert max(errors) < {"fp8": 0.09, "compiled": 0.12}.get(precision if precision == "fp8" else stack, 0.06)


def test_updates_one_tensor_at_a_time_are_seen_where_there_are_hundreds(steps: list[MeasuredStep]) -> None:
    """GPT-2 XL has 580 tensors, BERT-large 394: eight launches each, of which 1,024 at most wait in a queue."""
    waiting = {step.predicted.model for step in steps if step.predicted.update.waiting_s > 0}
    assert waiting == {"gpt2-xl", "gpt2-large", "bert-large"}


def test_steps_of_the_second_day_are_met_within_three_percent_in_the_median_and_nine_at_worst(
    steps: list[MeasuredStep],
) -> None:
    """13 of 14 steps; the predictions made before are in docs/validation.md. Since then attention that PyTorch cannot
    fuse and the random numbers of compiled dropout got prices, from other measurements: compiled BERT-large is unseen
    no more, and compiled GPT-2 medium is now predicted 8 % too slow, not 6 %."""
    later = [step for step in steps if step.day == "later"]
    assert len(later) == 13
    errors = [abs(step.error("step_s")) for step in later]
    assert statistics.median(errors) < 0.03
    assert max(errors) < 0.09


def test_steps_of_the_third_day_are_met_within_two_percent_in_the_median_and_six_at_worst(
    steps: list[MeasuredStep],
) -> None:
    """Ten steps of models that no earlier step had; nothing was changed after they had been measured."""
    third = [step for step in steps if step.day == "third"]
    assert len(third) == 10
    errors = [abs(step.error("step_s")) for step in third]
    assert statistics.median(errors) < 0.02
    assert max(errors) < 0.06


def test_what_was_predicted_for_the_third_day_is_what_is_predicted_now(steps: list[MeasuredStep]) -> None:
    """`h200_predicted_steps.csv` was written before the measurement."""
    keys = ("stack", "precision", "model", "batch", "sequence")
    before = {tuple(row[key] for key in keys): float(row["step_s"]) for row in rows("h200_predicted_steps.csv")}
    measured = [tuple(row[key] for key in keys) for row in rows("h200_sustained_steps.csv") if row["set"] == "third"]
    assert set(measured) <= before.keys()
    now = [step.predicted.step_s for step in steps if step.day == "third"]
    assert now == pytest.approx([before[key] for key in measured], rel=1e-3)


def test_the_slowest_of_several_ranks_takes_as_much_longer_as_was_measured() -> None:
    """Medians over the runs on the GPU, each against a rank alone in the same run (`benchmarks/gpu_hosts.py`)."""
    found = [row for row in rows("h200_hosts.csv") if row["place"] == "cuda"]
    alone = {row["run"]: float(row["mean_us"]) for row in found if row["ranks"] == "1"}

    def slower(ranks: int) -> float:
        return statistics.median(
            float(row["slowest_us"]) / alone[row["run"]] for row in found if row["ranks"] == str(ranks)
        )

    assert slower(2) == pytest.approx(SLOWEST_OF_TWO, abs=0.01)
    assert slower(4) == pytest.approx(SLOWEST_OF_MORE, abs=0.01)
    assert slower(8) == pytest.approx(SLOWEST_OF_MORE, abs=0.01)


@pytest.fixture(scope="module")
def parts() -> list[MeasuredPart]:
    return h200_parts()


def errors_of(parts: list[MeasuredPart], *words: str) -> list[float]:
    found = [abs(one.predicted_s / one.measured_s - 1) for one in parts if all(word in one.name for word in words)]
    assert found
    return found


def test_updates_of_many_parameters_are_met_within_seven_percent_and_of_many_tensors_within_twenty(
    parts: list[MeasuredPart],
) -> None:
    assert max(errors_of(parts, "16 large")) < 0.07
    assert max(errors_of(parts, "adamw", "block of gpt2-xl")) < 0.11
    assert max(errors_of(parts, "adamw", "block of bert-large")) < 0.26
    assert max(errors_of(parts, "adamw", "400 small")) < 0.11


def test_products_in_fp8_are_met_within_five_percent_and_those_of_a_tenth_of_a_millisecond_within_twelve(
    parts: list[MeasuredPart],
) -> None:
    errors = errors_of(parts, "matmul", "fp8")
    assert sorted(errors)[-3] < 0.05
    assert max(errors) < 0.12


def test_attention_that_drops_scores_costs_what_was_measured(parts: list[MeasuredPart]) -> None:
    assert max(errors_of(parts, "attention", "dropout")) < 1e-3


def test_products_of_a_b200_are_met_by_the_energy_of_an_h200_and_its_own_limit() -> None:
    """SimuMax 1.2, configs/system/b200_bf16_ceperm.json: large products take 0.487 to 0.494 of 2,250 TFLOP/s."""
    product = Linear(4096, 8192, 28672, bias=False)
    layer = Layer("product", (product,), 4096 * 28672)
    prices = pricer("b200@1000W").sustained(Workload("product", (layer,), 1))
    assert product.forward()[0].flops / prices.forward((product,)) == pytest.approx(0.49 * 2250e12, rel=0.05)
