"""Options that say in which order gradients are reduced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import typer

from ropewalk import units

if TYPE_CHECKING:
    from ropewalk.strategy import Order

ORDER_PANEL = "Gradient communication"

ORDER = typer.Option("buckets", help="{orders.described}.", rich_help_panel=ORDER_PANEL)
BUCKET = typer.Option(
    None, help="Bucket size of gradient all-reduces; 0B: one per layer.  [default: 25MiB, as in Megatron]",
    rich_help_panel=ORDER_PANEL,
)  # fmt: skip
PARTITION = typer.Option(None, help="Split buckets into pieces of this size, such as 4MB.", rich_help_panel=ORDER_PANEL)
CREDIT = typer.Option(
    None, help="Bytes in flight (ByteScheduler's credit), or none for no limit.  [default: one launch]",
    rich_help_panel=ORDER_PANEL,
)  # fmt: skip
STREAM = typer.Option(
    None, "--stream/--no-stream", help="Deliver the layers of a bucket one by one.",
    rich_help_panel=ORDER_PANEL,
)  # fmt: skip
ACROSS_STEPS = typer.Option(
    None, "--across-steps/--no-across-steps", help="Layers of the next step wait for their own gradients only.",
    rich_help_panel=ORDER_PANEL,
)  # fmt: skip


@dataclass(frozen=True)
class OrderOptions:
    """In which groups, pieces and order gradients are reduced."""

    order: str
    bucket: str | None
    partition: str | None
    credit: str | None
    stream: bool | None
    across_steps: bool | None

    @property
    def given(self) -> bool:
        """Was an order asked for?"""
        told = (self.bucket, self.partition, self.credit, self.stream, self.across_steps)
        return self.order != ORDER.default or any(one is not None for one in told)

    def read(self) -> Order:
        """The order of that name, with what was given besides."""
        from ropewalk.strategy.order import ORDERS

        found = ORDERS.named(self.order).make
        if self.bucket is not None:
            found = replace(found, fusion=float(units.size(self.bucket)))
        if self.partition is not None:
            found = replace(found, partition_bytes=float(units.size(self.partition)))
        if self.credit is not None:
            found = replace(found, credit_bytes=inf if self.credit == "none" else float(units.size(self.credit)))
        if self.stream is not None:
            found = replace(found, arrival="streamed" if self.stream else "whole")
        if self.across_steps is not None:
            found = replace(found, across_steps=self.across_steps)
        return found
