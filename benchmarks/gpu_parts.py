"""Parts of a step by themselves: updates of AdamW, products in FP8, attention in a window or with dropout, scans.

Rows that ropewalk has a kernel for carry its kind, form and sizes; `benchmarks/against_gpu_steps.py` prices them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as fn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from gpu_clock import Run, Stopwatch

Row = dict[str, Any]
SHORT_S = 0.8
"""A part runs for so long."""
UPDATES: dict[str, dict[str, Any]] = {"adamw": {}, "adamw_fused": {"fused": True}, "adamw_loop": {"foreach": False}}
"""AdamW as PyTorch runs it when it is told nothing, fused, and in a loop over tensors."""
TENSORS = {
    "16 large": [2**26] * 16,
    "block of bert-large, 24 times": [2**20] * 96 + [2**22] * 48 + [1024] * 216 + [4096] * 24,
    "block of gpt2-xl, 48 times": [1600 * width for width in (4800, 1600, 6400, 6400)] * 48 + [1600] * 384,
    "400 small": [64] * 400,
}
"""Lists of tensors: limited by the GPU, mixed, limited by the host."""
PRODUCTS = (
    (8192, 8192, 8192), (4096, 4096, 4096), (8192, 28672, 8192), (8192, 4096, 14336), (8192, 6144, 4096),
    (4096, 2048, 7168), (4096, 7168, 2048), (16384, 1536, 5120),
)  # fmt: skip
"""Rows, columns and inner of products in FP8."""
WINDOWS = (
    (1, 32, 8, 8192, 128, 4096), (2, 64, 8, 4096, 64, 128), (1, 16, 8, 16384, 256, 1024),
)  # fmt: skip
"""Batch, heads, heads of keys, tokens, numbers of a head, window: Mistral, GPT-OSS, Gemma."""
DROPPED = ((32, 16, 384, 64, False), (8, 25, 1024, 64, True), (128, 12, 197, 64, False))
"""Batch, heads, tokens, numbers of a head, causal: attention of BERT-large, GPT-2 XL and a vision transformer."""
SCANS = ((1, 8192, 80, 64, 128, 1), (1, 8192, 128, 64, 128, 8))
"""Batch, tokens, heads, numbers of a token in a head, of a state, groups: Mamba-2 2.7B, Nemotron-H 8B."""
CHUNK = 128


def updates(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """What AdamW takes, and how long it keeps the host busy."""
    for name, sizes in {"4 small": [64] * 4}.items() if quick else TENSORS.items():
        for dtype in (torch.bfloat16, torch.float32):
            weights = [torch.nn.Parameter(torch.randn(size, device=device, dtype=dtype)) for size in sizes]
            for weight in weights:
                weight.grad = torch.randn_like(weight)
            for optimiser, told in UPDATES.items():
                step = torch.optim.AdamW(weights, lr=1e-4, **told).step
                taken = watch.sustained(step, 0.0 if quick else SHORT_S)
                yield {
                    "part": "update", "tensors": name, "count": len(sizes), "parameters": sum(sizes),
                    "precision": "bf16" if dtype == torch.bfloat16 else "tf32", "optimiser": optimiser,
                    "seconds": taken.seconds, "host_s": watch.host(step),
                }  # fmt: skip


def products(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """FP8 with one scale for a tensor, and with one for each row and column, burst and sustained."""
    for rows, columns, inner in [(64, 64, 64)] if quick else PRODUCTS:
        left = torch.randn(rows, inner, device=device).to(torch.float8_e4m3fn)
        right = torch.randn(columns, inner, device=device).to(torch.float8_e4m3fn).t()
        scales = {
            "forward": [torch.ones((), device=device)] * 2,
            "forward_rowwise": [torch.ones(rows, 1, device=device), torch.ones(1, columns, device=device)],
        }
        for form, (one, other) in scales.items():

            def run(given: tuple[torch.Tensor, ...] = (left, right, one, other)) -> torch.Tensor:
                return torch._scaled_mm(*given, out_dtype=torch.bfloat16, use_fast_accum=True)

            taken = watch.sustained(run, 0.0 if quick else 2 * SHORT_S)
            yield _kernel("fp8", "matmul", form, (1, rows, columns, inner), taken.seconds, first_s=taken.first_s)


def windows(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """Causal attention that looks back a window, as compiled flexible attention runs it."""
    backend = "eager" if quick else "inductor"
    for batch, heads, kv_heads, tokens, size, window in [(1, 4, 2, 256, 16, 128)] if quick else WINDOWS:

        def seen(b: Any, h: Any, q: Any, k: Any, window: int = window) -> Any:
            return (q >= k) & (q - k < window)

        torch.compiler.reset()
        mask = create_block_mask(seen, None, None, tokens, tokens, device=device)
        attend = torch.compile(flex_attention, dynamic=False, backend=backend)
        query, key, value = (
            torch.randn(batch, many, tokens, size, device=device, dtype=torch.bfloat16, requires_grad=not quick)
            for many in (heads, kv_heads, kv_heads)
        )

        def forward(attend: Any = attend, mask: Any = mask, given: Any = (query, key, value)) -> torch.Tensor:
            return attend(*given, block_mask=mask, enable_gqa=True)

        dims = (batch, heads, kv_heads, tokens, tokens, size, 1, window)
        for form, run in _both(forward, [query, key, value], differentiated=not quick):
            yield _kernel("bf16", "attention", form, dims, watch.sustained(run, 0.0 if quick else SHORT_S).seconds)


def dropouts(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """Attention that drops one score in ten, and the same without, in both precisions of the first steps."""
    for batch, heads, tokens, size, causal in [(1, 2, 32, 16, True)] if quick else DROPPED:
        for precision, dtype in (("bf16", torch.bfloat16), ("tf32", torch.float32)):
            given = [torch.randn(batch, heads, tokens, size, device=device, dtype=dtype) for _ in range(3)]
            given = [one.requires_grad_() for one in given]
            for dropped in (0.0, 0.1):

                def forward(given: Any = given, causal: bool = causal, dropped: float = dropped) -> torch.Tensor:
                    return fn.scaled_dot_product_attention(*given, is_causal=causal, dropout_p=dropped)

                dims = (batch, heads, heads, tokens, tokens, size, int(causal))
                for form, run in _both(forward, given, differentiated=True):
                    seconds = watch.sustained(run, 0.0 if quick else SHORT_S / 2).seconds
                    yield _kernel(precision, "attention", form, dims, seconds, dropped=dropped)


def scans(watch: Stopwatch, device: str, *, quick: bool) -> Iterator[Row]:
    """The scan of a Mamba-2 layer in chunks, as products, compiled."""
    backend = "eager" if quick else "inductor"
    for batch, tokens, heads, size, state, groups in [(1, 256, 4, 8, 16, 2)] if quick else SCANS:
        torch.compiler.reset()
        room = {"device": device, "dtype": torch.bfloat16, "requires_grad": True}
        given = [
            torch.randn(batch, tokens, heads, size, **room), -torch.rand(batch, tokens, heads, device=device),
            torch.randn(batch, tokens, groups, state, **room), torch.randn(batch, tokens, groups, state, **room),
        ]  # fmt: skip
        scanned = torch.compile(chunked_scan, dynamic=False, backend=backend)

        def forward(scanned: Any = scanned, given: Any = given) -> torch.Tensor:
            return scanned(*given)

        dims = (batch, tokens, heads, size, state, groups, CHUNK)
        for form, run in _both(forward, [one for one in given if one.requires_grad], differentiated=True):
            yield _kernel("bf16", "scan", form, dims, watch.sustained(run, 0.0 if quick else SHORT_S).seconds)


def chunked_scan(
    x: torch.Tensor, decay: torch.Tensor, writes: torch.Tensor, reads: torch.Tensor, chunk: int = CHUNK
) -> torch.Tensor:
    """y_t = reads_t · s_t with s_t = exp(decay_t) s_{t-1} + writes_t x_t: attention without a softmax inside of a
    chunk, a recurrence between chunks (Dao and Gu, 2024)."""
    batch, tokens, heads, size = x.shape
    groups, state, many = writes.shape[2], writes.shape[3], tokens // chunk
    x = x.view(batch, many, chunk, groups, heads // groups, size)
    writes, reads = (part.view(batch, many, chunk, groups, state) for part in (writes, reads))
    total = decay.float().view(batch, many, chunk, groups, heads // groups).cumsum(2)
    kept = _kept(total)
    seen = torch.einsum("bcqgn,bckgn->bcgqk", reads, writes)
    inside = torch.einsum("bcgqk,bcqkgh,bckghp->bcqghp", seen, kept.to(x.dtype), x)
    left = torch.exp(total[:, :, -1:] - total).to(x.dtype)
    written = torch.einsum("bckgn,bckgh,bckghp->bcghpn", writes, left, x).float()
    ends = total[:, :, -1].cumsum(1)
    between = _between(ends)
    states = torch.einsum("bcdgh,bdghpn->bcghpn", between, written).to(x.dtype)
    outside = torch.einsum("bcqgn,bcqgh,bcghpn->bcqghp", reads, torch.exp(total).to(x.dtype), states)
    return (inside + outside).reshape(batch, tokens, heads, size)


def _kept(total: torch.Tensor) -> torch.Tensor:
    """What is left of what token k wrote when token q of the same chunk reads it; nothing of what comes later."""
    chunk = total.shape[2]
    later = torch.ones(chunk, chunk, dtype=torch.bool, device=total.device).triu(1)[..., None, None]
    return torch.exp((total.unsqueeze(3) - total.unsqueeze(2)).masked_fill(later, float("-inf")))


def _between(ends: torch.Tensor) -> torch.Tensor:
    """What is left of what chunk d wrote when chunk c begins."""
    chunks = ends.shape[1]
    begun = torch.cat((torch.zeros_like(ends[:, :1]), ends[:, :-1]), 1)
    later = torch.ones(chunks, chunks, dtype=torch.bool, device=ends.device).triu(0)[..., None, None]
    return torch.exp((begun.unsqueeze(2) - ends.unsqueeze(1)).masked_fill(later, float("-inf")))


def _both(forward: Run, inputs: list[torch.Tensor], *, differentiated: bool) -> Iterator[tuple[str, Run]]:
    """The call, and the gradient of its result."""

    def alone() -> Any:
        with torch.no_grad():
            return forward()

    yield "forward", alone
    if differentiated:
        result = forward()
        grad = torch.randn_like(result)
        yield "backward", lambda: torch.autograd.grad(result, inputs, grad, retain_graph=True)


def _kernel(precision: str, kind: str, form: str, dims: tuple[int, ...], seconds: float, **more: float) -> Row:
    return {
        "part": "kernel",
        "precision": precision,
        "kind": kind,
        "form": form,
        "dims": dims,
        "seconds": seconds,
    } | more


PARTS: dict[str, Callable[..., Iterator[Row]]] = {
    "updates": updates, "windows": windows, "scans": scans, "products": products, "dropouts": dropouts,
}  # fmt: skip
