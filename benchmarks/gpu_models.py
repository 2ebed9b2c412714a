"""Language models that benchmarks of a GPU train: transformers' own, a lean Llama, blocks of Transformer Engine.

The lean Llama is written as fused stacks have it: blocks under `torch.compile`, attention by a library, FP8 with one
scale for a tensor. `merged` makes queries, keys and values, and both halves of the gated layer, in one product each
(Megatron-Core); without it every weight has a product of its own (torchtitan). Names are those of ropewalk's zoo.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as fn
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

Loss = Callable[[], torch.Tensor]
Room = dict[str, Any]
"""Device and element type of tensors."""
FUSED_ATTENTION = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
EIGHT_BITS, GRADIENTS = torch.float8_e4m3fn, torch.float8_e5m2


@dataclass(frozen=True)
class Shape:
    """A Llama."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    words: int

    @property
    def size(self) -> int:
        return self.hidden // self.heads


LLAMAS = {
    "llama-7b": (4096, 11008, 32, 32, 32000),
    "llama2-13b": (5120, 13824, 40, 40, 32000),
    "llama-30b": (6656, 17920, 52, 52, 32000),
    "llama3-8b": (4096, 14336, 32, 8, 128256),
    "llama3-70b": (8192, 28672, 64, 8, 128256),
    "llama-3.2-1b": (2048, 8192, 32, 8, 128256),
    "llama-3.2-3b": (3072, 8192, 24, 8, 128256),
    "tiny": (32, 64, 4, 2, 97),
}
TIED = ("llama-3.2-1b", "llama-3.2-3b")
"""Llamas whose head over words is their embedding; a lean one has both."""
QWEN3 = {"qwen3-8b": (4096, 12288, 32), "qwen3-14b": (5120, 17408, 40)}
"""Width, neurons, heads."""


def split_name(name: str) -> tuple[str, int]:
    """The family of a model and its layers: `llama-7b:layers=8`."""
    family, _, layers = name.partition(":layers=")
    return family, int(layers) if layers else 0


def shape_of(name: str) -> Shape:
    family, layers = split_name(name)
    return Shape(layers, *LLAMAS[family])


def transformers_config(name: str) -> tuple[Any, str]:
    """The configuration of one of transformers' models, and how it is trained."""
    import transformers as T

    family, layers = split_name(name)
    if family in LLAMAS:
        shape = shape_of(name)
        return T.LlamaConfig(
            vocab_size=shape.words, hidden_size=shape.hidden, intermediate_size=shape.ffn, num_hidden_layers=layers,
            num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads, max_position_embeddings=8192,
            tie_word_embeddings=family in TIED,
        ), "causal"  # fmt: skip
    if family == "bert-base":
        return T.BertConfig(num_hidden_layers=layers or 12), "masked"
    if family == "bert-large":
        return T.BertConfig(
            hidden_size=1024, num_hidden_layers=layers or 24, num_attention_heads=16, intermediate_size=4096
        ), "masked"
    if family == "qwen3-30b-a3b":
        return T.Qwen3MoeConfig(
            hidden_size=2048, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=4, head_dim=128,
            num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, vocab_size=151936,
        ), "causal"  # fmt: skip
    if family in QWEN3:
        width, neurons, heads = QWEN3[family]
        return T.Qwen3Config(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=8, head_dim=128,
            intermediate_size=neurons, vocab_size=151936, tie_word_embeddings=False,
        ), "causal"  # fmt: skip
    if family == "qwen2.5-7b":
        return T.Qwen2Config(
            hidden_size=3584, num_hidden_layers=layers, num_attention_heads=28, num_key_value_heads=4,
            intermediate_size=18944, vocab_size=152064, max_position_embeddings=32768, tie_word_embeddings=False,
        ), "causal"  # fmt: skip
    causal = {
        "gpt2-medium": lambda: T.GPT2Config(n_embd=1024, n_layer=layers or 24, n_head=16),
        "gpt2-large": lambda: T.GPT2Config(n_embd=1280, n_layer=layers or 36, n_head=20),
        "gpt2-xl": lambda: T.GPT2Config(n_embd=1600, n_layer=layers or 48, n_head=25),
        "gpt3-1.3b": lambda: T.GPT2Config(n_embd=2048, n_layer=layers or 24, n_head=16, n_positions=2048),
        "mixtral-8x7b": lambda: T.MixtralConfig(num_hidden_layers=layers),
        "mixtral-8x22b": lambda: T.MixtralConfig(
            hidden_size=6144, intermediate_size=16384, num_attention_heads=48, vocab_size=32768,
            num_hidden_layers=layers,
        ),
    }  # fmt: skip
    return causal[family](), "causal"


