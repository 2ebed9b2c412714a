"""CUDA graphs: what of a model is launched at once, so that the host has next to nothing to do for it.

Megatron-Core captures single parts of every layer (`--cuda-graph-modules attn moe_router …`) or whole iterations.
Kernels stay the same ones. What a graph cannot hold is whatever depends on numbers that only the GPU knows, such as how
many tokens an expert gets, unless experts run by fused kernels that find out by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ropewalk.choices import Choice, Choices
from ropewalk.errors import WorkloadError
from ropewalk.workload.operator import Operator

ATTENTION, SCAN, ROUTER, FEED_FORWARD, STEP = "attention", "scan", "router", "mlp", "step"
GRAPHS = Choices(
    "part of a model for CUDA graphs",
    (
        Choice(ATTENTION, ATTENTION, "attention of every layer, with its norm and its projections"),
        Choice(SCAN, SCAN, "Mamba layers"),
        Choice(ROUTER, ROUTER, "routers of experts"),
        Choice(FEED_FORWARD, FEED_FORWARD, "feed-forward layers without experts"),
        Choice(STEP, STEP, "whole steps"),
    ),
    error=WorkloadError,
)
"""What may be launched as a graph, by name."""


def graphs_named(listed: str) -> frozenset[str]:
    """Parts that a model's option names, joined by plus signs.

    >>> sorted(graphs_named("attention+router")), graphs_named("")
    (['attention', 'router'], frozenset())
    """
    return frozenset(GRAPHS.named(part).name for part in listed.split("+")) if listed else frozenset()


def launched_at_once(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The same operators as kernels of a graph."""
    return tuple(replace(operator, captured=True) for operator in operators)
