"""Published runs on Hopper and Blackwell as questions: what ran, as its authors describe it, and what was measured.

The rows are in `tests/data/published_runs_modern.csv`, each with its source. What a row does not say is said here, once
for all runs of a piece of software, from its own recipes; nothing is chosen by row and nothing is fitted to one.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from expert_recipes import AUTOMODEL_RECIPES, EXPERT_RECIPES, NCCL, AutoModelRecipe, ExpertRecipe
from ropewalk.device.device import DEVICES, PRECISIONS, device
from ropewalk.device.held import held_to
from ropewalk.hardware import Cluster, Given, read_cluster
from ropewalk.strategy import LayerChoice, Order, Strategy
from ropewalk.training import TrainingQuestion
from ropewalk.training.quick import QuickSteps
from ropewalk.workload.source import open_workload

DATA = Path(__file__).parent.parent / "tests" / "data" / "published_runs_modern.csv"
MEGATRON_BRIDGE, AUTOMODEL, MEGATRON_LM = "Megatron-Bridge", "NeMo AutoModel", "Megatron-LM"
MODELS = {
    "DeepSeekV3": "deepseek-v3",
    "DeepSeek V3 671B": "deepseek-v3",
    "GPT OSS 120B": "gpt-oss-120b",
    "GPT-OSS 20B": "gpt-oss-20b",
    "Kimi_K2": "kimi-k2",
    "LLAMA3.1_405B": "llama3-405b",
    "LLAMA3_70B": "llama3-70b",
    "LLAMA3_8B": "llama3-8b",
    "Llama3 8B": "llama3-8b",
    "Llama3 70B": "llama3-70b",
    "Llama3 70B 2-node": "llama3-70b",
    "Nemotron_3_Nano": "nemotron-3-nano",
    "Nemotron V3 Nano 30B": "nemotron-3-nano",
    "Nemotron_3_Super": "nemotron-3-super",
    "Nemotron_3_Ultra": "nemotron-3-ultra",
    "Nemotron V3 Ultra 550B": "nemotron-3-ultra",
    "Qwen2.5 7B": "qwen2.5-7b",
    "Qwen2.5 32B": "qwen2.5-32b",
    "Qwen2.5 32B 2-node": "qwen2.5-32b",
    "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "Qwen3_235B_a22B": "qwen3-235b-a22b",
    "llama3-70b": "llama3-70b",
    "llama3-405b": "llama3-405b:kv_heads=16",
    "deepseekv2": "deepseek-v2",
}
"""Published names without remarks, and ours. The 405B model of SimuMax's runs has 16 heads of keys and values, twice
those of Llama's."""
GPUS = {"H100-80GB": "h100", "H100": "h100", "B200": "b200", "B300": "b300", "GB200": "gb200", "GB300": "gb300"}
PRECISION = {"bf16": "bf16", "fp8": "fp8", "fp8-cs": "fp8", "fp8-mx": "mxfp8", "mxfp8": "mxfp8", "nvfp4": "nvfp4"}
PREDICTED_LAYERS = {"DeepSeekV3": 1, "Nemotron_3_Super": 2, "Nemotron_3_Ultra": 2, "Nemotron V3 Ultra 550B": 2}
"""Layers that predict tokens behind the next one; the second of Nemotron 3 is the first once more."""
LEFT_FOR_THE_LAST = {"DeepSeekV3": 61, "Kimi_K2": 61}
"""Blocks of models that Megatron-Bridge cuts unevenly (`set_deepseek_v3_pipeline_model_parallel_layout`)."""
TOKENS_DROPPED = "tokendrop"
"""What rows of 25.09 remark: experts of equal size, which asks for NCCL's all-to-all (Megatron-Bridge,
`moe_token_drop.py`)."""
LORA_RANK = 16
"""Of adapters, which rows do not say; half or twice of it changes a step by 1 %. They are on all linear layers of a
block in recipes of AutoModel, on queries, keys and values alone in those of Megatron-Bridge."""
IN_ONE_DOMAIN = 64
"""GPUs of an NVL72 that jobs of powers of two use."""
WHOLE_SEQUENCES = ("Qwen2.5 32B", "Qwen2.5 32B 2-node")
"""Models whose tensor ranks all keep the whole sequence between blocks: recipes without `sequence_parallel`."""
MEGATRON_BUCKET = 40e6
"""Parameters of a bucket of Megatron's distributed optimiser, or a million for every data rank where that is more."""


