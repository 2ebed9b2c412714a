"""Training steps of every stack on the GPU at hand after seconds at full power, and parts of them, into one JSON file.

    python benchmarks/gpu_sustained.py sustained.json [--seconds 460] [--only eager,updates] [--day 3]

Steps: transformers' models as they are (`eager`) and under `torch.compile` (`compiled`), a lean Llama with the blocks
of torchtitan (`fsdp2`; `sharded`: under FSDP2 on one rank) and of Megatron-Core (`megatron`, bf16 and FP8), and with
those of Transformer Engine where it can be imported; `gpu_days.py` lists them. Parts: `gpu_parts.py`. Whatever fails,
runs out of memory or does not fit into the time is said in the file, which is written after every row;
`python benchmarks/against_gpu_steps.py sustained.json` sets predictions beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gpu_clock import Stopwatch
from gpu_days import BOTH_S, DAYS, QUICK, STEP_S, Case
from gpu_models import Loss, engine_llama, lean_llama, text_model, transformers_config
from gpu_parts import PARTS, UPDATES, Row

PART_S = {"updates": 40.0, "windows": 45.0, "scans": 40.0, "products": 40.0, "dropouts": 15.0}
"""How long each part takes, about."""
LONGEST = 40
"""Kernels of a step that are listed."""
NUMBERS = {"bf16": torch.bfloat16, "fp8": torch.bfloat16, "tf32": torch.float32}
"""The numbers that weights are kept in, by precision; products of float32 are rounded to TF32."""


class OutOfTime(Exception):
    """What was to be measured has not ended in the time that is left."""


def made(case: Case, device: str, backend: str) -> tuple[nn.Module, Loss]:
    """The model of a case, and its loss on random words."""
    if case.code == "transformers":
        config, kind = transformers_config(case.model)
        model, loss = text_model(config, case.batch, case.sequence, NUMBERS[case.precision], kind)
        if case.stack == "compiled":
            model.compile()
        return model, loss
    fp8 = case.precision == "fp8"
    if case.engine:
        lean = engine_llama(case.model, case.sequence, fp8)
    else:
        merged = case.stack == "megatron"
        lean = lean_llama(case.model, device, backend, NUMBERS[case.precision], merged=merged, fp8=fp8)
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
        yield case.name, case.takes_s, case
    for name, part in parts:
        yield name, PART_S[name], part


def main() -> None:
    options = told()
    device = "cpu" if options.quick else "cuda"
    torch.set_float32_matmul_precision("high")
    begin, watch, file = time.perf_counter(), Stopwatch(device), File(options.file, device)
    cases = QUICK if options.quick else DAYS[options.day]
    signal.signal(signal.SIGALRM, _out_of_time)
    for name, takes_s, what in jobs(cases, PARTS if options.day == 1 else {}):
        if options.only and not any(word in name for word in options.only.split(",")):
            continue
        left_s = options.seconds - (time.perf_counter() - begin)
        if takes_s > left_s:
            file.add("skipped", name)
            continue
        signal.setitimer(signal.ITIMER_REAL, left_s)
        try:
            rows = (measured if isinstance(what, Case) else run_part)(what, watch, device, quick=options.quick)
            for row in rows:
                file.add("rows", row)
                said = (str(row[key])[:24] for key in list(row)[:12])
                print(f"{time.perf_counter() - begin:6.1f}", *said, flush=True)
        except Exception as problem:  # one that does not run must not cost the others
            file.add("failed", {"name": name, "why": repr(problem)[:500]})
            print(f"{time.perf_counter() - begin:6.1f} {name} failed: {problem!r:.200}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        gc.collect()  # a model and its compiled code hold each other
        if device == "cuda":
            torch.cuda.empty_cache()


def told() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the JSON file that is written")
    parser.add_argument("--seconds", type=float, default=460.0, help="what would end later is left out or cut off")
    parser.add_argument("--only", default="", help="names that a step or part must contain one of, with commas between")
    parser.add_argument(
        "--day", type=int, choices=DAYS, default=1, help="whose steps are measured; those of the first day with parts"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes on the CPU: whether all of it runs")
    return parser.parse_args()


def _out_of_time(number: int, frame: object) -> None:
    raise OutOfTime("it had not ended when the time was over: give more --seconds")


def run_part(part: Any, watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    return part(watch, device, quick=quick)


if __name__ == "__main__":
    main()
