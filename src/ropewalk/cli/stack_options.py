"""Options of what a stack does whatever the split: the same words in every command that trains on many GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ropewalk.strategy import Strategy

STACK_DOES = "What the stack does"

SHARED_OVERLAP = typer.Option(
    False, "--shared-overlap/--no-shared-overlap", rich_help_panel=STACK_DOES,
    help="Compute shared experts while tokens travel to the others and back.",
)  # fmt: skip
TP_OVERLAP = typer.Option(
    True, "--tp-overlap/--no-tp-overlap", rich_help_panel=STACK_DOES,
    help="Tensor-parallel communication behind products, where --stack megatron and sequence parallelism have it.",
)  # fmt: skip
FP8_PARAMS = typer.Option(
    False, "--fp8-params/--no-fp8-params", rich_help_panel=STACK_DOES,
    help="Weights of products in FP8 have no copy in bf16, and are gathered in 8 bits under ZeRO-1 and 2.",
)  # fmt: skip


@dataclass(frozen=True)
class StackOptions:
    """What is not a choice of the split, but of what runs it."""

    shared_overlap: bool
    tp_overlap: bool
    fp8_params: bool

    def usual(self) -> Strategy:
        """A strategy that runs like this, on one GPU."""
        from ropewalk.strategy import Strategy

        return Strategy(
            shared_overlap=self.shared_overlap, tensor_overlap=self.tp_overlap, narrow_weights=self.fp8_params
        )
