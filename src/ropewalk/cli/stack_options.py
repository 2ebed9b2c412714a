"""Options of what a stack does whatever the split: the same words in every command that trains on many GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ropewalk.strategy import Strategy

STACK_DOES = "Software stack features"

SHARED_OVERLAP = typer.Option(
    False, "--shared-overlap/--no-shared-overlap", rich_help_panel=STACK_DOES,
    help="Compute shared experts while tokens are dispatched and combined.",
)  # fmt: skip
TP_OVERLAP = typer.Option(
    True, "--tp-overlap/--no-tp-overlap", rich_help_panel=STACK_DOES,
    help="Overlap tensor-parallel communication with GEMMs, as --stack megatron does under sequence parallelism.",
)  # fmt: skip
FP8_PARAMS = typer.Option(
    False, "--fp8-params/--no-fp8-params", rich_help_panel=STACK_DOES,
    help="Keep FP8 weights of GEMMs without a bf16 copy; under ZeRO-1 and 2 they are gathered in 8 bits.",
)  # fmt: skip

OVERLAP_PARAM_GATHER = typer.Option(
    False, "--overlap-param-gather/--no-overlap-param-gather", rich_help_panel=STACK_DOES,
    help="Under ZeRO-1 gather updated weights bucket by bucket while the next forward pass runs.",
)  # fmt: skip
OVERLAP_GRAD_REDUCE = typer.Option(
    True, "--overlap-grad-reduce/--no-overlap-grad-reduce", rich_help_panel=STACK_DOES,
    help="Overlap the gradient reduction with the last backward pass, instead of running it afterwards.",
)  # fmt: skip


@dataclass(frozen=True)
class StackOptions:
    """What is not a choice of the split, but of what runs it."""

    shared_overlap: bool
    tp_overlap: bool
    fp8_params: bool
    overlap_param_gather: bool
    overlap_grad_reduce: bool

    def usual(self) -> Strategy:
        """A strategy that runs like this, on one GPU."""
        from ropewalk.strategy import Order, Strategy

        return Strategy(
            shared_overlap=self.shared_overlap, tensor_overlap=self.tp_overlap, narrow_weights=self.fp8_params,
            gather_ahead=self.overlap_param_gather, order=Order(overlap=self.overlap_grad_reduce),
        )  # fmt: skip
