"""A plan as the files of training frameworks: what was decided is what they are told."""

from __future__ import annotations

import ast
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ropewalk.errors import PlanError
from ropewalk.export.deepspeed import deepspeed_json
from ropewalk.export.job import PlannedJob
from ropewalk.export.megatron import megatron_arguments
from ropewalk.export.of_plan import EXPORTS
from ropewalk.export.pytorch import launches, pytorch_script
from ropewalk.export.remarks import remarks
from ropewalk.export.torchtitan import torchtitan_toml
from ropewalk.hardware import read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import LayerChoice, Order, Strategy
from ropewalk.strategy.order import launches_of

SMALL = ModelUse("llama:layers=6,hidden=64,heads=4,kv_heads=2,ffn=128,vocabulary=256", 32)


def small(model: ModelUse = SMALL, placement: str | None = None, **strategy: Any) -> Plan:
    made = Strategy(**strategy)
    return Plan(model, read_cluster(f"1x{made.ranks}"), made, placement=placement)


def flags(plan: Plan) -> dict[str, str]:
    lines = megatron_arguments(plan).splitlines()
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def refused(to: str, plan: Plan, path: Path) -> str:
    with pytest.raises(PlanError) as found:
        EXPORTS.fitting(to, plan).make(plan, path)
    assert not path.exists()
    return str(found.value)


def test_megatron_is_told_the_sizes_of_the_model() -> None:
    told = flags(small(tensor=2))
    expected = {"--num-layers": "6", "--hidden-size": "64", "--num-query-groups": "2", "--ffn-hidden-size": "128",
                "--vocab-size": "256", "--seq-length": "32", "--swiglu": ""}  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    experts = flags(small(model=ModelUse("deepseek-v3"), tensor=8, sequence_parallel=True, data=8, expert=8))
    expected = {"--num-experts": "256", "--moe-router-topk": "8", "--kv-lora-rank": "512",
                "--moe-layer-freq": "([0]*3+[1]*58)", "--expert-model-parallel-size": "8"}  # fmt: skip
    assert {name: experts[name] for name in expected} == expected
    further = flags(small(model=ModelUse("deepseek-v3:mtp=1"), tensor=8, data=8, expert=8))
    assert (further["--mtp-num-layers"], "--mtp-num-layers" in experts) == ("1", False)


def test_megatron_is_told_how_tokens_find_their_experts() -> None:
    plain = flags(small(model=ModelUse("deepseek-v3"), data=8, expert=8))
    once = flags(
        small(model=ModelUse("deepseek-v3:dispatch=deepep,capacity=1.25"), data=8, expert=8, schedule="1f1b-overlap")
    )
    assert plain["--moe-token-dispatcher-type"] == "alltoall"
    assert once["--moe-token-dispatcher-type"] == "flex"
    assert once["--moe-expert-capacity-factor"] == "1.25"
    assert {"--moe-flex-dispatcher-backend", "--overlap-moe-expert-parallel-comm"} <= once.keys() - plain.keys()


def test_megatron_is_told_windows_norms_of_heads_and_biases() -> None:
    told = flags(small(model=ModelUse("gpt-oss-20b"), tensor=2))
    expected = {"--window-size": "127,0", "--window-attn-skip-freq": "2", "--softmax-type": "learnable",
                "--add-qkv-bias": "", "--kv-channels": "64"}  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    assert "--disable-bias-linear" not in told
    qwen = flags(small(model=ModelUse("qwen3-8b"), tensor=2))
    assert {"--qk-layernorm", "--disable-bias-linear"} <= set(qwen)
    gemma = small(model=ModelUse("gemma2-2b"), tensor=2)
    assert "--num-layers" not in flags(gemma)
    assert remarks(PlannedJob(gemma), "megatron")[0].startswith("pretrain_gpt.py has no gemma2-2b")


