"""Options of a model: the same words with the same meaning in every command that trains one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ropewalk.hardware import Cluster

MODEL = "Model"

BATCH = typer.Option(
    None,
    min=1,
    help="Samples of the whole step, over all GPUs; a usual number unless given.",
    rich_help_panel=MODEL,
)
SEQ = typer.Option(None, "--seq", "--sequence", min=1, help="Tokens of a sample.", rich_help_panel=MODEL)
DTYPE = typer.Option(
    "bf16",
    help="Precision: bf16, fp16, tf32, fp32, or products in fewer bits: fp8, fp8-delayed, mxfp8, nvfp4.",
    rich_help_panel=MODEL,
)
STACK = typer.Option(
    None,
    help="What runs a model of the zoo: eager (unless given), compiled, megatron, fsdp or fsdp2; see `ropewalk list "
    "stacks`.",
    rich_help_panel=MODEL,
)
DISPATCH = typer.Option(
    None,
    help="How tokens find their experts: nccl (unless given) or deepep; see `ropewalk list dispatchers`.",
    rich_help_panel=MODEL,
)
OPTIMISER = typer.Option("adamw", help="adamw, adamw_fused, adamw_mixed, momentum, sgd or none.", rich_help_panel=MODEL)
MICRO_BATCH = typer.Option(
    None, min=1, help="Samples of one micro-batch on one data-parallel rank.", rich_help_panel=MODEL
)


@dataclass(frozen=True)
class TrainedOptions:
    """What is trained, where updates are left out."""

    batch: int | None
    seq: int | None
    dtype: str
    stack: str | None
    dispatch: str | None

    def named(self, model: str, cluster: Cluster | None = None) -> str:
        """The model with the stack and the dispatch that were asked for, in servers of eight or on a cluster."""
        from ropewalk.workload.dispatch import DOMAIN
        from ropewalk.workload.source import dispatched, under_stack

        domain = DOMAIN if cluster is None else max(group.gpus for group in cluster.servers)
        return dispatched(under_stack(model, self.stack), self.dispatch, domain)


@dataclass(frozen=True)
class ModelOptions(TrainedOptions):
    """What is trained, and how it is updated."""

    optimiser: str
