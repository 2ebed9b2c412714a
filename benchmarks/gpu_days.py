"""Steps that were measured on an H200, day by day: no step is of a size that was measured before.

The steps of the second day and of those behind it were predicted before they were measured; the predictions stand in
`tests/data/h200_predicted_steps.csv`, which `python benchmarks/against_gpu_steps.py --predict DAY FILE` writes.
"""

from __future__ import annotations

from dataclasses import dataclass

BOTH_S, STEP_S = 3.0, 6.0
"""How long both passes, and whole steps with each optimiser, run."""
COMPILING_S = {"eager": 2.0, "compiled": 20.0, "fsdp2": 14.0, "megatron": 14.0, "engine": 5.0}
"""Seconds until the first step, about."""
AFTER_S = 2.0
"""What the profile takes, and giving the memory back."""
ALL = ("adamw", "adamw_fused", "adamw_loop")


@dataclass(frozen=True)
class Case:
    """A step to measure: who runs which model at what size, and the optimisers that update it in turn."""

    stack: str
    model: str
    batch: int
    sequence: int
    optimisers: tuple[str, ...] = ("adamw_fused",)
    precision: str = "bf16"
    sharded: bool = False
    engine: bool = False

    @property
    def code(self) -> str:
        if self.engine:
            return "transformer_engine"
        return "transformers" if self.stack in ("eager", "compiled") else "lean"

    @property
    def name(self) -> str:
        return f"{self.stack} {self.code} {self.precision} {self.model} {self.batch} x {self.sequence}"

    @property
    def takes_s(self) -> float:
        begins = COMPILING_S["engine" if self.engine else self.stack]
        return begins + BOTH_S + STEP_S * len(self.optimisers) + AFTER_S


FIRST = (
    Case("eager", "llama2-13b:layers=6", 2, 4096, ("adamw",)),
    Case("fsdp2", "llama3-8b:layers=4", 2, 8192),
    Case("compiled", "llama2-13b:layers=4", 2, 4096),
    Case("eager", "gpt2-large", 16, 1024, ALL),
    Case("megatron", "llama3-8b:layers=6", 4, 4096, precision="fp8"),
    Case("fsdp2", "llama3-8b:layers=4", 2, 8192, sharded=True),
    Case("megatron", "llama3-8b:layers=4", 2, 4096, engine=True),
    Case("megatron", "llama3-8b:layers=4", 2, 4096, precision="fp8", engine=True),
    Case("eager", "qwen3-30b-a3b:layers=2", 4, 4096, ("adamw",)),
    Case("compiled", "gpt2-large:layers=12", 16, 1024),
    Case("eager", "bert-large", 48, 384, ("adamw", "adamw_loop")),
    Case("megatron", "llama3-8b:layers=6", 4, 4096),
    Case("eager", "mixtral-8x7b:layers=2", 2, 4096, ("adamw",)),
    Case("fsdp2", "llama2-13b:layers=4", 4, 2048),
)
"""In the order in which they are measured: every stack early, so that a short loan has some of each."""
SECOND = (
    Case("compiled", "qwen3-8b:layers=6", 2, 4096),
    Case("compiled", "gpt2-medium", 16, 1024),
    Case("megatron", "llama3-70b:layers=2", 2, 4096, precision="fp8"),
    Case("compiled", "mixtral-8x7b:layers=2", 2, 4096),
    Case("fsdp2", "llama3-70b:layers=2", 1, 8192),
    Case("compiled", "bert-large", 48, 384),
    Case("megatron", "llama2-13b:layers=4", 4, 2048),
    Case("eager", "qwen3-8b:layers=6", 2, 4096),
    Case("compiled", "qwen3-30b-a3b:layers=3", 2, 4096),
    Case("fsdp2", "llama-7b:layers=6", 4, 4096),
    Case("megatron", "llama2-13b:layers=4", 4, 2048, precision="fp8"),
    Case("compiled", "llama3-8b:layers=6", 4, 2048),
    Case("eager", "gpt2-medium", 32, 1024),
    Case("megatron", "llama3-70b:layers=2", 2, 4096),
)
THIRD = (
    Case("compiled", "bert-large:layers=6", 32, 512),
    Case("eager", "qwen2.5-7b:layers=6", 2, 8192),
    Case("fsdp2", "llama-30b:layers=3", 2, 4096),
    Case("compiled", "gpt3-1.3b:layers=6", 8, 2048),
    Case("eager", "llama-3.2-1b:layers=8", 4, 2048, precision="tf32"),
    Case("compiled", "bert-base:layers=6", 128, 256),
    Case("eager", "mixtral-8x22b:layers=1", 2, 4096),
    Case("compiled", "llama-3.2-3b:layers=6", 4, 4096),
    Case("fsdp2", "llama3-8b:layers=4", 1, 16384),
    Case("eager", "bert-base", 96, 512),
    Case("compiled", "qwen3-14b:layers=3", 1, 8192),
    Case("fsdp2", "llama2-13b:layers=3", 4, 4096, precision="fp8"),
    Case("eager", "gpt2-xl:layers=12", 32, 512),
    Case("compiled", "llama-7b:layers=4", 2, 2048, precision="tf32"),
)
"""Models that no day before had, longer sequences, float32 by TF32 and FP8 under FSDP2's blocks."""
DAYS = {1: FIRST, 2: SECOND, 3: THIRD}
QUICK = (
    Case("fsdp2", "tiny:layers=1", 2, 16, ALL), Case("megatron", "tiny:layers=1", 2, 16, precision="fp8"),
    Case("fsdp2", "tiny:layers=1", 2, 16, sharded=True), Case("fsdp2", "tiny:layers=1", 2, 16, precision="tf32"),
)  # fmt: skip
"""Too small to mean anything: whether all of it runs, also on a CPU."""