@dataclass(frozen=True)
class ModernRun:
    """A published run with its degrees."""

    id: str
    software: str
    model: str
    task: str
    """Pre-training, fine-tuning, LoRA."""
    layers: int
    """Where fewer of them ran than the model has; otherwise 0."""
    accelerator: str
    gpus: int
    sequence: int
    batch: int
    micro_batch: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    interleave: int
    sharded: int
    """Ranks that weights are sharded over (FSDP), 0 where only the optimiser's state is."""
    precision: str
    seconds: float
    """Of a step."""
    simumax_s: float
    """As SimuMax predicts it; 0 where it does not say."""
    remark: str = ""
    """What its source says behind the model's name."""

    @property
    def said(self) -> str:
        degrees = {"tp": self.tensor, "pp": self.pipeline, "cp": self.context, "ep": self.expert, "vp": self.interleave}
        split = " ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1) or "dp"
        sharded = ", FSDP" if self.sharded > 1 else ""
        return f"{self.model}, {split}{sharded}, batch {self.batch} by {self.micro_batch} x {self.sequence}"

    @property
    def set(self) -> str:
        """GPU, sort of model and precision: runs whose errors are counted together."""
        sort = "experts" if self.expert > 1 or not self.is_dense else "dense"
        return f"{self.accelerator.partition('-')[0]} {sort} {PRECISION.get(self.precision, self.precision)}"

    @property
    def is_dense(self) -> bool:
        return self.model.lower().startswith(("llama", "qwen2.5"))

    @property
    def folds(self) -> bool:
        """Are experts spread over tensor or context ranks too, as in all recipes that have several of these?"""
        return not self.is_dense and self.tensor * self.context > 1

    @property
    def zero(self) -> int:
        """Megatron shares the optimiser's state out, FSDP2 weights too; some recipes gather them once a step, as all
        pipelines do."""
        if self.data * self.context == 1:
            return 0
        if self.pipeline > 1 or (self.experts_of_automodel is not None and self.experts_of_automodel.whole):
            return 1
        return 3 if self.sharded > 1 else 1

    @property
    def optimiser(self) -> str:
        """Megatron-Core has its own, with weights and gradients in float32; FSDP2 updates weights as they are."""
        return "adamw_fused" if self.software.startswith(AUTOMODEL) else "adamw_mixed"

    @property
    def recipe(self) -> ExpertRecipe:
        """How its experts run: DeepEP or HybridEP in all recipes of AutoModel, by its container in Megatron-Bridge."""
        if self.software.startswith(AUTOMODEL):
            return NCCL if self.is_dense else ExpertRecipe(deepep=True)
        if self.software.startswith(MEGATRON_LM):
            return NCCL if self.is_dense else ExpertRecipe(dropped=True, router_apart=True)
        container = self.software.removeprefix(f"{MEGATRON_BRIDGE} NeMo ").partition(" ")[0]
        usual = EXPERT_RECIPES.get((self.model, self.accelerator), {})
        known = EXPERT_RECIPES.get((self.model, self.accelerator, PRECISION[self.precision]), usual)
        found = next((known[since] for since in sorted(known, reverse=True) if since <= container), NCCL)
        return replace(found, once=False, deepep=False, dropped=True) if self.remark == TOKENS_DROPPED else found

    @property
    def experts_of_automodel(self) -> AutoModelRecipe | None:
        """What AutoModel's recipe says of its experts; None for all other runs."""
        return AUTOMODEL_RECIPES.get(self.model) if self.software.startswith(AUTOMODEL) else None

    @property
    def predicted_layers(self) -> int:
        """Layers that predict further tokens, as recipes have them (Megatron-Bridge, src/megatron/bridge/recipes)."""
        if self.software.startswith(MEGATRON_LM) or self.remark == "w/o MTP":
            return 0
        return PREDICTED_LAYERS.get(self.model, 0)

    @property
    def dense_graphs(self) -> str:
        """Parts of Llama that recipes of Megatron-Bridge run as CUDA graphs (tags v0.2.0 to v0.5.0, configs/llama).

        Feed-forward layers where the 70B model is fine-tuned, whole steps of the 8B model on Grace.
        """
        if not (self.is_dense and self.software.startswith(MEGATRON_BRIDGE)):
            return ""
        if self.model == "LLAMA3_8B" and self.accelerator.startswith("GB") and "Pre-" in self.task:
            return "step"
        return "mlp" if self.model == "LLAMA3_70B" and "Pre-" not in self.task else ""

    @property
    def schedule(self) -> str:
        if self.recipe.overlap:
            return "1f1b-overlap"
        return "interleaved" if self.interleave > 1 else "1f1b"

    @property
    def data(self) -> int:
        return self.gpus // (self.tensor * self.pipeline * self.context)

    def workload(self) -> str:
        """The model by kernels of Transformer Engine, which all of these runs have; adapters where only they train.

        AutoModel puts them into transformers' code, which has a product each for queries, keys and values, and shares
        weights out by FSDP2, which copies them; its mixtures are its own code.
        """
        model = MODELS[self.model]
        stack = "fsdp2" if self.software.startswith(AUTOMODEL) and self.is_dense else "megatron"
        options = [f"layers={self.layers}"] if self.layers else []
        if "LoRA" in self.task:
            options += [f"lora={LORA_RANK}", *(["lora_on=qkv"] if self.software.startswith(MEGATRON_BRIDGE) else [])]
        options += ["loss_fusion=false"] if self.software.startswith(MEGATRON_LM) or stack == "fsdp2" else []
        options += [f"graphs={self.dense_graphs}"] if self.dense_graphs else []
        options += [f"mtp={self.predicted_layers}"] if self.predicted_layers else []
        domain = IN_ONE_DOMAIN if self.accelerator.startswith("GB") else 8
        options += self.recipe.options(domain, narrow=PRECISION[self.precision] != "bf16")
        return f"{model}{',' if ':' in model else ':'}{','.join([*options, f'stack={stack}'])}"

    def cluster(self, *, held: bool = True) -> Cluster:
        """Servers of eight GPUs with a NIC each, or 64 GPUs of an NVL72 in one NVLink domain; GPUs held to their limit.

        Limits are those of the data sheets.
        """
        together, name = IN_ONE_DOMAIN if self.accelerator.startswith("GB") else 8, GPUS[self.accelerator]
        return read_cluster(given=Given(self.gpus, held_to(name) if held else name, min(together, self.gpus)))

    def why_not(self) -> str:
        """Why it cannot be said here; empty where it can."""
        if not (self.batch and self.micro_batch):
            return "batch or micro-batch not stated"
        if PRECISION.get(self.precision) not in PRECISIONS:
            return f"{self.precision}, which is not priced"
        if GPUS.get(self.accelerator) not in DEVICES:
            return f"{self.accelerator} is no device here"
        if PRECISION[self.precision] not in device(GPUS[self.accelerator]).peak_flops:
            return f"{self.precision} on {self.accelerator}, which has no such products"
        if self.data * self.tensor * self.context % self.expert:
            return "experts spread over more ranks than a stage of its pipeline has"
        return "" if self.model in MODELS else f"{self.model} is no model here"

    def question(self, *, held: bool = True) -> TrainingQuestion:
        """The step as it ran."""
        usual = SETUPS[next(name for name in SETUPS if self.software.startswith(name))](self)
        if self.recipe.recompute != "none":
            usual = replace(usual, recompute=self.recipe.recompute)
        return TrainingQuestion(
            self.workload(), self.cluster(held=held), batch=self.batch, micro_batch=self.micro_batch,
            sequence=self.sequence, data=self.data, tensor=self.tensor, pipeline=self.pipeline, expert=self.expert,
            context=self.context, precision=PRECISION[self.precision], memory_check=False,
            usual=replace(
                usual, interleave=self.interleave, schedule=self.schedule, fold_experts=self.folds,
                optimiser=self.optimiser, zero=self.zero, shared_overlap=self.recipe.shared_overlap,
                sequence_parallel=self.tensor > 1 and self.model not in WHOLE_SEQUENCES,
            ),
        )  # fmt: skip

    def predicted_s(self, *, held: bool = True) -> float:
        """Seconds of the step as simulated."""
        question = self.question(held=held)
        return QuickSteps(question).run(question.strategy()).step_time_s


