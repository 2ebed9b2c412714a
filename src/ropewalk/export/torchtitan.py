"""A plan as a job configuration of torchtitan: the TOML file that `--job.config_file` names (torchtitan 0.2).

Releases from 0.3 on take no TOML: their options have the same names on the command line. Only what torchtitan can run
is written (see `strategy.frameworks`). The cut is written module by module, and timetables that torchtitan does not
have by name are read from the CSV file of `--to torch-pipeline`.
"""

from __future__ import annotations

import json
from typing import Any

from ropewalk.export.job import PlannedJob
from ropewalk.plans import Plan
from ropewalk.strategy import Strategy
from ropewalk.workload.operator import RING

MODELS = {
    "llama3-8b": ("llama3", "8B"),
    "llama3-70b": ("llama3", "70B"),
    "llama3-405b": ("llama3", "405B"),
    "deepseek-v3": ("deepseek_v3", "671B"),
}
"""Models of the zoo that torchtitan has: its name and flavour. Others are registered by whoever trains them."""
OWN_FLAVOUR = "plan"
SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}
"""Timetables that torchtitan makes by name as they are here; all others are read from a file."""
SHAPES = {"zb-v": "ZBVZeroBubble", "dualpipev": "DualPipeV"}
"""For timetables from a file: names that say which rank holds which piece."""
CSV = "schedule.csv"
STEPS = 50

Table = dict[str, Any]


def torchtitan_toml(plan: Plan) -> str:
    """The configuration.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> made = torchtitan_toml(Plan(ModelUse("llama3-8b"), read_cluster("1x8"), Strategy(data=8, zero=3)))
    >>> "data_parallel_shard_degree = 8" in made.splitlines()
    True
    """
    job = PlannedJob(plan)
    tables = {
        "job": {"description": f"{plan.model.name}: {plan.strategy.said()}"},
        "model": _model(job),
        "optimizer": {"name": "AdamW", "implementation": "fused"},
        "training": _training(job),
        "parallelism": _parallelism(job),
        "activation_checkpoint": {"mode": plan.strategy.recompute},
        "metrics": {"log_freq": 1},
    }
    return "\n".join(_written(name, table) for name, table in tables.items())


def needs_csv(job: PlannedJob) -> bool:
    """Is the timetable read from a file?"""
    strategy = job.strategy
    return strategy.pipeline > 1 and (bool(strategy.rows) or strategy.schedule not in SCHEDULES)


def _model(job: PlannedJob) -> Table:
    name, flavour = MODELS.get(job.zoo_name, (job.workload.name, OWN_FLAVOUR))
    return {"name": name, "flavor": flavour}


def _training(job: PlannedJob) -> Table:
    strategy = job.strategy
    # In a pipeline torchtitan cuts the local batch into micro-batches, elsewhere it accumulates local batches.
    local = strategy.micro_batch * (strategy.micro_batches if strategy.pipeline > 1 else 1)
    wide = job.element_bytes == 4
    return {
        "local_batch_size": local,
        "global_batch_size": strategy.global_batch,
        "seq_len": job.sequence,
        "steps": STEPS,
        "dtype": "float32" if strategy.master_weights or wide else "bfloat16",
        "mixed_precision_param": "float32" if wide else "bfloat16",
        "mixed_precision_reduce": "float32",
    }


def _parallelism(job: PlannedJob) -> Table:
    strategy = job.strategy
    replicated = strategy.zero == 0 and strategy.data > 1
    table: Table = {
        "data_parallel_replicate_degree": strategy.data if replicated else 1,
        "data_parallel_shard_degree": 1 if replicated else strategy.data,
        "fsdp_reshard_after_forward": "always" if strategy.zero == 3 and strategy.regather else "never",
        "tensor_parallel_degree": strategy.tensor,
        "context_parallel_degree": strategy.context,
        "expert_parallel_degree": strategy.expert,
        "expert_tensor_parallel_degree": _expert_tensor(strategy),
        "pipeline_parallel_degree": strategy.pipeline,
    }
    if strategy.context > 1:
        table["context_parallel_rotate_method"] = "alltoall" if strategy.context_exchange == RING else "allgather"
    return table | (_pipeline(job) if strategy.pipeline > 1 else {})


def _expert_tensor(strategy: Strategy) -> int:
    """Ranks over which each expert is split."""
    return strategy.tensor if strategy.expert > 1 and not strategy.fold_experts else 1


def _pipeline(job: PlannedJob) -> Table:
    strategy = job.strategy
    table: Table = {
        "pipeline_parallel_microbatch_size": strategy.micro_batch,
        "module_fqns_per_model_part": modules(job),
    }
    if not needs_csv(job):
        return {"pipeline_parallel_schedule": SCHEDULES[strategy.schedule], **table}
    one = "PipelineScheduleSingle" if strategy.pieces_each == 1 else "PipelineScheduleMulti"
    name = SHAPES.get(strategy.schedule, one)
    return {"pipeline_parallel_schedule": name, "pipeline_parallel_schedule_csv": CSV, **table}


def modules(job: PlannedJob) -> list[list[str]]:
    """The modules of every piece, as torchtitan's transformers name them."""
    blocks = len(job.workload.layers) - 2
    names = [["tok_embeddings"], *([f"layers.{block}"] for block in range(blocks)), ["norm", "output"]]
    return [[name for layer in job.pieces.of(piece) for name in names[layer]] for piece in range(job.pieces.count)]


def _written(name: str, table: Table) -> str:
    """A table of TOML; strings, numbers and lists are written there as in JSON."""
    lines = (f"{key} = {json.dumps(value)}" for key, value in table.items())
    return "\n".join([f"[{name}]", *lines, ""])
