"""Training steps of every stack on the GPU at hand after seconds at full power, and parts of them, into one JSON file.

    python benchmarks/gpu_sustained.py sustained.json [--seconds 460] [--only eager,updates] [--later]

Steps: transformers' models as they are (`eager`) and under `torch.compile` (`compiled`), a lean Llama with the blocks
of torchtitan (`fsdp2`; `sharded`: under FSDP2 on one rank) and of Megatron-Core (`megatron`, bf16 and FP8), and with
those of Transformer Engine where it can be imported. Parts: `gpu_parts.py`. What fails or does not fit into the time is
said in the file; `python benchmarks/against_gpu_steps.py sustained.json` sets predictions beside it.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gpu_clock import Stopwatch
from gpu_models import Loss, engine_llama, lean_llama, text_model, transformers_config
from gpu_parts import PARTS, UPDATES, Row

BOTH_S, STEP_S = 3.0, 6.0
"""How long both passes, and whole steps with each optimiser, run."""
COMPILING_S = {"eager": 2.0, "compiled": 30.0, "fsdp2": 14.0, "megatron": 14.0, "engine": 5.0}
"""Seconds until the first step, about."""
PART_S = {"updates": 40.0, "windows": 45.0, "scans": 40.0, "products": 40.0, "dropouts": 15.0}
LONGEST = 40
"""Kernels of a step that are listed."""


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
    def takes_s(self) -> float:
        begins = COMPILING_S["engine" if self.engine else self.stack]
        return begins + BOTH_S + STEP_S * len(self.optimisers) + 3.0


ALL = ("adamw", "adamw_fused", "adamw_loop")
CASES = (
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
"""In the order in which they are measured: every stack early, so that a short loan has some of each. No step is of a
size that was measured before."""
LATER = (
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
"""Steps of a second day (`--later`): sizes and a model that no step before had, predicted before they were measured."""
QUICK = (
    Case("fsdp2", "tiny:layers=1", 2, 16, ALL), Case("megatron", "tiny:layers=1", 2, 16, precision="fp8"),
    Case("fsdp2", "tiny:layers=1", 2, 16, sharded=True),
)  # fmt: skip
"""Too small to mean anything: whether all of it runs, also on a CPU."""


def made(case: Case, device: str, backend: str) -> tuple[nn.Module, Loss]:
    """The model of a case, and its loss on random words."""
    if case.code == "transformers":
        config, kind = transformers_config(case.model)
        model, loss = text_model(config, case.batch, case.sequence, torch.bfloat16, kind)
        if case.stack == "compiled":
            model.compile()
        return model, loss
    fp8 = case.precision == "fp8"
    if case.engine:
        lean = engine_llama(case.model, case.sequence, fp8)
    else:
        lean = lean_llama(case.model, device, backend, merged=case.stack == "megatron", fp8=fp8)
    if case.sharded:
        shard(lean, device)
    words = torch.randint(lean.words.num_embeddings, (case.batch, case.sequence), device=device)
    return lean, lambda: lean(words)


def shard(model: nn.Module, device: str) -> None:
    """FSDP2 over one rank: nothing is sent, but weights are gathered into buffers and gradients scattered from them."""
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if not distributed.is_initialized():
        place = Path(tempfile.mkdtemp()) / "meeting"
        backend = "nccl" if device == "cuda" else "gloo"
        distributed.init_process_group(backend, init_method=f"file://{place}", rank=0, world_size=1)
    mesh = init_device_mesh(device, (1,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:  # type: ignore[union-attr]
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def measured(case: Case, watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """One row for every optimiser."""
    torch.compiler.reset()
    begin = time.perf_counter()
    model, loss = made(case, device, "eager" if quick else "inductor")

    def both() -> None:
        model.zero_grad(set_to_none=True)
        loss().backward()

    for _ in range(2):
        both()
    watch.wait()
    ready_s = time.perf_counter() - begin
    passes = watch.sustained(both, 0.0 if quick else BOTH_S)
    for name in case.optimisers:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, **UPDATES[name])

        def step(update: Any = optimiser.step) -> None:
            both()
            update()

        taken = watch.sustained(step, 0.0 if quick else STEP_S)
        yield {
            "part": "step", "code": case.code, "stack": case.stack, "precision": case.precision, "model": case.model,
            "batch": case.batch, "sequence": case.sequence, "optimiser": name, "sharded": case.sharded,
            "forward_backward_s": passes.seconds, "step_s": taken.seconds, "clock_mhz": taken.clock_mhz,
            "watts": taken.watts, "parameters": sum(weight.numel() for weight in model.parameters()),
            "tensors": sum(1 for _ in model.parameters()), "ready_s": ready_s,
            "step_host_s": watch.host(step, 3), "kernels": kernels(step) if watch.cuda else [],
        }  # fmt: skip


def kernels(step: Any) -> list[Row]:
    """The kernels of one step that take longest: name, launches, seconds."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    found = sorted(seen.key_averages(), key=lambda one: -one.self_device_time_total)
    return [
        {"name": one.key[:120], "launches": one.count, "seconds": 1e-6 * one.self_device_time_total}
        for one in found[:LONGEST]
    ]


