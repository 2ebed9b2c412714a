"""Files of frameworks are read by the frameworks' own parsers and mean there what was planned.

torchtitan's ConfigManager, DeepSpeed's DeepSpeedConfig, and Megatron Core's TransformerConfig and
DistributedDataParallelConfig run without a GPU. Megatron-LM's parser of arguments is in no package: its names are those
of Megatron Core's settings, which take the values here.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ropewalk.export.deepspeed import deepspeed_json
from ropewalk.export.job import PlannedJob
from ropewalk.export.megatron import megatron_arguments
from ropewalk.export.torchtitan import modules, torchtitan_toml
from ropewalk.hardware import read_cluster
from ropewalk.plans import ModelUse, Plan
from ropewalk.strategy import Order, Strategy

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')
pytestmark = pytest.mark.extras


def planned(model: str, **strategy: Any) -> Plan:
    made = Strategy(**strategy)
    return Plan(ModelUse(model), read_cluster(f"{max(1, made.ranks // 8)}x{min(8, made.ranks)}"), made)


@pytest.fixture(scope="module")
def titan() -> Any:
    """torchtitan's parser without the rest of torchtitan, which needs Triton."""
    found = importlib.util.find_spec("torchtitan")
    if found is None or found.submodule_search_locations is None:
        pytest.skip('needs torchtitan: pip install "ropewalk[frameworks]"')
    package = types.ModuleType("torchtitan")
    package.__path__ = list(found.submodule_search_locations)
    sys.modules["torchtitan"] = package
    yield importlib.import_module("torchtitan.config")
    for name in [name for name in sys.modules if name.split(".")[0] == "torchtitan"]:
        del sys.modules[name]


TITANS = {
    "sharded": planned("llama3-8b", data=8, zero=3, recompute="full"),
    "3-D": planned("llama3-70b", data=2, tensor=8, sequence_parallel=True, zero=1, pipeline=4, micro_batches=8),
    "zero bubble": planned("llama3-8b", data=2, zero=1, pipeline=4, micro_batches=8, schedule="zb-v"),
    "experts": planned("deepseek-v3", data=8, expert=8, zero=1, pipeline=2, micro_batches=4),
    "long": planned("llama3-8b", data=2, context=4, zero=3),
}


@pytest.mark.parametrize("name", TITANS)
def test_torchtitan_reads_what_was_planned(name: str, titan: Any, tmp_path: Path) -> None:
    plan, strategy = TITANS[name], TITANS[name].strategy
    path = tmp_path / "torchtitan.toml"
    path.write_text(torchtitan_toml(plan))
    config = titan.ConfigManager().parse_args([f"--job.config_file={path}"])
    split = config.parallelism
    assert (split.tensor_parallel_degree, split.pipeline_parallel_degree, split.context_parallel_degree) == (
        strategy.tensor, strategy.pipeline, strategy.context,
    )  # fmt: skip
    assert split.data_parallel_replicate_degree * split.data_parallel_shard_degree == strategy.data
    assert split.expert_parallel_degree == strategy.expert
    assert config.training.global_batch_size == strategy.global_batch
    assert config.activation_checkpoint.mode == strategy.recompute
    if strategy.pipeline > 1:
        from torch.distributed.pipelining.schedules import get_schedule_class

        get_schedule_class(split.pipeline_parallel_schedule)
        assert split.module_fqns_per_model_part == modules(PlannedJob(plan))
        micro_batches = config.training.local_batch_size // split.pipeline_parallel_microbatch_size
        assert micro_batches == strategy.micro_batches