def test_megatron_gets_a_layout_where_the_cut_is_not_its_own() -> None:
    told = flags(small(pipeline=2, micro_batches=2, stages=(0, 5)))
    assert told["--pipeline-model-parallel-layout"] == "Etttt|ttL"
    own = flags(small(pipeline=2, micro_batches=2, stages=(0, 4)))
    assert "--pipeline-model-parallel-layout" not in own
    folded = flags(small(pipeline=3, micro_batches=3, schedule="interleaved", interleave=2, stages=(0, 2, 3, 4, 5, 6)))
    assert folded["--num-virtual-stages-per-pipeline-rank"] == "2"


def test_megatron_fuses_the_loss_where_it_was_priced_so() -> None:
    told = [
        flags(Plan(ModelUse(f"llama-3.2-1b:layers=2{how}"), read_cluster("1x8"), Strategy(data=8)))
        for how in (",stack=megatron", ",stack=megatron,loss_fusion=false", "")
    ]
    assert ["--cross-entropy-loss-fusion" in one for one in told] == [True, False, False]
    assert told[0]["--cross-entropy-fusion-impl"] == "te"


def test_megatron_counts_buckets_in_parameters_of_the_precision_that_is_sent() -> None:
    order = Order(fusion=8e6)
    narrow, wide = flags(small(data=8, order=order)), flags(small(data=8, order=order, gradient_bytes=4))
    assert narrow["--ddp-bucket-size"] == "4000000"
    assert "--grad-reduce-in-bf16" in narrow
    assert wide["--ddp-bucket-size"] == "2000000"
    assert "--accumulate-allreduce-grads-in-fp32" in wide
    behind = flags(small(data=8, order=Order(overlap=False)))
    assert not {"--overlap-grad-reduce", "--ddp-bucket-size"} & set(behind)


def test_blocks_recomputed_at_the_head_of_every_piece_are_megatrons_block_method() -> None:
    heads = tuple(LayerChoice(f"block {number}", recompute="full") for number in (0, 3))
    told = flags(small(pipeline=2, micro_batches=2, stages=(0, 4), choices=heads))
    assert (told["--recompute-method"], told["--recompute-num-layers"]) == ("block", "1")
    others = small(pipeline=2, micro_batches=2, stages=(0, 4), choices=heads[1:])
    assert "at the head of every piece" in str(PlannedJob(others).refusal("megatron"))


def test_zero_3_is_megatron_fsdp() -> None:
    told = flags(small(data=8, zero=3))
    assert told["--data-parallel-sharding-strategy"] == "optim_grads_params"
    assert "--use-megatron-fsdp" in told


def test_ranks_in_megatrons_other_order_need_no_rank_file(tmp_path: Path) -> None:
    other = small(data=2, pipeline=4, micro_batches=4, placement="tp-pp-dp")
    assert "--use-tp-pp-dp-mapping" in flags(other)
    assert "--use-tp-pp-dp-mapping" not in megatron_arguments(other, by_rank_file=True)
    assert "--to run writes a rank file for it" in refused("pytorch", other, tmp_path / "train.py")
    strange = small(data=2, tensor=4, placement="dp-tp-pp")
    assert "--to run writes a rank file for it" in refused("megatron", strange, tmp_path / "args")


def test_torchtitan_is_told_the_cut_module_by_module() -> None:
    told = tomllib.loads(torchtitan_toml(small(data=2, zero=1, pipeline=2, micro_batches=4, stages=(0, 5))))
    parallel = told["parallelism"]
    assert parallel["module_fqns_per_model_part"] == [
        ["tok_embeddings", "layers.0", "layers.1", "layers.2", "layers.3"], ["layers.4", "layers.5", "norm", "output"],
    ]  # fmt: skip
    assert (parallel["pipeline_parallel_schedule"], parallel["pipeline_parallel_degree"]) == ("1F1B", 2)
    assert (told["training"]["local_batch_size"], told["training"]["global_batch_size"]) == (4, 8)


def test_torchtitan_reads_other_timetables_from_a_file() -> None:
    split = small(data=2, zero=1, pipeline=2, micro_batches=4, schedule="zb-v")
    told = tomllib.loads(torchtitan_toml(split))["parallelism"]
    assert told["pipeline_parallel_schedule"] == "ZBVZeroBubble"
    assert told["pipeline_parallel_schedule_csv"] == "schedule.csv"


