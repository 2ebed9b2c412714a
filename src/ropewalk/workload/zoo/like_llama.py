"""Sizes of models whose blocks are Llama's with windows, norms or biases of their own: Mistral, Qwen, Gemma.

Jiang et al., Mistral 7B (2023); Yang et al., Qwen2.5 (2024) and Qwen3 (2025) Technical Reports; Gemma 2 (2024) and
Gemma 3 (2025) reports, of Gemma 3 the language model alone. Sizes are those of the published configurations.
"""

from __future__ import annotations

from ropewalk.workload.zoo.shape import Transformer

QWEN_WORDS, MORE_QWEN_WORDS, GEMMA_WORDS = 151936, 152064, 256000


def _qwen3(layers: int, hidden: int, heads: int, ffn: int, *, tied: bool = False) -> Transformer:
    return Transformer(layers, hidden, heads, QWEN_WORDS, 4096, 8, ffn, 128, tied=tied, qk_norm=True)


def _qwen2(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int) -> Transformer:
    return Transformer(layers, hidden, heads, MORE_QWEN_WORDS, 4096, kv_heads, ffn, tied=False, qkv_bias=True)


def _gemma2(layers: int, hidden: int, heads: int, ffn: int, size: int) -> Transformer:
    return Transformer(
        layers, hidden, heads, GEMMA_WORDS, 8192, heads // 2, ffn, size, window=4096, whole_every=2, norms_behind=True,
        softcap=True,
    )  # fmt: skip


def _gemma3(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, size: int, words: int) -> Transformer:
    return Transformer(
        layers, hidden, heads, words, 8192, kv_heads, ffn, size, window=512 if layers == 26 else 1024, whole_every=6,
        norms_behind=True, qk_norm=True,
    )  # fmt: skip


SHAPES = {
    "Mistral language model": {
        "mistral-7b": Transformer(32, 4096, 32, 32000, 8192, 8, 14336, tied=False, window=4096),
    },
    "Qwen3 language model": {
        "qwen3-0.6b": _qwen3(28, 1024, 16, 3072, tied=True),
        "qwen3-1.7b": _qwen3(28, 2048, 16, 6144, tied=True),
        "qwen3-4b": _qwen3(36, 2560, 32, 9728, tied=True),
        "qwen3-8b": _qwen3(36, 4096, 32, 12288),
        "qwen3-14b": _qwen3(40, 5120, 40, 17408),
        "qwen3-32b": _qwen3(64, 5120, 64, 25600),
    },
    "Qwen2.5 language model": {
        "qwen2.5-7b": _qwen2(28, 3584, 28, 4, 18944),
        "qwen2.5-14b": _qwen2(48, 5120, 40, 8, 13824),
        "qwen2.5-32b": _qwen2(64, 5120, 40, 8, 27648),
        "qwen2.5-72b": _qwen2(80, 8192, 64, 8, 29568),
    },
    "Gemma language model": {
        "gemma2-2b": _gemma2(26, 2304, 8, 9216, 256),
        "gemma2-9b": _gemma2(42, 3584, 16, 14336, 256),
        "gemma2-27b": _gemma2(46, 4608, 32, 36864, 128),
        "gemma3-1b": _gemma3(26, 1152, 4, 1, 6912, 256, 262144),
        "gemma3-4b": _gemma3(34, 2560, 8, 4, 10240, 256, 262208),
        "gemma3-12b": _gemma3(48, 3840, 16, 8, 15360, 256, 262208),
        "gemma3-27b": _gemma3(62, 5376, 32, 16, 21504, 128, 262208),
    },
}
"""By what they are, their names and sizes."""
