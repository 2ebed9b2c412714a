"""Whole training steps on the GPU at hand, as PyTorch runs them: forward, forward and backward, step.

Models come from torchvision and transformers where those have them, in training mode with their own defaults; the
optimiser is AdamW as PyTorch runs it unless told otherwise. bf16 converts the model; tf32 keeps float32 tensors and
lets matrix products round to TF32.

    python benchmarks/gpu_steps.py steps.csv [--profile profiles.json]
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn
from torch import nn

from gpu_models import Loss, text_model


def image_model(name: str, batch: int, side: int, dtype: torch.dtype) -> tuple[nn.Module, Loss]:
    import torchvision

    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    model = getattr(torchvision.models, name)(weights=None, **options).to("cuda", dtype).train()
    images = torch.randn(batch, 3, side, side, device="cuda", dtype=dtype)
    labels = torch.randint(1000, (batch,), device="cuda")
    return model, lambda: fn.cross_entropy(model(images), labels)


class Dlrm(nn.Module):
    """The recommendation model of Naumov et al. (2019): two stacks of layers, tables, dot products between features."""

    def __init__(self, tables: int, rows: int, width: int, bottom: list[int], top: list[int]) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = stack(bottom)
        features = tables + 1
        self.top = stack([width + features * (features - 1) // 2, *top], last=True)
        low = torch.tril_indices(features, features, -1)
        self.register_buffer("low", low)

    def forward(self, dense: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        each = torch.stack([x, *(table(index[i]) for i, table in enumerate(self.tables))], 1)
        products = torch.bmm(each, each.mT)[:, self.low[0], self.low[1]]
        return self.top(torch.cat([x, products], 1))


def stack(widths: list[int], last: bool = False) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        layers += [nn.Linear(a, b), nn.Sigmoid() if last and i == len(widths) - 2 else nn.ReLU()]
    return nn.Sequential(*layers)


def recommendation(
    batch: int, dtype: torch.dtype, tables: int = 26, rows: int = 100_000, width: int = 128, lookups: int = 1
) -> tuple[nn.Module, Loss]:
    model = Dlrm(tables, rows, width, [13, 512, 256, width], [1024, 1024, 512, 256, 1]).to("cuda", dtype)
    dense = torch.randn(batch, 13, device="cuda", dtype=dtype)
    index = torch.randint(rows, (tables, batch, lookups), device="cuda")
    labels = torch.rand(batch, 1, device="cuda", dtype=dtype)
    return model, lambda: fn.binary_cross_entropy(model(dense, index), labels)


def cases(transformers: Any) -> list[tuple[str, int, int, Callable[[torch.dtype], tuple[nn.Module, Loss]]]]:
    T = transformers
    gpt2 = {
        "gpt2": T.GPT2Config(),
        "gpt2-medium": T.GPT2Config(n_embd=1024, n_layer=24, n_head=16),
        "gpt2-large": T.GPT2Config(n_embd=1280, n_layer=36, n_head=20),
        "gpt2-xl": T.GPT2Config(n_embd=1600, n_layer=48, n_head=25),
    }
    bert = {
        "bert-base": T.BertConfig(),
        "bert-large": T.BertConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        ),
    }
    llama = {
        "llama-7b": T.LlamaConfig(),
        "llama-3.2-1b": T.LlamaConfig(
            vocab_size=128256,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            tie_word_embeddings=True,
        ),
        "llama-3-8b": T.LlamaConfig(
            vocab_size=128256,
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
        ),
    }
    moe = {
        "mixtral-small": T.MixtralConfig(
            hidden_size=1024,
            intermediate_size=3584,
            num_hidden_layers=8,
            num_attention_heads=16,
            num_key_value_heads=8,
            vocab_size=32000,
        ),
        "mixtral-2layer": T.MixtralConfig(num_hidden_layers=2),
    }
    found: list[Any] = []
    for name, side, batches in (
        ("alexnet", 224, (32, 64, 128, 256, 512)),
        ("vgg16", 224, (16, 32, 64)),
        ("vgg19", 224, (32,)),
        ("resnet50", 224, (8, 32, 64, 96, 128, 256)),
        ("resnet101", 224, (32, 64)),
        ("resnet152", 224, (64,)),
        ("resnet18", 224, (64,)),
        ("inception_v3", 299, (32, 64)),
        ("vit_b_16", 224, (16, 64, 128)),
        ("vit_l_16", 224, (32,)),
    ):
        found += [(name, b, 0, lambda d, name=name, b=b, side=side: image_model(name, b, side, d)) for b in batches]
    for name, shapes in (
        ("gpt2", ((1, 1024), (4, 1024), (8, 1024), (16, 512))),
        ("gpt2-medium", ((4, 1024), (16, 256))),
        ("gpt2-large", ((4, 1024),)),
        ("gpt2-xl", ((4, 1024),)),
    ):
        found += [(name, b, s, lambda d, name=name, b=b, s=s: text_model(gpt2[name], b, s, d)) for b, s in shapes]
    for name, shapes in (
        ("bert-base", ((8, 128), (32, 128), (16, 512), (64, 256))),
        ("bert-large", ((8, 512), (32, 128), (32, 384))),
    ):
        found += [
            (name, b, s, lambda d, name=name, b=b, s=s: text_model(bert[name], b, s, d, "masked")) for b, s in shapes
        ]
    for name, shapes in (
        ("llama-3.2-1b", ((1, 512), (4, 1024), (2, 4096), (16, 512))),
        ("llama-7b", ((1, 2048), (2, 2048))),
        ("llama-3-8b", ((1, 2048),)),
    ):
        found += [(name, b, s, lambda d, name=name, b=b, s=s: text_model(llama[name], b, s, d)) for b, s in shapes]
    for name, shapes in (("mixtral-small", ((4, 1024),)), ("mixtral-2layer", ((1, 2048), (4, 2048)))):
        found += [(name, b, s, lambda d, name=name, b=b, s=s: text_model(moe[name], b, s, d)) for b, s in shapes]
    found += [("dlrm", b, 0, lambda d, b=b: recommendation(b, d)) for b in (512, 2048, 16384)]
    return found


def unseen_cases(transformers: Any) -> list[tuple[str, int, int, Callable[[torch.dtype], tuple[nn.Module, Loss]]]]:
    """Models and sizes that were predicted before they were first measured."""
    T = transformers
    texts = {
        "gpt2-large": (T.GPT2Config(n_embd=1280, n_layer=36, n_head=20), "causal", (8, 512)),
        "gpt2-xl": (T.GPT2Config(n_embd=1600, n_layer=48, n_head=25), "causal", (2, 1024)),
        "gpt2-medium": (T.GPT2Config(n_embd=1024, n_layer=24, n_head=16), "causal", (12, 1024)),
        "bert-large": (
            T.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
            "masked", (16, 256),
        ),
        "bert-base": (T.BertConfig(), "masked", (48, 384)),
        "llama-3.2-3b": (
            T.LlamaConfig(
                vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28,
                num_attention_heads=24, num_key_value_heads=8, tie_word_embeddings=True,
            ),
            "causal", (2, 2048),
        ),
        "llama-3.2-1b": (
            T.LlamaConfig(
                vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True,
            ),
            "causal", (8, 2048),
        ),
        "llama:layers=8,hidden=5120,heads=40,ffn=13824": (
            T.LlamaConfig(hidden_size=5120, intermediate_size=13824, num_hidden_layers=8, num_attention_heads=40),
            "causal", (2, 2048),
        ),
        "mixtral-8x7b:layers=4,hidden=2048,heads=16,expert_ffn=7168": (
            T.MixtralConfig(
                hidden_size=2048, intermediate_size=7168, num_hidden_layers=4, num_attention_heads=16,
                num_key_value_heads=8,
            ),
            "causal", (4, 2048),
        ),
    }  # fmt: skip
    found: list[Any] = [
        (name, b, s, lambda d, config=config, kind=kind, b=b, s=s: text_model(config, b, s, d, kind))
        for name, (config, kind, (b, s)) in texts.items()
    ]
    for name, batch in (
        ("resnet34", 128), ("resnet152", 128), ("resnet101", 96), ("vgg11", 128), ("vgg13", 48), ("vit_b_32", 256),
        ("vit_h_14", 32), ("vit_l_16", 64), ("inception_v3", 128), ("alexnet", 1024),
    ):  # fmt: skip
        side = 299 if name == "inception_v3" else 224
        found.append((name, batch, 0, lambda d, name=name, batch=batch, side=side: image_model(name, batch, side, d)))
    found.append(("dlrm", 8192, 0, lambda d: recommendation(8192, d)))
    return found


def time_of(run: Callable[[], Any], span_s: float = 0.1) -> float:
    """Median over three batches of calls that follow each other without a pause."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    clock = time.perf_counter()
    run()
    torch.cuda.synchronize()
    calls = max(2, min(50, int(span_s / (time.perf_counter() - clock))))
    times = []
    for _ in range(3):
        clock = time.perf_counter()
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - clock) / calls)
    return statistics.median(times)


