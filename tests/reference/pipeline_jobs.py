"""What ranks do in the tests of schedule files: load one into PyTorch's pipeline runtime and run a step with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

WIDTH = 8
SAMPLES_EACH = 3


def stage(number: int) -> nn.Module:
    """The same weights wherever it is built."""
    torch.manual_seed(100 + number)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())


def samples(micro_batches: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(7)
    shape = micro_batches * SAMPLES_EACH, WIDTH
    return torch.randn(shape), torch.randn(shape)


def whole_step(stages: int, micro_batches: int) -> tuple[float, dict[int, list[Any]]]:
    """Loss and gradients by stage when one process holds the whole model."""
    model = [stage(number) for number in range(stages)]
    inputs, targets = samples(micro_batches)
    loss = nn.functional.mse_loss(nn.Sequential(*model)(inputs), targets)
    loss.backward()
    return loss.item(), {number: _gradients(module) for number, module in enumerate(model)}


def pipelined_step(path: str, form: str, homes: list[int], micro_batches: int) -> tuple[float, dict[int, list[Any]]]:
    """The mean loss (0 where the last stage is elsewhere) and gradients of the stages of this rank."""
    rank = dist.get_rank()
    mine = {number: stage(number) for number, home in enumerate(homes) if home == rank}
    parts = [PipelineStage(module, number, len(homes), torch.device("cpu")) for number, module in mine.items()]
    schedule = _PipelineScheduleRuntime(parts, micro_batches, loss_fn=nn.functional.mse_loss, scale_grads=True)
    schedule._load_csv(path, form)
    inputs, targets = samples(micro_batches)
    losses: list[torch.Tensor] = []
    schedule.step(
        *((inputs,) if homes[0] == rank else ()), **({"target": targets, "losses": losses} if homes[-1] == rank else {})
    )
    mean = torch.stack(losses).mean().item() if losses else 0.0
    return mean, {number: _gradients(module) for number, module in mine.items()}


def lowered_by_torch(path: str, homes: list[int], micro_batches: int) -> list[str]:
    """The rows that PyTorch itself makes of a file of passes."""
    rank = dist.get_rank()
    mine = [number for number, home in enumerate(homes) if home == rank]
    parts = [PipelineStage(stage(number), number, len(homes), torch.device("cpu")) for number in mine]
    schedule = _PipelineScheduleRuntime(parts, micro_batches, loss_fn=nn.functional.mse_loss)
    schedule._load_csv(path, "compute_only")
    dumped = Path(f"{path}.{rank}.dumped")
    schedule._dump_csv(str(dumped), "compute_comms")
    return dumped.read_text().splitlines()


def _gradients(module: nn.Module) -> list[Any]:
    return [parameter.grad.tolist() for parameter in module.parameters() if parameter.grad is not None]
