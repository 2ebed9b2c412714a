"""Blocks whose sub-layers stand side by side: one norm, one sum over tensor ranks, the arithmetic of both."""

from __future__ import annotations

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.zoo import build


def meetings(name: str, meeting: Meeting) -> int:
    block = build(name, 1, 64).layers[1]
    return sum(isinstance(op, Exchange) and op.meeting is meeting for op in block.operators)


@pytest.mark.parametrize("meeting", [Meeting.ENTER, Meeting.LEAVE])
def test_tensor_ranks_meet_half_as_often(meeting: Meeting) -> None:
    assert (meetings("falcon-7b", meeting), meetings("llama-7b", meeting)) == (1, 2)


def test_a_token_is_multiplied_with_every_weight_of_both_sub_layers() -> None:
    kernels = [kernel for op in build("palm-8b", 1, 64).layers[1].operators for kernel in op.forward()]
    products = sum(kernel.flops for kernel in kernels if kernel.kind == "matmul")
    assert products == 2 * 64 * (4096 * (4096 + 512 + 4096) + 3 * 4096 * 16384)


def test_megatron_has_no_such_blocks() -> None:
    with pytest.raises(WorkloadError, match="falcon-40b: stack=megatron does not run it: give eager or compiled"):
        build("falcon-40b:stack=megatron", 1)
