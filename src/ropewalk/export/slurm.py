"""A plan as a Slurm job: a batch script, a launcher that gives every process its rank, and NCCL's environment.

One task is started for every GPU. The launcher looks its rank up in the rank file and sets the variables that torchrun
would set (`RANK`, `WORLD_SIZE`, `LOCAL_RANK`, …), so ranks can lie on GPUs in any order and servers may differ.
"""

from __future__ import annotations

from ropewalk.export.job import PlannedJob
from ropewalk.export.ranks import ranks_per_node
from ropewalk.strategy.asked import StrategyFacts

LAUNCHER = "launch.sh"
ENVIRONMENT = "nccl.env"

LAUNCH = """\
#!/usr/bin/env bash
# Runs a command as the rank that ranks.csv gives to this GPU: launch.sh COMMAND...
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mine='$2 == node && $3 == slot {print $1, $5}'
seat=$(awk -F, -v node="$SLURM_NODEID" -v slot="$SLURM_LOCALID" "$mine" "$here/ranks.csv")
[ -n "$seat" ] || { echo "ranks.csv has no rank for GPU $SLURM_LOCALID of node $SLURM_NODEID" >&2; exit 1; }
read -r RANK LOCAL_RANK <<< "$seat"
WORLD_SIZE=$(($(wc -l < "$here/ranks.csv") - 1))
LOCAL_WORLD_SIZE=$(awk -F, -v node="$SLURM_NODEID" '$2 == node' "$here/ranks.csv" | wc -l)
export RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE
exec "$@"
"""


def launch_script() -> str:
    """What Slurm runs for every GPU."""
    return LAUNCH


def batch_script(job: PlannedJob, frameworks: tuple[str, ...]) -> str:
    """The script for `sbatch`; `FRAMEWORK` says which of the frameworks runs, the first unless given."""
    counts = ranks_per_node(job.plan)
    equal = len(set(counts)) == 1
    head = [
        "#!/usr/bin/env bash",
        f"#SBATCH --job-name={job.workload.name}",
        f"#SBATCH --nodes={len(counts)}",
        *([f"#SBATCH --ntasks-per-node={counts[0]}"] if equal else [f"#SBATCH --ntasks={sum(counts)}"]),
        f"#SBATCH --gpus-per-node={max(counts)}",
        "#SBATCH --exclusive",
        f"# {job.plan.model.name}: {job.strategy.said()}",
        f"# FRAMEWORK=name sbatch job.slurm chooses one of: {', '.join(frameworks)}",
        "set -euo pipefail",
        'cd "${SLURM_SUBMIT_DIR:-.}"',
        'nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))',
        'export MASTER_ADDR="${nodes[0]}" MASTER_PORT="${MASTER_PORT:-29500}"',
        "STEPS=${STEPS:-50}",
        f"source ./{ENVIRONMENT}",
        *(["export NVIDIA_TF32_OVERRIDE=1"] if job.plan.model.precision == "tf32" else []),
    ]
    if not equal:
        head += [f"counts=({' '.join(map(str, counts))})", *_HOST_FILE]
    spread = "" if equal else " --distribution=arbitrary"
    start = f"srun --kill-on-bad-exit=1{spread} --ntasks={sum(counts)} bash {LAUNCHER}"
    cases = [f"  {name})\n{_indented(COMMANDS[name](job), start)}\n    ;;" for name in frameworks]
    default = f'case "${{FRAMEWORK:-{frameworks[0]}}}" in'
    unknown = '  *) echo "this plan is not written for $FRAMEWORK" >&2; exit 2 ;;'
    return "\n".join([*head, default, *cases, unknown, "esac", ""])


_HOST_FILE = (
    "export SLURM_HOSTFILE=$(mktemp)",
    'for i in "${!nodes[@]}"; do',
    '  for _ in $(seq "${counts[$i]}"); do echo "${nodes[$i]}"; done',
    'done > "$SLURM_HOSTFILE"',
)  # servers with different numbers of GPUs


def _indented(commands: list[str], start: str) -> str:
    return "\n".join(f"    {command.replace('START', start)}" for command in commands)


def _megatron(job: PlannedJob) -> list[str]:
    lines = [
        ': "${MEGATRON:?set it to a clone of Megatron-LM}"',
        'DATA=${DATA:-"--mock-data --tokenizer-type NullTokenizer"}',
        "mapfile -t arguments < <(tr ' ' '\\n' < megatron.args)",
    ]
    if connections(job.asked) is not None:
        lines.append(f"export CUDA_DEVICE_MAX_CONNECTIONS={connections(job.asked)}")
    return [
        *lines,
        'START python "$MEGATRON/pretrain_gpt.py" "${arguments[@]}" $DATA '
        '--train-iters "$STEPS" --lr 1e-4 --eval-iters 0',
    ]


def connections(asked: StrategyFacts) -> int | None:
    """What Megatron-LM wants CUDA_DEVICE_MAX_CONNECTIONS to be: 1 orders communication before the product it hides
    behind; Megatron-FSDP refuses that."""
    if asked.zero > 1:
        return 8
    return 1 if asked.tensor or asked.context else None


def _torchtitan(job: PlannedJob) -> list[str]:
    return ['START python -m torchtitan.train --job.config_file torchtitan.toml --training.steps "$STEPS" ${TITAN:-}']


def _deepspeed(job: PlannedJob) -> list[str]:
    return [
        ': "${SCRIPT:?set it to a training script that calls deepspeed.initialize}"',
        'START python "$SCRIPT" --deepspeed --deepspeed_config deepspeed.json',
    ]


def _pytorch(job: PlannedJob) -> list[str]:
    return [
        ': "${MODULE:?set it to your model, mypackage.mymodel:build}"',
        'START python train.py --module "$MODULE" --steps "$STEPS"',
    ]


COMMANDS = {"megatron": _megatron, "torchtitan": _torchtitan, "deepspeed": _deepspeed, "pytorch": _pytorch}
"""What starts each framework, line by line; START stands for srun and the launcher."""
