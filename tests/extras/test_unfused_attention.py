"""What PyTorch keeps of attention that it cannot fuse, against what ropewalk counts."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk.workload.attention import FusedAttention

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

pytestmark = pytest.mark.extras

SAMPLES, HEADS, TOKENS, SIZE = 2, 4, 64, 16
ROW_BYTES = 9
"""The largest score of a row and the sum of its exponentials, in float32, and whether it hides all."""


def met(query: Any, key: Any, value: Any, dropped: float) -> Any:
    """Attention of transformers' BERT without padding, as it is when it is compiled."""
    split = [(1.5 * one).view(SAMPLES, TOKENS, HEADS, SIZE).transpose(1, 2) for one in (query, key, value)]
    seen = (torch.arange(TOKENS)[None, None, :, None] >= 0).expand(SAMPLES, 1, TOKENS, TOKENS)
    made = torch.nn.functional.scaled_dot_product_attention(*split, attn_mask=seen, dropout_p=dropped)
    return made.transpose(1, 2).contiguous().view(SAMPLES, TOKENS, HEADS * SIZE)


@pytest.mark.parametrize("dropped", [0.0, 0.1])
def test_pytorch_keeps_scores_weights_and_operands_in_float32(dropped: float) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    operands = [torch.randn(SAMPLES, TOKENS, HEADS * SIZE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    torch.compiler.reset()
    with sdpa_kernel(SDPBackend.MATH):
        made = torch.compile(met, backend="aot_eager_decomp_partition")(*operands, dropped)
    kept = sum(one.numel() * one.element_size() for one in made.grad_fn.saved_tensors)
    counted = FusedAttention(SAMPLES, HEADS, HEADS, TOKENS, TOKENS, SIZE, dropped=dropped > 0, unfused=True)
    rows = SAMPLES * HEADS * TOKENS * ROW_BYTES + TOKENS if dropped else 0
    assert kept == counted.saved_bytes() + rows
