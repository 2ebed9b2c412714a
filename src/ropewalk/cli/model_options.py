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
    help="Global batch size in samples.  [default: common for the model]",
    rich_help_panel=MODEL,
)
SEQ = typer.Option(None, "--seq", "--sequence", min=1, help="Sequence length in tokens.", rich_help_panel=MODEL)
DTYPE = typer.Option(
    "bf16",
    "--dtype",
    "--precision",
    help="Precision: bf16, fp16, tf32, fp32, or low-precision GEMMs: fp8, fp8-delayed, fp8-block, mxfp8, nvfp4.",
    rich_help_panel=MODEL,
)
STACK = typer.Option(
    None,
    help="Software stack for models of the zoo: eager, compiled, megatron, fsdp or fsdp2; see `ropewalk list stacks`. "
    " [default: eager]",
    rich_help_panel=MODEL,
)
DISPATCH = typer.Option(
    None,
    help="Token dispatcher of experts: nccl, deepep or hybridep; see `ropewalk list dispatchers`.  [default: nccl]",
    rich_help_panel=MODEL,
)
OPTIMISER = typer.Option(
    "adamw", rich_help_panel=MODEL,
    help="Optimiser: adamw, adamw_fused, adamw_mixed, adamw_cpu (state and update on the host), momentum, sgd or none.",
)  # fmt: skip
MICRO_BATCH = typer.Option(
    None, min=1, help="Micro-batch size in samples per data-parallel rank.", rich_help_panel=MODEL
)


@dataclass(frozen=True)
class ModelOptions:
    """What is trained, and how it is updated."""

    batch: int | None
    seq: int | None
    dtype: str
    stack: str | None
    dispatch: str | None
    optimiser: str

    def named(self, model: str, cluster: Cluster | None = None) -> str:
        """The model with the stack and the dispatch that were asked for, in servers of eight or on a cluster."""
        from ropewalk.workload.dispatch import DOMAIN
        from ropewalk.workload.source import dispatched, under_stack

        domain = DOMAIN if cluster is None else max(group.gpus for group in cluster.servers)
        return dispatched(under_stack(model, self.stack), self.dispatch, domain)
