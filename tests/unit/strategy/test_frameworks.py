"""Which framework runs which strategy: facts of the frameworks, each with what would have to change."""

from __future__ import annotations

import pytest

from ropewalk.strategy import Part, Strategy, is_runnable, runnable
from ropewalk.strategy.asked import asked_of
from ropewalk.strategy.frameworks import FRAMEWORKS
from ropewalk.strategy.order import ORDERS, Order, launches_of
from ropewalk.strategy.strategy import SERVER, LayerChoice
from ropewalk.timetable.named import TIMETABLES
from ropewalk.workload.source import open_workload

PIPED = {"pipeline": 4, "micro_batches": 8}


def runs(**strategy: object) -> set[str]:
    return {name for name, why in runnable(Strategy(**strategy)).items() if why is None}


def test_one_gpu_runs_everywhere() -> None:
    assert runs() == set(FRAMEWORKS)


@pytest.mark.parametrize(
    ("strategy", "frameworks"),
    [
        ({"data": 8}, {"megatron", "torchtitan", "deepspeed", "pytorch"}),
        ({"data": 8, "zero": 3}, {"megatron", "torchtitan", "deepspeed", "pytorch"}),
        ({"data": 8, "zero": 2, "micro_batches": 4}, {"megatron", "deepspeed", "pytorch"}),
        ({"data": 8, "micro_batches": 4}, {"megatron", "deepspeed", "pytorch"}),
        ({"data": 2, "tensor": 4}, {"megatron", "deepspeed"}),
        ({"data": 2, "tensor": 4, "zero": 1}, {"megatron", "deepspeed", "pytorch"}),
        ({"data": 2, "tensor": 4, "sequence_parallel": True, "zero": 3}, {"megatron", "torchtitan", "pytorch"}),
        ({"data": 2, "zero": 1, **PIPED}, {"megatron", "torchtitan", "deepspeed", "pytorch"}),
        ({"data": 2, "zero": 3, **PIPED}, set()),
        ({"data": 2, "zero": 1, "schedule": "interleaved", "interleave": 2, **PIPED},
         {"megatron", "torchtitan", "pytorch"}),
        ({"data": 2, "zero": 1, "schedule": "zb-v", **PIPED}, {"torchtitan", "pytorch"}),
        ({"schedule": "dualpipe", "pipeline": 2, "micro_batches": 8}, set()),
        ({"data": 4, "expert": 4, "zero": 1}, {"megatron", "torchtitan", "deepspeed"}),
        ({"data": 4, "context": 2, "zero": 3}, {"megatron", "torchtitan"}),
        ({"data": 4, "recompute": "selective"}, {"megatron"}),
        ({"recompute": "stage", **PIPED}, {"pytorch"}),
        ({"stages": (0, 3, 5, 7), **PIPED}, {"megatron", "torchtitan", "pytorch"}),
        ({"data": 4, "choices": (LayerChoice("block 0", recompute="full"),)}, {"pytorch"}),
        ({"data": 4, "order": Order(fusion=launches_of([["b"], ["a"]]))}, {"pytorch"}),
        ({"data": 4, "order": ORDERS["priority"].make}, set()),
        ({"data": 4, "optimiser": "none"}, {"pytorch"}),
        ({"parts": (Part(0, 3, (0, 1)), Part(4, 7, (2,))), "pipeline": 2}, set()),
        ({"parts": (Part(0, 3, (0, 1)),), "grain": SERVER}, set()),
    ],
)  # fmt: skip
def test_strategies_run_where_their_parts_exist(strategy: dict[str, object], frameworks: set[str]) -> None:
    assert runs(**strategy) == frameworks


def test_every_timetable_of_one_copy_runs_on_torch_pipelining() -> None:
    for name, named in TIMETABLES.items():
        found = runs(data=2, zero=1, schedule=name, interleave=named.pieces_each, **PIPED)
        assert ("pytorch" in found) == ("torchtitan" in found) == (named.copies == 1), name


def test_the_model_and_its_sequence_decide_too() -> None:
    image, language = open_workload("resnet18"), open_workload("gpt2", sequence=1020)
    assert runnable(Strategy(data=2), image)["megatron"] == (
        "supports only transformers of sequential blocks, not this model"
    )
    assert runnable(Strategy(data=2), image)["pytorch"] is None
    assert "twice the context degree" in str(runnable(Strategy(context=4), language)["megatron"])
    assert runnable(Strategy(context=2), language)["megatron"] is None


def test_half_precision_needs_losses_that_are_scaled() -> None:
    found = runnable(Strategy(data=2), precision="fp16")
    assert {name for name, why in found.items() if why is None} == {"megatron", "deepspeed"}
    assert found["pytorch"] == "cannot train in fp16 (take one of bf16, tf32, fp32)"


def test_a_head_of_recomputed_blocks_in_every_piece_runs_on_megatron() -> None:
    model = open_workload("gpt2")
    heads = tuple(LayerChoice(f"block {number}", recompute="full") for number in (0, 1, 6, 7))
    for strategy in (Strategy(**PIPED | {"pipeline": 2}, stages=(0, 7), choices=heads),
                     Strategy(**PIPED | {"pipeline": 2}, choices=heads)):  # fmt: skip
        assert {name for name, why in runnable(strategy, model).items() if why is None} == {"megatron", "pytorch"}
    for other in (heads[:3], heads[1:3]):
        strategy = Strategy(**PIPED | {"pipeline": 2}, stages=(0, 7), choices=other)
        assert runnable(strategy, model)["megatron"] is not None


def test_a_collective_with_servers_runs_nowhere() -> None:
    assert all("ps-sharded" in str(why) for why in runnable(Strategy(data=4), algorithm="data=ps-sharded").values())
    assert runnable(Strategy(data=4), algorithm="data=forest")["megatron"] is None


def test_what_candidates_ask_is_the_same_for_all_degrees_above_one() -> None:
    asked = {asked_of(Strategy(data=data, tensor=tensor, zero=1)) for data in (2, 4, 8) for tensor in (2, 4)}
    assert len(asked) == 1
    assert is_runnable(asked.pop())