def text_model(
    config: Any, batch: int, sequence: int, dtype: torch.dtype, kind: str = "causal"
) -> tuple[nn.Module, Loss]:
    """One of transformers' models on the GPU, and its loss on random words."""
    import transformers

    auto = {"causal": transformers.AutoModelForCausalLM, "masked": transformers.AutoModelForMaskedLM}[kind]
    with torch.device("cuda"):
        torch.set_default_dtype(dtype)
        model = auto.from_config(config, dtype=dtype).train()
        torch.set_default_dtype(torch.float32)
    words = torch.randint(config.vocab_size, (batch, sequence), device="cuda")
    return (
        model,
        lambda: model(input_ids=words, labels=words, **({"use_cache": False} if kind == "causal" else {})).loss,
    )


class Narrow(torch.autograd.Function):
    """A product in FP8, both operands scaled as they are made; gradients have more exponent and less mantissa."""

    @staticmethod
    def narrowed(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        largest = torch.finfo(dtype).max
        scale = largest / x.abs().amax().float().clamp(1e-12)
        return (x.float() * scale).clamp(-largest, largest).to(dtype), scale.reciprocal()

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        (x8, x_scale), (w8, w_scale) = Narrow.narrowed(x, EIGHT_BITS), Narrow.narrowed(weight, EIGHT_BITS)
        ctx.save_for_backward(x8.t().contiguous(), x_scale, w8.t().contiguous(), w_scale)
        return torch._scaled_mm(x8, w8.t(), x_scale, w_scale, out_dtype=torch.bfloat16, use_fast_accum=True)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x8, x_scale, w8, w_scale = ctx.saved_tensors
        g8, g_scale = Narrow.narrowed(grad, GRADIENTS)
        exact = {"out_dtype": torch.bfloat16, "use_fast_accum": False}
        to_input = torch._scaled_mm(g8, w8.t(), g_scale, w_scale, **exact)
        return to_input, torch._scaled_mm(g8.t().contiguous(), x8.t(), g_scale, x_scale, **exact)


class Products(nn.Module):
    """Linear layers without biases that read the same input, as one product or as one each."""

    def __init__(self, inputs: int, outputs: tuple[int, ...], merged: bool, fp8: bool, room: Room) -> None:
        super().__init__()
        self.outputs, self.fp8 = outputs, fp8
        widths = (sum(outputs),) if merged else outputs
        self.weights = nn.ParameterList(0.02 * torch.randn(width, inputs, **room) for width in widths)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = [self.product(x, weight) for weight in self.weights]
        return tuple(made[0].split(self.outputs, -1)) if len(made) < len(self.outputs) else tuple(made)

    def product(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if not self.fp8:
            return fn.linear(x, weight)
        return Narrow.apply(x.reshape(-1, x.shape[-1]), weight).view(*x.shape[:-1], -1)


class Block(nn.Module):
    """Attention and a gated layer, each behind a root mean square norm and beside a shortcut."""

    def __init__(self, shape: Shape, merged: bool, fp8: bool, room: Room) -> None:
        super().__init__()
        self.shape = shape
        kv = shape.kv_heads * shape.size
        self.norm, self.last = (nn.RMSNorm(shape.hidden, **room) for _ in range(2))
        self.heads = Products(shape.hidden, (shape.hidden, kv, kv), merged, fp8, room)
        self.joined = Products(shape.hidden, (shape.hidden,), merged, fp8, room)
        self.up = Products(shape.hidden, (shape.ffn, shape.ffn), merged, fp8, room)
        self.down = Products(shape.ffn, (shape.hidden,), merged, fp8, room)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        split = [part.view(batch, length, -1, self.shape.size) for part in self.heads(self.norm(x))]
        query, key = (_turned(part, cosine, sine).transpose(1, 2) for part in split[:2])
        with sdpa_kernel(FUSED_ATTENTION) if x.is_cuda else nullcontext():
            met = fn.scaled_dot_product_attention(
                query, key, split[2].transpose(1, 2), is_causal=True, enable_gqa=self.shape.kv_heads != self.shape.heads
            )
        x = x + self.joined(met.transpose(1, 2).reshape(batch, length, hidden))[0]
        gate, neurons = self.up(self.last(x))
        return x + self.down(fn.silu(gate) * neurons)[0]


def _turned(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, -1)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), -1)