def megatron_bridge(run: ModernRun) -> Strategy:
    """NVIDIA's performance recipes: gradients summed and reduced in bf16 as the backward pass goes on, in buckets.

    Dense models keep all they need to go back (on GB200 and GB300 some of it in the host's memory); mixtures run as
    `EXPERT_RECIPES` has it. The first piece of a pipeline has the embedding. Tensor-parallel collectives hide behind
    products, but not in NVFP4.
    """
    order = Order(2 * max(MEGATRON_BUCKET, 1e6 * run.data))
    return Strategy(order=order, gradient_bytes=2.0, tensor_overlap=run.precision != "nvfp4", stages=_evenly(run))


def _evenly(run: ModernRun) -> tuple[int, ...] | None:
    """Blocks are cut evenly as Megatron-Core does, embedding and head on top, or counted as a block each.

    Where neither divides, recipes bring layouts: the 61 blocks of DeepSeek-V3 and Kimi K2 are cut as if there were some
    more, and the last piece has what is left, what predicts further tokens and the losses. Others are not told here:
    such pipelines are balanced by cost.
    """
    if run.pipeline == 1:
        return None
    if run.model in LEFT_FOR_THE_LAST:
        pieces = run.pipeline * run.interleave
        each = -(-LEFT_FOR_THE_LAST[run.model] // pieces)
        return (0, *(1 + each * piece for piece in range(1, pieces)))
    blocks, pieces = len(open_workload(run.workload(), 1, run.sequence).layers) - 2, run.pipeline * run.interleave
    if blocks % pieces == 0:
        return (0, *(1 + blocks // pieces * piece for piece in range(1, pieces)))
    counted = blocks + 2
    return None if counted % pieces else tuple(counted // pieces * piece for piece in range(pieces))


def automodel(run: ModernRun) -> Strategy:
    """NVIDIA's recipes for PyTorch's FSDP2: every block gathered before each pass, gradients scattered in bf16.

    On more than one GPU blocks of dense models are computed again, heads over words never (Automodel,
    `activation_checkpointing`, which wraps blocks); of mixtures as `AUTOMODEL_RECIPES` has it. The loss is PyTorch's
    own, in float32.
    """
    mixture = run.experts_of_automodel
    again = mixture.again if mixture else run.is_dense and run.gpus > 1
    return Strategy(
        recompute="full" if again else "none",
        choices=(LayerChoice("head", recompute="none"),) if again else (),
        regather=mixture is None or mixture.regather,
        gather_ahead=mixture is not None and mixture.whole,
    )


def megatron_lm(run: ModernRun) -> Strategy:
    """SimuMax's runs of Megatron-LM: gradients in float32, reduced behind the backward pass, nothing overlapped.

    Its script asks for no fused loss and cuts pipelines evenly.
    """
    return Strategy(
        order=Order(4 * max(MEGATRON_BUCKET, 1e6 * run.data), overlap=False),
        gradient_bytes=4.0,
        tensor_overlap=False,
        stages=_evenly(run),
    )


SETUPS: dict[str, Callable[[ModernRun], Strategy]] = {
    MEGATRON_BRIDGE: megatron_bridge,
    AUTOMODEL: automodel,
    MEGATRON_LM: megatron_lm,
}
"""What rows do not say, by the software that ran them."""


@cache
def modern_runs() -> tuple[ModernRun, ...]:
    """All rows of which the seconds of a step follow, in the order of the file."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(_run(row) for row in csv.DictReader(file) if row["unit"] in ("s", "tok/s/GPU"))


def _run(row: dict[str, str]) -> ModernRun:
    model, _, task = row["model"].partition(" [")
    number = {name: int(row[name]) if row[name].isdecimal() else 1 for name in ("tp", "pp", "cp", "ep", "vp")}
    gpus, sequence, micro_batch = (int(row[name] or 0) for name in ("n_accel", "seq_len", "micro_batch"))
    extra = dict(part.partition("=")[::2] for part in row["extra"].split(";"))
    data = gpus // (number["tp"] * number["pp"] * number["cp"])
    batch = int(row["global_batch"] or micro_batch * int(extra.get("micro_batches", 0)) * data)
    value = float(row["value"])
    fewer = row["software"].startswith(MEGATRON_LM)
    sharded = row["zero_fsdp"]
    return ModernRun(
        row["id"], row["software"], model.split(" (")[0], task.rstrip("]"), int(row["layers"]) if fewer else 0,
        row["accelerator"], gpus, sequence, batch, micro_batch,
        *(number[name] for name in ("tp", "pp", "cp")), _experts(row, model, number["ep"]), number["vp"],
        int(sharded) if sharded.isdecimal() else 0,
        row["precision"].lower(),
        value if row["unit"] == "s" else batch * sequence / (value * gpus),
        float(extra.get("simumax_ms", 0)) / 1e3, model.partition(" (")[2].rstrip(")"),
    )  # fmt: skip


def _experts(row: dict[str, str], model: str, said: int) -> int:
    """Ranks that experts are spread over; tables of AutoModel leave it out where its recipes have it."""
    known = AUTOMODEL_RECIPES.get(model.split(" (")[0]) if row["software"].startswith(AUTOMODEL) else None
    return known.expert if known and said == 1 else said