def measured(model: nn.Module, loss: Loss) -> dict[str, float]:
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5)
    fused = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def both() -> None:
        model.zero_grad(set_to_none=True)
        loss().backward()

    def step(update: torch.optim.Optimizer = optimiser) -> None:
        both()
        update.step()

    row = {"forward_s": time_of(loss), "forward_backward_s": time_of(both), "step_s": time_of(step)}
    optimiser.state.clear()
    row["step_fused_s"] = time_of(lambda: step(fused))
    row["parameters"] = sum(p.numel() for p in model.parameters())
    return row


def profiled(model: nn.Module, loss: Loss) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    def both() -> None:
        model.zero_grad(set_to_none=True)
        loss().backward()

    both()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        both()
        torch.cuda.synchronize()
    return [
        {"name": e.key[:90], "count": e.count, "gpu_us": e.self_device_time_total, "cpu_us": e.self_cpu_time_total}
        for e in seen.key_averages()
        if e.self_device_time_total > 0 or e.self_cpu_time_total > 500
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--profile")
    parser.add_argument("--only", default="")
    parser.add_argument("--unseen", action="store_true", help="models and sizes of the second, blind set")
    parser.add_argument("--dtypes", default="bf16,tf32")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    import transformers

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    begin = time.perf_counter()
    profiles: dict[str, Any] = {}
    with open(options.table, "w", newline="") as file:
        writer = None
        for dtype_name in options.dtypes.split(","):
            dtype = {"bf16": torch.bfloat16, "tf32": torch.float32}[dtype_name]
            for name, batch, sequence, make in (unseen_cases if options.unseen else cases)(transformers):
                if time.perf_counter() - begin > options.seconds or (
                    options.only and not any(part in name for part in options.only.split(","))
                ):
                    continue
                try:
                    model, loss = make(dtype)
                    row = {
                        "model": name,
                        "dtype": dtype_name,
                        "batch": batch,
                        "sequence": sequence,
                        **measured(model, loss),
                    }
                    if options.profile:
                        profiles[f"{name} {dtype_name} {batch} {sequence}"] = profiled(model, loss)
                except Exception as error:  # one model that does not run must not cost the others
                    print(name, dtype_name, batch, sequence, "failed:", repr(error)[:300], file=sys.stderr)
                    model = loss = None
                    torch.cuda.empty_cache()
                    continue
                del model, loss
                torch.cuda.empty_cache()
                if writer is None:
                    writer = csv.DictWriter(file, row)
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                print(f"{time.perf_counter() - begin:6.1f}", *row.values(), flush=True)
    if options.profile:
        with open(options.profile, "w") as file:
            json.dump(profiles, file)


if __name__ == "__main__":
    main()
