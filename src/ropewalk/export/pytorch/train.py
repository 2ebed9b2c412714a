"""Train a module of your own as a plan says: DDP, FSDP2 and torch.distributed.pipelining, on NCCL or Gloo.

    torchrun --nproc-per-node 4 train.py --module mypackage.mymodel:build
    python train.py --module mypackage.mymodel:build --alone      # the same steps in one process: the same losses

The file of the module has three functions:

    build()                  the model; an nn.Sequential of the planned layers where a pipeline cuts it
    batch(first, samples)    inputs and targets of the samples from number `first` on, samples along dimension 0
    loss(outputs, targets)   the mean loss of samples

and where the plan has tensor parallelism `tensor_plan(module)`: what `parallelize_module` takes, for the model or for a
piece of it. PLAN is what was decided; everything else can be changed.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

PLAN: dict[str, Any] = {}

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MIB = 1 << 20


class Recomputed(nn.Module):
    """A layer whose activations are computed again in the backward pass."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: Any) -> Any:
        return checkpoint(self.layer, *inputs, use_reentrant=False)


def refuse(message: str) -> None:
    """End with a message where the module does not fit the plan."""
    sys.exit(f"train.py: {message}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", required=True, help="package.module:build or file.py:build")
    parser.add_argument(
        "--cuts", help="first layer of each piece of the pipeline, such as 0,6,12; the plan's if absent"
    )
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--alone", action="store_true", help="train all samples in this process, nothing split")
    parser.add_argument("--losses", type=Path, help="write the loss of every step to this JSON file")
    return parser.parse_args()


def users_module(text: str) -> tuple[ModuleType, Callable[[], nn.Module]]:
    """The file that has build, batch and loss, and its build."""
    where, _, name = text.rpartition(":")
    if where.endswith(".py"):
        found = importlib.util.spec_from_file_location(Path(where).stem, where)
        if found is None or found.loader is None or not Path(where).is_file():
            sys.exit(f"train.py: there is no file {where}: name one as --module file.py:build")
        users = importlib.util.module_from_spec(found)
        found.loader.exec_module(users)
    else:
        sys.path.insert(0, os.getcwd())
        users = importlib.import_module(where)
    for needed in (name, "batch", "loss", *(["tensor_plan"] if PLAN["tensor"] > 1 else [])):
        if not callable(getattr(users, needed, None)):
            refuse(f"{where} has no function {needed}: add it, as described at the top of train.py")
    return users, getattr(users, name)


def layers_of(module: nn.Module) -> list[nn.Module]:
    """What is sharded, recomputed and cut by itself: the layers of a sequence, or of the longest list in the module."""
    if isinstance(module, nn.Sequential):
        return list(module)
    lists = [list(found) for found in module.modules() if isinstance(found, nn.ModuleList)]
    return max(lists, key=len, default=[module])


def pieces_of(module: nn.Module, cuts: list[int]) -> list[nn.Sequential]:
    """The module in the pieces of the pipeline."""
    if not isinstance(module, nn.Sequential):
        refuse("a pipeline needs an nn.Sequential of layers: let build return one")
    layers = layers_of(module)
    if len(cuts) != len(PLAN["homes"]) or cuts[0] != 0 or sorted(set(cuts)) != cuts or cuts[-1] >= len(layers):
        refuse(
            f"cuts {cuts} do not divide {len(layers)} layers into {len(PLAN['homes'])} pieces: give others by --cuts"
        )
    return [nn.Sequential(*layers[first:last]) for first, last in zip(cuts, [*cuts[1:], len(layers)], strict=True)]


def recomputed(module: nn.Module, first: int = 0) -> nn.Module:
    """The module with the recomputation of the plan; `first` is the planned number of its first layer."""
    if PLAN["recompute"] == "stage":
        return Recomputed(module)
    chosen = set(PLAN["recomputed"])
    layers = layers_of(module)
    for name, layer in list(module.named_modules()):
        number = next((number for number, one in enumerate(layers) if one is layer), None)
        if number is not None and first + number in chosen:
            parent, _, last = name.rpartition(".")
            setattr(module.get_submodule(parent), last, Recomputed(layer))
    return module


