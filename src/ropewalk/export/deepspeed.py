"""A plan as a configuration of DeepSpeed: the JSON file that `--deepspeed_config` names (DeepSpeed 0.19).

Only what DeepSpeed can run is written (see `strategy.frameworks`). What it leaves to the training script is named in
the folder of the job: a pipeline is a `PipelineModule` of as many stages, layers that are recomputed call
`deepspeed.checkpointing`.
"""

from __future__ import annotations

import json
from typing import Any

from ropewalk.export.job import PlannedJob
from ropewalk.plans import Plan

OPTIMISERS: dict[str, dict[str, Any]] = {
    "adamw": {"type": "AdamW", "params": {"lr": 1e-4}},
    "adamw_fused": {"type": "AdamW", "params": {"lr": 1e-4}},
    "adamw_cpu": {"type": "AdamW", "params": {"lr": 1e-4}},
    "sgd": {"type": "SGD", "params": {"lr": 1e-4}},
    "momentum": {"type": "SGD", "params": {"lr": 1e-4, "momentum": 0.9}},
}


def deepspeed_json(plan: Plan) -> str:
    """The configuration.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> made = json.loads(deepspeed_json(Plan(ModelUse("gpt2"), read_cluster("1x8"), Strategy(data=8, zero=3))))
    >>> made["zero_optimization"]["stage"], made["train_batch_size"]
    (3, 8)
    """
    job = PlannedJob(plan)
    strategy = plan.strategy
    settings: dict[str, Any] = {
        "train_batch_size": strategy.global_batch,
        "train_micro_batch_size_per_gpu": strategy.micro_batch,
        "gradient_accumulation_steps": strategy.micro_batches,
        "optimizer": OPTIMISERS[strategy.optimiser],
        **_precision(job),
        "zero_optimization": _zero(job),
        "steps_per_print": 1,
        "wall_clock_breakdown": False,
    }
    if strategy.tensor > 1:
        settings["tensor_parallel"] = {"autotp_size": strategy.tensor}
    if strategy.expert > 1:
        settings["expert_parallel"] = {"enabled": True, "autoep_size": strategy.expert}
    if strategy.pipeline > 1:
        interval = 1 if strategy.recompute == "full" else 0
        settings["pipeline"] = {"stages": strategy.pipeline, "activation_checkpoint_interval": interval}
    return json.dumps(settings, indent=1) + "\n"


def _precision(job: PlannedJob) -> dict[str, Any]:
    precision = job.plan.model.precision
    if precision not in ("bf16", "fp16"):
        return {}
    sent = "fp32" if job.gradient_bytes == 4 else precision
    return {precision: {"enabled": True}, "communication_data_type": sent}


def _zero(job: PlannedJob) -> dict[str, Any]:
    """DeepSpeed counts a bucket in elements; layer by layer is the smallest that it takes."""
    strategy = job.strategy
    if not strategy.zero:
        return {"stage": 0}
    bucket = max(1, job.bucket_parameters)
    settings: dict[str, Any] = {
        "stage": strategy.zero,
        "overlap_comm": strategy.order.overlap,
        "reduce_bucket_size": bucket,
        "contiguous_gradients": True,
        **({"offload_optimizer": {"device": "cpu", "pin_memory": True}} if strategy.optimiser == "adamw_cpu" else {}),
    }
    if strategy.zero == 3:
        keeps = {} if strategy.regather else {"stage3_max_live_parameters": job.workload.parameters()}
        return settings | ({} if strategy.prefetch else {"stage3_prefetch_bucket_size": 0}) | keeps
    return settings | {"reduce_scatter": True, "allgather_partitions": True, "allgather_bucket_size": bucket}
