"""Stacks: the software that runs a model, which decides the kernels that a layer becomes.

The same Llama block is forty launches as transformers' code runs it and a dozen in Megatron-Core. What a stack fuses
is said here once; the builders of the zoo ask for it where they make operators. How a stack communicates is said here
too (its buckets, the copies around FSDP's collectives), and asked for where a step is lowered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ropewalk.choices import Choice, Choices
from ropewalk.errors import WorkloadError
from ropewalk.workload.workload import Workload


@dataclass(frozen=True)
class Stack:
    """What a stack makes of a block."""

    fused: bool = False
    """Norms, rotations, gates and the loss are one kernel each; otherwise they are the chains of small kernels that the
    model's code is made of."""
    merged: bool = False
    """Queries, keys and values come from one product, and so do both halves of a gated layer; the bias of a linear
    layer is added by the kernel behind it."""
    own_code: bool = False
    """The model is the stack's own code, not transformers'."""
    masked: bool = False
    """Causal attention gets a mask in memory and skips nothing, as transformers' code does when it is compiled."""
    pads_products: bool = False
    """Products of odd widths are padded to widths at which memory is read in 16-byte pieces, as torch.compile does."""
    plain_loss: bool = False
    """The loss of a language model is not fused after all: PyTorch's on logits made float32, or the steps of
    Megatron-LM's own."""
    accumulates: bool = False
    """Gradients of weights are kept in float32, and added to as the products that make them end."""
    transformer_engine: bool = False
    """Linear layers and experts are run by Transformer Engine: where they multiply in 8 bits or fewer, what they read
    again is kept and gathered in as many; tensor-parallel communication overlaps them under sequence parallelism."""
    copies_flat: bool = False
    """Weights that are shared out (ZeRO-3) are copied from the buffer of the all-gather into tensors of their own, and
    gradients into the buffer of the reduce-scatter."""
    divides_flat: bool = False
    """Of these copies, only those of gradients, which are cast and divided as well: PyTorch's first FSDP."""
    counts_channels: bool = False
    """Collectives that run beside kernels take multiprocessors from them."""
    collectives: str = "ring"
    """What runs collectives, unless they are named: rings with the costs of eager PyTorch, or `nccl`, NCCL's choice."""
    gradient_bytes: float | None = None
    """Bytes of a gradient, added up and sent, unless told; None: as many as of a weight."""
    bucket_gradients: float = 0.0
    """Gradients that are collected before they are reduced; 0: as PyTorch does."""
    bucket_per_rank: float = 0.0
    """The same for each rank that they are reduced over, where that is more."""
    interpreted: float = 1.0
    """Part of the time that transformers' code takes between its calls."""


FSDP = "transformers on text, but not XLNet, megatron-*, parallel blocks"

STACKS = Choices(
    "stack",
    (
        Choice("eager", Stack(), "PyTorch as the model's own code calls it"),
        Choice(
            "compiled", Stack(fused=True, masked=True, pads_products=True, counts_channels=True, interpreted=0.25),
            "the same code under torch.compile", where="transformers on text, but not MPT, XLNet, megatron-*",
        ),
        Choice(
            "megatron",
            Stack(
                fused=True, merged=True, own_code=True, accumulates=True, transformer_engine=True,
                counts_channels=True, collectives="nccl", gradient_bytes=4.0, bucket_gradients=40e6,
                bucket_per_rank=1e6, interpreted=0.25
            ),
            "Megatron-Core with Transformer Engine", where="transformers on text, but not XLNet, parallel blocks",
        ),
        Choice(
            "fsdp", Stack(copies_flat=True, divides_flat=True, counts_channels=True),
            "the model's own code, weights shared out by PyTorch's first FSDP, as in 2023", where=FSDP,
        ),
        Choice(
            "fsdp2",
            Stack(
                fused=True, own_code=True, copies_flat=True, counts_channels=True, collectives="nccl", interpreted=0.25
            ),
            "torchtitan: blocks under torch.compile, weights shared out by PyTorch's FSDP2", where=FSDP,
        ),
    ),
    error=WorkloadError,
)  # fmt: skip
"""Every stack, by name."""
EAGER = STACKS["eager"].make


def shares_out(stack: Stack) -> bool:
    """Does what a layer costs depend on whether its weights are shared out?"""
    return stack.copies_flat or stack.counts_channels


def stack_in(text: str) -> Stack:
    """The stack that the name of a model asks for.

    >>> stack_in("llama-7b:layers=4,stack=megatron").gradient_bytes, stack_in("net.onnx").gradient_bytes
    (4.0, None)
    """
    told = re.search(r"[:,]stack=([^,]+)", text)
    return STACKS.named(told.group(1)).make if told else EAGER


def stack_of(workload: Workload) -> Stack:
    """The stack that runs a workload; files do not name one, and are taken as they are."""
    return STACKS[workload.stack].make if workload.stack else EAGER