def wrapped(module: nn.Module, mesh: DeviceMesh, users: ModuleType) -> nn.Module:
    """The module over the tensor and data ranks of the mesh."""
    if PLAN["tensor"] > 1:
        parallelize_module(module, mesh["tp"], users.tensor_plan(module))
    if PLAN["data"] == 1 or next(module.parameters(), None) is None:
        return module
    if PLAN["zero"]:
        return sharded(module, mesh["dp"])
    ddp = DistributedDataParallel(
        module, process_group=mesh["dp"].get_group(), gradient_as_bucket_view=True, **buckets(module)
    )
    if PLAN["gradient_bytes"] == 2 and PLAN["precision"] == "bf16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

        ddp.register_comm_hook(None, bf16_compress_hook)
    return ddp


def sharded(module: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """FSDP2: every layer by itself, then what is left. Below ZeRO-3 weights stay gathered from pass to pass."""
    policy = MixedPrecisionPolicy(
        param_dtype=DTYPES[PLAN["precision"]],
        reduce_dtype=torch.float32 if PLAN["gradient_bytes"] == 4 else DTYPES[PLAN["precision"]],
    )
    again = PLAN["zero"] == 3 and PLAN["regather"]
    for layer in layers_of(module):
        if layer is not module and next(layer.parameters(), None) is not None:
            fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=again)
    return fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=again)


def buckets(module: nn.Module) -> dict[str, Any]:
    """Settings of DDP for the planned buckets: one size for all, or one cap for each planned launch of layers."""
    if not PLAN["overlap"]:
        return {"bucket_cap_mb": sum(one.numel() for one in module.parameters()) * 4 / MIB + 1}  # one, behind all
    if PLAN["launches"] is None:
        return {"bucket_cap_mb": PLAN["bucket_bytes"] / MIB}
    sizes = [sum(one.numel() * one.element_size() for one in layer.parameters()) for layer in layers_of(module)]
    if PLAN["layers"] != len(sizes):
        refuse(
            f"the module has {len(sizes)} layers, but the launches were planned for {PLAN['layers']}: build the "
            "same number"
        )
    caps = [sum(sizes[layer] for layer in launch) for launch in PLAN["launches"]]
    return {"bucket_cap_mb_list": [cap / MIB for cap in caps if cap]}


@contextmanager
def micro_batch(module: nn.Module, last: bool) -> Iterator[None]:
    """Around the passes of one micro-batch: which of them reduce gradients and give weights up."""
    if isinstance(module, DistributedDataParallel) and not last:
        with module.no_sync():
            yield
        return
    if isinstance(module, FSDPModule):
        module.set_is_last_backward(last)
        module.set_requires_gradient_sync(last or PLAN["zero"] >= 2)
        module.set_reshard_after_backward(last or PLAN["zero"] == 3)
    yield


def optimiser_of(parameters: list[nn.Parameter], lr: float) -> torch.optim.Optimizer | None:
    if PLAN["optimiser"] == "none" or not parameters:
        return None
    if PLAN["optimiser"] in ("sgd", "momentum"):
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9 if PLAN["optimiser"] == "momentum" else 0.0)
    return torch.optim.AdamW(parameters, lr=lr)


def narrowed(device: torch.device) -> Any:
    """Products in 16 bits where the plan says so and FSDP does not cast weights itself."""
    casts = PLAN["precision"] in ("bf16", "fp16") and not (PLAN["zero"] and PLAN["data"] > 1)
    return torch.autocast(device.type, DTYPES[PLAN["precision"]], enabled=casts)


class Whole:
    """One rank of data and tensor parallelism: it holds every layer."""

    def __init__(self, module: nn.Module, users: ModuleType, device: torch.device, micro_batches: int) -> None:
        self.module, self.users, self.device, self.micro_batches = module, users, device, micro_batches
        self.parameters = list(module.parameters())

    def step(self, first: int) -> list[float]:
        """Forward and backward of all micro-batches from this sample on; their losses."""
        losses = []
        for number in range(self.micro_batches):
            inputs, targets = self.users.batch(first + number * PLAN["micro_batch"], PLAN["micro_batch"])
            inputs, targets = inputs.to(self.device), targets.to(self.device)
            with micro_batch(self.module, number == self.micro_batches - 1):
                with narrowed(self.device):
                    loss = self.users.loss(self.module(inputs), targets)
                (loss / self.micro_batches).backward()
            losses.append(loss.item())
        return losses


