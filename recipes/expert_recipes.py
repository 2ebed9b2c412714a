"""How published runs with experts were set up, as the recipes of their software say it.

Megatron-Bridge has recipes by model and GPU, and by container: tags v0.1.0rc4 (25.09) to v0.6.0 (26.08) of
github.com/NVIDIA-NeMo/Megatron-Bridge, scripts/performance, later src/megatron/bridge/perf_recipes. NeMo AutoModel has
a file for each benchmark (github.com/NVIDIA-NeMo/Automodel, examples/benchmark, later examples/llm_benchmark, tags
v0.2.0 to v0.5.0). Nothing is chosen by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.workload.zoo.wide_parts import PREDICTION


@dataclass(frozen=True)
class ExpertRecipe:
    """How a recipe runs experts."""

    once: bool = False
    """Tokens are sent once to a place, by HybridEP."""
    deepep: bool = False
    """They are, by DeepEP."""
    overlap: bool = False
    """Passes of two micro-batches run side by side."""
    recompute: str = "none"
    """Parts of blocks that are computed again."""
    glued: bool = False
    """Experts by fused kernels."""
    graphs: str = ""
    """Parts that run as CUDA graphs."""
    dropped: bool = False
    """Experts have as many places as an even share of tokens: what does not fit is dropped, what is free padded."""
    router_apart: bool = False
    """Routers are not fused."""
    shared_overlap: bool = False
    """Shared experts run while tokens travel, which NCCL's all-to-all allows."""
    wide: str = ""
    """Parts that stay in bf16 where others multiply in 8 or 4 bits."""
    wide_layers: int = 0
    """Last blocks that do."""

    def options(self, domain: int, *, narrow: bool) -> list[str]:
        """Options of the model that say so."""
        own = [*(["glued=true"] if self.glued else []), *([f"graphs={self.graphs}"] if self.graphs else [])]
        own += [*(["capacity=1"] if self.dropped else []), *(["router_fusion=false"] if self.router_apart else [])]
        if narrow:
            own += [f"wide={self.wide}"] if self.wide else []
            own += [f"wide_layers={self.wide_layers}"] if self.wide_layers else []
        sender = "deepep" if self.deepep else "hybridep" if self.once else ""
        return [*own, *([f"dispatch={sender},domain={domain}"] if sender else [])]


