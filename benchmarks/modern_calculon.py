"""Published runs on Hopper as Calculon can be asked about them.

Its blocks are GPT's: a feed-forward layer of two products, as many heads of keys and values as of queries. Llama's are
given as blocks of the same width with as many parameters, hence as many FLOPs; embedding and head it does not count.
It ships an H100 and no Blackwell, and knows neither context parallelism, nor sharded weights, nor adapters.
"""

from __future__ import annotations

from calculon_answers import Answer, Calculon
from modern_runs import PRECISION, ModernRun
from ropewalk.workload.source import open_workload

SYSTEM = "systems/h100_80g_nvl8.json"
NUMBERS = {"bf16": "float16", "fp8": "float8"}
HEAD_SIZE = 128


def why_not(run: ModernRun) -> str:
    """Why Calculon cannot be asked about a run; empty where it can."""
    reasons = {
        "no system file": not run.accelerator.startswith("H100"),
        "no such numbers": PRECISION[run.precision] not in NUMBERS,
        "no experts": not run.is_dense,
        "no context parallelism": run.context > 1,
        "no sharded weights": run.sharded > 1,
        "no adapters": "LoRA" in run.task,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def predicted_s(calculon: Calculon, run: ModernRun) -> float | None:
    """Seconds of the step by Calculon; None where it refuses, as where its memory does not suffice."""
    (found,) = calculon.answers(SYSTEM, _model(run), [_execution(run)])["answers"]
    return found.get("step_s")


def _model(run: ModernRun) -> dict[str, int]:
    """Blocks of GPT with the width and the parameters of the model's."""
    layers = open_workload(run.workload(), 1, run.sequence).layers
    hidden = layers[0].output_elements // run.sequence
    feedforward = (layers[1].parameters() - 4 * hidden**2) // (2 * hidden)
    return {
        "hidden": hidden, "feedforward": feedforward // 64 * 64, "seq_size": run.sequence,
        "attn_heads": hidden // HEAD_SIZE, "attn_size": HEAD_SIZE, "num_blocks": len(layers) - 2,
    }  # fmt: skip


def _execution(run: ModernRun) -> Answer:
    """As the recipe has it. Scores of attention are made again, which comes nearest to never writing them down."""
    return {
        "num_procs": run.gpus, "tensor_par": run.tensor, "pipeline_par": run.pipeline, "data_par": run.data,
        "tensor_par_net": 0, "pipeline_par_net": 1, "data_par_net": 1, "batch_size": run.batch,
        "microbatch_size": run.micro_batch, "datatype": NUMBERS[PRECISION[run.precision]], "fused_activation": True,
        "attention_type": "multihead", "activation_recompute": "attn_only", "pipeline_interleaving": run.interleave,
        "optimizer_sharding": True, "tensor_par_comm_type": "rs_ag", "tensor_par_overlap": "ring",
        "seq_par_ag_redo": False, "data_par_overlap": True, "weight_offload": False, "activations_offload": False,
        "optimizer_offload": False, "training": True,
    }  # fmt: skip
