"""What GPUs sustain under their power limit, measured on an H200 and published for a B200.

`h200_power.csv`: seven seconds of the same work on random data, the last three of them counted, with the limit that the
GPU was held to. `h200_sustained_steps.csv`: training steps after ten seconds; `lean` is a Llama written as fused stacks
have it (one product for queries, keys and values, compiled norms, gates and loss, FP8 by current scaling of every
tensor; gradients stay in bf16, where Megatron-Core adds them to float32), `transformers` that library's own code. The
energies of a FLOP and of a byte come from the first file, masked attention from a profile of two-layer Llamas of the
second one's sizes; nothing else was fitted to them.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ropewalk.device.cost import StepCost, step_cost
from ropewalk.device.device import device
from ropewalk.device.pricer import pricer
from ropewalk.workload.dense import Linear
from ropewalk.workload.workload import Layer, Workload
from ropewalk.workload.zoo import build

DATA = Path(__file__).parent.parent / "data"


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def predicted(row: dict[str, str]) -> StepCost:
    workload = build(row["model"], int(row["batch"]), int(row["sequence"]), stack=row["stack"])
    prices = pricer("h200@700W", row["precision"]).sustained(workload)
    return step_cost(workload, prices, row["optimiser"])


STEPS = rows("h200_sustained_steps.csv")


def waits_for_its_update(row: dict[str, str]) -> bool:
    """Hundreds of tensors updated one list at a time by AdamW: the host takes longer for it than was measured."""
    return row["stack"] == "eager" and row["model"] in ("gpt2-xl", "bert-large")


def named(row: dict[str, str]) -> str:
    return "-".join(row[key] for key in ("stack", "precision", "model", "batch", "sequence"))


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


@pytest.mark.parametrize("row", [row for row in STEPS if row["precision"] == "bf16"], ids=named)
def test_both_passes_are_met_within_seven_percent_under_every_stack(row: dict[str, str]) -> None:
    found = predicted(row)
    assert found.parameters == int(row["parameters"])
    within = 0.05 if row["code"] == "lean" else 0.07
    assert found.forward_backward_s == pytest.approx(float(row["forward_backward_s"]), rel=within)


@pytest.mark.parametrize("row", [row for row in STEPS if not waits_for_its_update(row)], ids=named)
def test_whole_steps_are_met_within_seven_percent(row: dict[str, str]) -> None:
    assert predicted(row).step_s == pytest.approx(float(row["step_s"]), rel=0.07)


def test_products_of_a_b200_are_met_by_the_energy_of_an_h200_and_its_own_limit() -> None:
    """SimuMax 1.2, configs/system/b200_bf16_ceperm.json: large products take 0.487 to 0.494 of 2,250 TFLOP/s."""
    product = Linear(4096, 8192, 28672, bias=False)
    layer = Layer("product", (product,), 4096 * 28672)
    prices = pricer("b200@1000W").sustained(Workload("product", (layer,), 1))
    assert product.forward()[0].flops / prices.forward((product,)) == pytest.approx(0.49 * 2250e12, rel=0.05)