class Piped:
    """One rank of a pipeline: it holds some pieces and runs the timetable of the plan."""

    def __init__(self, pieces: dict[int, nn.Module], mesh: DeviceMesh, users: ModuleType, device: torch.device) -> None:
        self.users, self.device = users, device
        self.parameters = [parameter for piece in pieces.values() for parameter in piece.parameters()]
        homes, group = PLAN["homes"], mesh["pp"].get_group()
        stages = [PipelineStage(piece, number, len(homes), device, group=group) for number, piece in pieces.items()]
        self.first, self.last = 0 in pieces, len(homes) - 1 in pieces
        self.schedule = _PipelineScheduleRuntime(stages, PLAN["micro_batches"], loss_fn=self.loss, scale_grads=True)
        with tempfile.TemporaryDirectory() as folder:
            passes = Path(folder) / "passes.csv"
            passes.write_text("\n".join(PLAN["passes"]) + "\n")
            self.schedule._load_csv(str(passes))

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> Any:
        return self.users.loss(outputs, targets)

    def step(self, first: int) -> list[float]:
        inputs, targets = self.users.batch(first, PLAN["micro_batch"] * PLAN["micro_batches"])
        losses: list[torch.Tensor] = []
        given = (inputs.to(self.device),) if self.first else ()
        wanted = {"target": targets.to(self.device), "losses": losses} if self.last else {}
        with narrowed(self.device):
            self.schedule.step(*given, **wanted)
        return [loss.item() for loss in losses]


def rank_of(
    options: argparse.Namespace, users: ModuleType, build: Callable[[], nn.Module], device: torch.device
) -> Any:
    """What this rank runs, and its number among the data ranks."""
    torch.manual_seed(options.seed)
    module = build()
    if options.alone:
        samples = PLAN["data"] * PLAN["micro_batches"]
        return Whole(module.to(device), users, device, samples), 0
    shape = PLAN["pipeline"], PLAN["data"], PLAN["tensor"]
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=("pp", "dp", "tp"))
    share = mesh["dp"].get_local_rank()
    if PLAN["pipeline"] == 1:
        made = wrapped(recomputed(module.to(device)), mesh, users)
        return Whole(made, users, device, PLAN["micro_batches"]), share
    cuts = [int(cut) for cut in options.cuts.split(",")] if options.cuts else PLAN["cuts"]
    if not options.cuts and len(layers_of(module)) != PLAN["layers"]:
        refuse(
            f"the module has {len(layers_of(module))} layers, but {PLAN['layers']} were cut: give its cuts by --cuts"
        )
    stage = mesh["pp"].get_local_rank()
    pieces = {
        number: wrapped(recomputed(piece.to(device), cuts[number]), mesh, users)
        for number, piece in enumerate(pieces_of(module, cuts))
        if PLAN["homes"][number] == stage
    }
    return Piped(pieces, mesh, users, device), share


def mean_over_ranks(losses: list[float], device: torch.device) -> float:
    """The mean loss of all micro-batches of a step; ranks without the last piece bring none."""
    total = torch.tensor([sum(losses), float(len(losses))], dtype=torch.float64, device=device)
    if dist.is_initialized():
        dist.all_reduce(total)
    return float(total[0] / total[1])


def start(options: argparse.Namespace) -> torch.device:
    """The device of this process, in its process group."""
    on_gpu = options.device == "cuda" or (options.device == "auto" and torch.cuda.is_available())
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = PLAN["precision"] == "tf32"
    if not options.alone:
        ranks = PLAN["data"] * PLAN["tensor"] * PLAN["pipeline"]
        if int(os.environ.get("WORLD_SIZE", "1")) != ranks:
            refuse(f"the plan has {ranks} ranks: start as many, torchrun --nproc-per-node {ranks} on one machine")
        dist.init_process_group("nccl" if on_gpu else "gloo")
    return device


def train(options: argparse.Namespace, users: ModuleType, build: Callable[[], nn.Module], device: torch.device) -> None:
    """All steps of this rank, with their losses."""
    rank, share = rank_of(options, users, build, device)
    optimiser = optimiser_of(rank.parameters, options.lr)
    each = PLAN["micro_batch"] * PLAN["micro_batches"]
    means = []
    for step in range(options.steps):
        began = time.perf_counter()
        losses = rank.step((step * PLAN["data"] + share) * each)
        if optimiser is not None:
            optimiser.step()
            optimiser.zero_grad()
        means.append(mean_over_ranks(losses, device))
        if options.alone or dist.get_rank() == 0:
            print(f"step {step}: loss {means[-1]:.6f}, {time.perf_counter() - began:.3f} s", flush=True)
    if options.losses and (options.alone or dist.get_rank() == 0):
        options.losses.write_text(json.dumps(means))


def main() -> None:
    options = arguments()
    users, build = users_module(options.module)
    device = start(options)
    train(options, users, build, device)
    if dist.is_initialized():
        gc.collect()  # sharded parameters keep process groups: without them no thread is left when Python ends
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