class File:
    """What was found, written whole after every row: a run that is cut short leaves all but its last."""

    def __init__(self, path: Path, device: str) -> None:
        self.path = path
        gpu = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "cpu"
        self.found: dict[str, Any] = {"gpu": gpu, "torch": torch.__version__, "rows": [], "failed": [], "skipped": []}

    def add(self, kind: str, one: Any) -> None:
        self.found[kind].append(one)
        beside = self.path.with_name(self.path.name + ".part")
        beside.write_text(json.dumps(self.found, indent=1), encoding="utf-8")
        beside.replace(self.path)


def jobs(case_list: tuple[Case, ...], part_list: dict[str, Any]) -> Iterator[tuple[str, float, Any]]:
    """Parts and steps in turn: name, about how long it takes, and what is measured."""
    parts = iter(part_list.items())
    for at, case in enumerate(case_list):
        if at % 2 == 0 and (part := next(parts, None)):
            yield part[0], PART_S[part[0]], part[1]
        yield f"{case.stack} {case.code} {case.precision} {case.model}", case.takes_s, case
    for name, part in parts:
        yield name, PART_S[name], part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the JSON file that is written")
    parser.add_argument("--seconds", type=float, default=460.0, help="what would end later is left out")
    parser.add_argument("--only", default="", help="names that a step or part must contain one of, with commas between")
    parser.add_argument("--later", action="store_true", help="the steps of the second day, and no parts")
    parser.add_argument("--quick", action="store_true", help="tiny sizes on the CPU: whether all of it runs")
    options = parser.parse_args()
    device = "cpu" if options.quick else "cuda"
    torch.set_float32_matmul_precision("high")
    begin, watch, file = time.perf_counter(), Stopwatch(device), File(options.file, device)
    cases = QUICK if options.quick else LATER if options.later else CASES
    for name, takes_s, what in jobs(cases, {} if options.later else PARTS):
        if options.only and not any(word in name for word in options.only.split(",")):
            continue
        if time.perf_counter() - begin + takes_s > options.seconds:
            file.add("skipped", name)
            continue
        try:
            rows = (measured if isinstance(what, Case) else run_part)(what, watch, device, quick=options.quick)
            for row in rows:
                file.add("rows", row)
                print(
                    f"{time.perf_counter() - begin:6.1f}", *(str(row[key])[:24] for key in list(row)[:12]), flush=True
                )
        except Exception as problem:  # one that does not run must not cost the others
            file.add("failed", {"name": name, "why": repr(problem)[:500]})
            print(f"{time.perf_counter() - begin:6.1f} {name} failed: {problem!r:.200}", flush=True)
        if device == "cuda":
            torch.cuda.empty_cache()


def run_part(part: Any, watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    return part(watch, device, quick=quick)


if __name__ == "__main__":
    main()