@pytest.mark.parametrize(("zero", "regather", "policy"), [(1, True, "never"), (3, True, "always"), (3, False, "never")])
def test_torchtitan_gives_weights_up_as_planned(zero: int, regather: bool, policy: str) -> None:
    told = tomllib.loads(torchtitan_toml(small(data=8, zero=zero, regather=regather)))["parallelism"]
    assert (told["data_parallel_shard_degree"], told["fsdp_reshard_after_forward"]) == (8, policy)


def test_deepspeed_is_told_stage_batches_and_buckets() -> None:
    told = json.loads(deepspeed_json(small(data=8, zero=2, micro_batch=2, micro_batches=3, order=Order(fusion=8e6))))
    assert told["train_batch_size"] == 48
    assert (told["train_micro_batch_size_per_gpu"], told["gradient_accumulation_steps"]) == (2, 3)
    zero = told["zero_optimization"]
    assert (zero["stage"], zero["reduce_bucket_size"], zero["overlap_comm"]) == (2, 4_000_000, True)
    assert told["bf16"] == {"enabled": True}


def test_deepspeed_refuses_what_it_cannot_do_with_what_it_can(tmp_path: Path) -> None:
    said = refused("deepspeed", small(data=4, pipeline=2, zero=2, micro_batches=2), tmp_path / "deepspeed.json")
    assert "cannot run zero 2 in a pipeline (use zero 1 or pipeline 1)" in said


def plan_in(script: str) -> dict[str, Any]:
    """The plan that a script was given, read as Python reads it."""
    assigned = next(one for one in ast.parse(script).body if isinstance(one, ast.AnnAssign))
    assert assigned.value is not None
    found: dict[str, Any] = ast.literal_eval(assigned.value)
    return found


def test_the_script_holds_the_plan() -> None:
    cut = small(data=2, zero=1, pipeline=2, micro_batches=4, stages=(0, 5), schedule="zb-h1", recompute="full")
    told = plan_in(pytorch_script(cut))
    assert (told["cuts"], told["homes"], told["layers"]) == ([0, 5], [0, 1], 8)
    assert told["recomputed"] == list(range(8))
    assert told["passes"][0].startswith("0F0,")
    assert len(told["passes"]) == 2
    some = small(data=2, choices=(LayerChoice("block 1", recompute="full"),))
    assert plan_in(pytorch_script(some))["recomputed"] == [2]


def test_ddp_makes_launches_of_whole_neighbours_alone(tmp_path: Path) -> None:
    names = ["embedding", *(f"block {number}" for number in range(6)), "head"]
    backwards = names[::-1]
    planned = small(data=8, order=Order(fusion=launches_of([backwards[:3], backwards[3:]])))
    assert launches(PlannedJob(planned)) == [[7, 6, 5], [4, 3, 2, 1, 0]]
    assert launches(PlannedJob(small(data=8, order=Order(fusion=0.0)))) == [[layer] for layer in range(7, -1, -1)]
    mixed = small(data=8, order=Order(fusion=launches_of([names[:4], names[4:]])))
    assert "fills buckets from the last layer to the first" in refused("pytorch", mixed, tmp_path / "train.py")


def test_what_a_framework_does_otherwise_is_said() -> None:
    job = PlannedJob(small(data=8))
    assert any("register a TrainSpec" in remark for remark in remarks(job, "torchtitan"))
    assert any("buckets of 100 MiB" in remark for remark in remarks(job, "torchtitan"))
    piped = PlannedJob(small(data=4, zero=1, pipeline=2, micro_batches=2, stages=(0, 5), tensor=1))
    assert remarks(piped, "deepspeed") == [
        "DeepSpeed cuts the pipeline itself: wrap the layers in PipelineModule(num_stages=2); the plan begins its "
        "stages at layers 0, 5."
    ]
    assert remarks(PlannedJob(replace(small(data=8), model=ModelUse("bert-base"))), "megatron") == [
        "pretrain_gpt.py has no bert-base: add the sizes of the model to the arguments."
    ]