NCCL, ONCE = ExpertRecipe(), ExpertRecipe(once=True)
LATEST = ExpertRecipe(once=True, overlap=True, glued=True, graphs="step")
PARTS, MORE_PARTS, WHOLE_LAYERS = "attention+router", "attention+scan+router", "step"
"""Graphs of whole layers, which equal shapes of experts allow (25.09), are launched like those of a step."""
NEMOTRON_3 = replace(ONCE, graphs=MORE_PARTS, router_apart=True)
SUPER = replace(NEMOTRON_3, wide=PREDICTION)
SUPER_IN_4_BITS = replace(SUPER, wide=f"attention+latent+{PREDICTION}", wide_layers=14)
"""Blocks at the end, attention, what brings tokens to the width of experts and what predicts further tokens stay in
bf16 (`nemotron_3_super_bf16_with_nvfp4_mixed`, te_quant.cfg; what ends a Mamba-2 layer is in MXFP8 there, here in
NVFP4)."""
LATENT, LATENT_DENSE = "mla_up_proj", "mla_up_proj,mlp"
SMALL, MOST = "layernorm,moe_act", "layernorm,core_attn,moe_act,moe"
SHARED_MEANWHILE = replace(NCCL, recompute=LATENT, shared_overlap=True)
EXPERT_RECIPES: dict[tuple[str, ...], dict[str, ExpertRecipe]] = {
    ("DeepSeekV3", "GB300"): {
        "25.11": replace(ONCE, recompute="moe_act", graphs=PARTS), "26.02": replace(ONCE, recompute=LATENT),
        "26.06": LATEST,
    },
    ("DeepSeekV3", "GB300", "bf16"): {"25.11": replace(ONCE, recompute="moe_act", graphs=PARTS)},
    ("DeepSeekV3", "GB300", "nvfp4"): {"26.02": replace(ONCE, recompute=LATENT)},
    ("DeepSeekV3", "GB200"): {
        "25.09": SHARED_MEANWHILE, "25.11": replace(ONCE, recompute=LATENT, graphs="router"),
        "26.02": replace(ONCE, recompute=LATENT, graphs=PARTS), "26.04": replace(ONCE, recompute="mlp", graphs=PARTS),
        "26.06": replace(LATEST, recompute=LATENT),
    },
    ("DeepSeekV3", "GB200", "bf16"): {
        "25.09": SHARED_MEANWHILE, "25.11": replace(ONCE, recompute=LATENT, graphs="router"),
        "26.02": replace(ONCE, recompute=LATENT, graphs=PARTS),
    },
    ("DeepSeekV3", "B300"): {
        "26.02": replace(ONCE, recompute=LATENT), "26.04.01": replace(ONCE, recompute=LATENT, graphs=PARTS),
    },
    ("DeepSeekV3", "B200"): {"25.09": SHARED_MEANWHILE, "26.02": replace(ONCE, recompute=LATENT)},
    ("DeepSeekV3", "B200", "mxfp8"): {
        "25.09": SHARED_MEANWHILE, "26.02": replace(ONCE, recompute=LATENT),
        "26.04.01": ExpertRecipe(deepep=True, overlap=True, recompute=LATENT_DENSE, graphs=PARTS),
    },
    ("DeepSeekV3", "H100"): {
        "25.09": ExpertRecipe(deepep=True, overlap=True, recompute=LATENT_DENSE),
        "26.02": replace(ONCE, recompute=LATENT_DENSE),
    },
    ("Kimi_K2", "GB300"): {"26.02": replace(ONCE, recompute=LATENT)},
    ("Kimi_K2", "GB200"): {"26.02": replace(ONCE, recompute=LATENT, graphs="router")},
    ("Kimi_K2", "B300"): {"26.06": replace(NCCL, recompute=LATENT)},
    ("Kimi_K2", "B200"): {"26.02": replace(NCCL, recompute=LATENT)},
    ("Kimi_K2", "H100"): {"26.02": replace(NCCL, recompute=LATENT_DENSE)},
    ("GPT OSS 120B", "GB300"): {"25.11": replace(NCCL, graphs=PARTS), "26.06": LATEST},
    ("GPT OSS 120B", "GB200"): {
        "25.11": replace(NCCL, recompute=SMALL), "26.04": ExpertRecipe(once=True, overlap=True, recompute=SMALL),
        "26.06": LATEST,
    },
    ("GPT OSS 120B", "B300"): {"26.02": replace(NCCL, graphs=PARTS), "26.04": replace(ONCE, graphs=PARTS)},
    ("GPT OSS 120B", "B200"): {
        "25.11": replace(NCCL, recompute=SMALL), "26.04": replace(ONCE, recompute=SMALL),
        "26.04.01": replace(NCCL, recompute=SMALL),
    },
    ("GPT OSS 120B", "H100"): {"25.11": replace(NCCL, recompute=SMALL)},
    **{("Nemotron_3_Nano", gpu): {"26.02": NEMOTRON_3} for gpu in ("GB300", "GB200", "B300", "B200")},
    ("Nemotron_3_Nano", "H100"): {"26.02": replace(NEMOTRON_3, recompute="layernorm,moe", graphs="attention+scan")},
    ("Nemotron_3_Nano", "H100", "fp8"): {"26.02": replace(NEMOTRON_3, recompute=MOST, graphs="scan")},
    ("Nemotron_3_Super", "GB300"): {"26.02": SUPER},
    ("Nemotron_3_Super", "GB300", "nvfp4"): {"26.02": SUPER_IN_4_BITS},
    ("Nemotron_3_Super", "GB200"): {"26.02": SUPER},
    ("Nemotron_3_Super", "GB200", "mxfp8"): {"26.02": SUPER, "26.08": replace(SUPER, glued=True)},
    ("Nemotron_3_Super", "GB200", "nvfp4"): {"26.02": SUPER_IN_4_BITS},
    ("Nemotron_3_Super", "B300"): {"26.02": replace(SUPER, recompute=SMALL)},
    ("Nemotron_3_Super", "B300", "mxfp8"): {"26.02": SUPER},
    ("Nemotron_3_Super", "B300", "nvfp4"): {"26.02": replace(SUPER_IN_4_BITS, recompute=SMALL)},
    ("Nemotron_3_Super", "B200"): {"26.02": replace(SUPER, recompute=MOST, graphs="")},
    ("Nemotron_3_Super", "B200", "mxfp8"): {"26.02": replace(SUPER, recompute=SMALL, graphs="")},
    ("Nemotron_3_Super", "B200", "nvfp4"): {"26.02": SUPER_IN_4_BITS},
    ("Nemotron_3_Ultra", "GB200"): {
        "26.08": ExpertRecipe(once=True, glued=True, recompute="moe_act", wide=PREDICTION),
    },
    ("Qwen3_30B_a3B", "GB300"): {"25.11": replace(ONCE, graphs="router"), "26.06": LATEST},
    ("Qwen3_30B_a3B", "GB200"): {
        "25.09": replace(NCCL, graphs=WHOLE_LAYERS), "25.11": replace(ONCE, graphs="router"), "26.06": LATEST,
    },
    ("Qwen3_30B_a3B", "B300"): {"26.02": replace(ONCE, graphs="router"), "26.06": LATEST},
    ("Qwen3_30B_a3B", "B200"): {
        "25.09": replace(NCCL, graphs=WHOLE_LAYERS), "25.11": replace(NCCL, graphs="router"),
        "26.02.01": replace(ONCE, graphs=PARTS), "26.06.01": LATEST,
    },
    ("Qwen3_30B_a3B", "H100"): {
        "25.09": NCCL, "25.11": ExpertRecipe(overlap=True), "26.02": ExpertRecipe(deepep=True, overlap=True),
        "26.04": ONCE,
    },
    ("Qwen3_235B_a22B", "GB300"): {
        "25.11": replace(ONCE, graphs="router"), "26.02": replace(ONCE, graphs=PARTS), "26.06": LATEST,
    },
    ("Qwen3_235B_a22B", "GB200"): {
        "25.09": replace(NCCL, graphs=WHOLE_LAYERS), "25.11": replace(ONCE, graphs=PARTS), "26.06": LATEST,
    },
    ("Qwen3_235B_a22B", "B300"): {
        "26.02": ExpertRecipe(overlap=True), "26.02.01": NCCL, "26.04.01": ONCE, "26.06.01": LATEST,
    },
    ("Qwen3_235B_a22B", "B200"): {
        "25.09": NCCL, "25.11": ExpertRecipe(overlap=True), "26.02": NCCL, "26.06.01": LATEST,
    },
    ("Qwen3_235B_a22B", "H100"): {"25.09": NCCL, "25.11": ExpertRecipe(overlap=True)},
}  # fmt: skip
"""By model and GPU, and by precision where that differs: what Megatron-Bridge's performance recipes say, from the
container on that has it. Others run as NCCL has it."""