class DataRanks:
    """What DeepSpeed asks about ranks."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def get_data_parallel_world_size(self) -> int:
        return self.ranks


SPEEDS = {
    "plain": planned("gpt2", data=8),
    "stage 2": planned("gpt2", data=4, tensor=2, zero=2, micro_batches=4, order=Order(fusion=8e6)),
    "stage 3": planned("llama3-8b", data=8, zero=3, micro_batch=2, recompute="full", gradient_bytes=4),
    "pipeline": planned("gpt2", data=2, pipeline=4, zero=1, micro_batches=8, recompute="full"),
    "experts": planned("mixtral-8x7b", data=8, expert=8, zero=2),
}


@pytest.mark.parametrize("name", SPEEDS)
def test_deepspeed_reads_what_was_planned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config_module = pytest.importorskip("deepspeed.runtime.config", reason='needs DeepSpeed: "ropewalk[frameworks]"')
    plan, strategy = SPEEDS[name], SPEEDS[name].strategy
    monkeypatch.setattr(config_module.dist, "get_rank", lambda: 0)  # otherwise it takes itself to be alone
    settings = json.loads(deepspeed_json(plan))
    config = config_module.DeepSpeedConfig(settings, mpu=DataRanks(strategy.data))
    assert config.train_batch_size == strategy.global_batch
    assert config.gradient_accumulation_steps == strategy.micro_batches
    assert config.zero_optimization_stage == strategy.zero
    assert config.bfloat16_config.enabled
    if strategy.zero:
        assert config.zero_config.reduce_bucket_size == PlannedJob(plan).bucket_parameters
        assert config.zero_config.overlap_comm
    if strategy.tensor > 1:
        assert config.tensor_parallel_config.autotp_size == strategy.tensor
    if strategy.expert > 1:
        assert config.expert_parallel_config.autoep_size == strategy.expert
    assert config.pipeline["stages"] == (strategy.pipeline if strategy.pipeline > 1 else "auto")


MEGATRONS = {
    "dense": planned("gpt3-175b", data=2, tensor=8, sequence_parallel=True, zero=1, pipeline=8, micro_batches=16,
                     schedule="interleaved", interleave=2, recompute="selective"),
    "uneven": planned("llama3-70b", data=2, tensor=8, sequence_parallel=True, zero=1, pipeline=4, micro_batches=8,
                      stages=(0, 21, 42, 63)),
    "experts": planned("mixtral-8x7b", data=8, expert=8, tensor=2, sequence_parallel=True, zero=1),
    "latent": planned("deepseek-v3", data=8, expert=8, pipeline=4, micro_batches=8, zero=1, recompute="full"),
    "sharded": planned("llama3-8b", data=8, zero=3),
}  # fmt: skip
DIFFERENT = {"group_query_attention", "seq_length", "micro_batch_size", "global_batch_size", "vocab_size", "optimizer",
             "position_embedding_type", "max_position_embeddings", "rotary_base", "swiglu", "disable_bias_linear",
             "untie_embeddings_and_output_weights", "recompute_activations", "use_tp_pp_dp_mapping", "ckpt_format",
             "no_gradient_accumulation_fusion", "grad_reduce_in_bf16", "accumulate_allreduce_grads_in_fp32",
             "num_experts", "num_virtual_stages_per_pipeline_rank", "ddp_bucket_size"}  # fmt: skip
"""Arguments of Megatron-LM that are no setting of Megatron Core by the same name."""


def read(text: str) -> dict[str, Any]:
    """Arguments as their names and values."""
    told: dict[str, Any] = {}
    for line in text.splitlines():
        flag, _, value = line.partition(" ")
        told[flag[2:].replace("-", "_")] = int(value) if value.isdecimal() else value or True
    return told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MEGATRONS)
def test_megatron_core_takes_what_was_planned(name: str) -> None:
    core = pytest.importorskip("megatron.core.transformer", reason='needs Megatron Core: "ropewalk[frameworks]"')
    from megatron.core.distributed import DistributedDataParallelConfig

    plan = MEGATRONS[name]
    told = read(megatron_arguments(plan))
    kind = core.MLATransformerConfig if "multi_latent_attention" in told else core.TransformerConfig
    model, data = ({field.name for field in fields(one)} for one in (kind, DistributedDataParallelConfig))
    assert set(told) <= model | data | DIFFERENT
    if "moe_layer_freq" in told:
        told["moe_layer_freq"] = eval(told["moe_layer_freq"], {"__builtins__": {}})
    settings = {key: value for key, value in told.items() if key in model} | {
        "pipeline_dtype": torch.bfloat16, "num_moe_experts": told.get("num_experts"), "bf16": True,
        "add_bias_linear": "disable_bias_linear" not in told, "apply_rope_fusion": False,
        "virtual_pipeline_model_parallel_size": told.get("num_virtual_stages_per_pipeline_rank"),
        **({"recompute_granularity": "selective"} if "recompute_activations" in told else {}),
    }  # fmt: skip
    made = kind(**settings)
    strategy = plan.strategy
    assert (made.tensor_model_parallel_size, made.pipeline_model_parallel_size) == (strategy.tensor, strategy.pipeline)
    if made.pipeline_model_parallel_layout is not None:
        made.pipeline_model_parallel_layout.validate_layer_layout(made.num_layers, None)
    DistributedDataParallelConfig(**{key: value for key, value in told.items() if key in data})