class LeanLlama(nn.Module):
    """A Llama of blocks that are handed in, each compiled by itself; so is the loss."""

    def __init__(self, shape: Shape, blocks: list[nn.Module], backend: str, room: Room) -> None:
        super().__init__()
        self.size = shape.size
        self.words = nn.Embedding(shape.words, shape.hidden, **room)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(shape.hidden, **room)
        self.head = nn.Linear(shape.hidden, shape.words, bias=False, **room)
        self.judged = torch.compile(self._loss, backend=backend)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words)
        places = torch.arange(words.shape[1], device=x.device)[:, None]
        angles = places * 1e4 ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
        cosine, sine = (table.to(x.dtype)[:, None, :] for table in (angles.cos(), angles.sin()))
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.judged(x, words)

    def _loss(self, x: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        return fn.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), words.flatten())


def lean_llama(
    name: str, device: str, backend: str, dtype: torch.dtype = torch.bfloat16, *, merged: bool, fp8: bool = False
) -> LeanLlama:
    shape, room = shape_of(name), {"device": device, "dtype": dtype}
    blocks: list[nn.Module] = [Block(shape, merged, fp8, room) for _ in range(shape.layers)]
    for block in blocks:
        block.compile(backend=backend)
    return LeanLlama(shape, blocks, backend, room)


class EngineBlock(nn.Module):
    """A block of Transformer Engine, in bf16 or in FP8 with one scale for a tensor, found as it is made."""

    def __init__(self, shape: Shape, length: int, fp8: bool) -> None:
        super().__init__()
        import transformer_engine.pytorch as te
        from transformer_engine.common.recipe import Float8CurrentScaling

        self.block = te.TransformerLayer(
            shape.hidden, shape.ffn, shape.heads, num_gqa_groups=shape.kv_heads, hidden_dropout=0.0,
            attention_dropout=0.0, normalization="RMSNorm", activation="swiglu", bias=False, fuse_qkv_params=True,
            attn_input_format="bshd", self_attn_mask_type="causal", params_dtype=torch.bfloat16,
        )  # fmt: skip
        self.angles = te.attention.RotaryPositionEmbedding(shape.size)(length).cuda()
        self.narrow = lambda: te.fp8_autocast(enabled=fp8, fp8_recipe=Float8CurrentScaling())

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        with self.narrow():
            return self.block(x, rotary_pos_emb=self.angles)


def engine_llama(name: str, length: int, fp8: bool) -> LeanLlama:
    shape = shape_of(name)
    blocks: list[nn.Module] = [EngineBlock(shape, length, fp8) for _ in range(shape.layers)]
    return LeanLlama(shape, blocks, "inductor", {"device": "cuda", "dtype": torch.bfloat16})