@dataclass(frozen=True)
class AutoModelRecipe:
    """How a recipe of NeMo AutoModel runs a mixture of experts under FSDP2; tokens are sent once."""

    expert: int
    """Ranks that experts are spread over, which published tables leave out for some."""
    again: bool
    """Blocks are computed again (`activation_checkpointing`)."""
    whole: bool
    """Weights are gathered once a step and gradients reduced once (`enable_fsdp_optimizations`)."""
    regather: bool = False
    """Otherwise: weights are gathered before the backward pass too (`reshard_after_forward`)."""


AUTOMODEL_RECIPES = {
    "DeepSeek V3 671B": AutoModelRecipe(64, again=True, whole=True),
    "Kimi K2": AutoModelRecipe(32, again=True, whole=False),
    "GPT-OSS 20B": AutoModelRecipe(8, again=False, whole=False),
    "GPT-OSS 120B": AutoModelRecipe(64, again=False, whole=False, regather=True),
    "Nemotron V3 Nano 30B": AutoModelRecipe(8, again=True, whole=True),
    "Nemotron V3 Super 120B": AutoModelRecipe(64, again=True, whole=False, regather=True),
    "Nemotron V3 Ultra 550B": AutoModelRecipe(64, again=True, whole=False, regather=True),
    "Qwen3 MoE 30B": AutoModelRecipe(8, again=True, whole=True),
}
