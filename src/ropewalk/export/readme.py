"""The page that says how to start a job: what was promised, which file is what, what each framework does otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ropewalk.export.job import PlannedJob
from ropewalk.export.ranks import ranks_per_node
from ropewalk.export.remarks import remarks
from ropewalk.strategy.frameworks import FRAMEWORKS
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.units import show_seconds, show_size

FILES = {
    "deepspeed.json": "configuration of DeepSpeed",
    "job.slurm": "batch script for Slurm: `sbatch job.slurm`",
    "launch.sh": "sets the rank of every process; run by Slurm",
    "megatron.args": "arguments of Megatron-LM, one per line",
    "mscclpp/": "collectives that NCCL does not have, as MSCCL++ plans",
    "nccl-tuner.csv": "table for NCCL's tuner plugin",
    "nccl.env": "NCCL's environment",
    "patch.csv": "patch list of the panels",
    "plan.json": "the plan; `ropewalk simulate plan.json` shows how long a step takes and why",
    "ranks.csv": "rank file: GPU and role of every rank",
    "schedule.csv": "the timetable for torch.distributed.pipelining",
    "tables.csv": "forwarding tables of all servers",
    "torchtitan.toml": "job configuration of torchtitan 0.2",
    "train.py": "trains your own module with plain PyTorch",
}
SETTINGS = {
    "megatron": '`MEGATRON=/path/to/Megatron-LM`; `DATA="--data-path …"` for your own data',
    "torchtitan": 'the tokenizer: `TITAN="--model.hf_assets_path …"`',
    "deepspeed": "`SCRIPT=train_with_deepspeed.py`",
    "pytorch": "`MODULE=mypackage.mymodel:build`",
}
"""What has to be set besides, by framework."""


def readme(job: PlannedJob, why_not: Mapping[str, str | None], written: Sequence[str]) -> str:
    """The page; `why_not` says why frameworks cannot run the job, `written` which files there are."""
    parts = [f"# {job.plan.model.name}: {job.strategy.said()}", _promise(job)]
    running = [name for name, reason in why_not.items() if reason is None]
    if running:
        parts += ["## Start it", _start(job, running)]
    else:
        parts.append("No framework runs this strategy, but the wiring below can still be built.")
    parts += ["## Frameworks", _frameworks(job, why_not), "## Files", _files(written)]
    return "\n\n".join(parts) + "\n"


def _promise(job: PlannedJob) -> str:
    counts = ranks_per_node(job.plan) if not job.strategy.parts else []
    where = (
        f"{sum(counts)} GPUs on {len(counts)} server{'s' * (len(counts) != 1)}"
        if counts
        else f"{job.strategy.ranks} workers"
    )
    promised = job.plan.prediction
    if promised is None:
        return f"On {where}. This plan has not been simulated yet."
    return (
        f"On {where}: {show_seconds(promised.step_time_s)} per step of {job.strategy.global_batch} samples, "
        f"{show_size(promised.memory_bytes)} of GPU memory at peak."
    )


def _start(job: PlannedJob, running: list[str]) -> str:
    lines = ["```console", *(f"FRAMEWORK={name} sbatch job.slurm" for name in running), "```", ""]
    lines.append("Also set:")
    lines += [f"- {FRAMEWORKS[name].label}: {SETTINGS[name]}" for name in running]
    counts = ranks_per_node(job.plan)
    if "pytorch" in running and job.laid_out_as(DEFAULT_ORDER) and len(set(counts)) == 1:
        lines += ["", "Without Slurm, on every server:", "", "```console", _torchrun(counts), "```"]
    if "pytorch" in running:
        lines += [
            "", "`python train.py --module mypackage.mymodel:build --alone` trains the same steps in one process: its "
            "losses equal those of the job.",
        ]  # fmt: skip
    return "\n".join(lines)


def _torchrun(counts: list[int]) -> str:
    nodes = "--standalone" if len(counts) == 1 else f"--nnodes {len(counts)} --node-rank $NODE --master-addr $FIRST"
    return f"torchrun {nodes} --nproc-per-node {counts[0]} train.py --module mypackage.mymodel:build"


def _frameworks(job: PlannedJob, why_not: Mapping[str, str | None]) -> str:
    lines = []
    for name, reason in why_not.items():
        label = FRAMEWORKS[name].label
        if reason is not None:
            lines.append(f"- {label} {reason}.")
            continue
        lines.append(f"- {label} runs it.{''.join(f' {remark}' for remark in remarks(job, name))}")
    return "\n".join(lines)


def _files(written: Sequence[str]) -> str:
    shown = dict.fromkeys(f"{name.partition('/')[0]}/" if "/" in name else name for name in written)
    return "\n".join(["| file | content |", "|---|---|", *(f"| `{name}` | {FILES[name]} |" for name in shown)])
