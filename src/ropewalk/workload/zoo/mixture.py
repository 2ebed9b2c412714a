"""Mixtures of experts: Mixtral, DeepSeekMoE, DeepSeek-V3, Qwen3, GPT-OSS.

Jiang et al., Mixtral of Experts (2024); Dai et al., DeepSeekMoE (2024); DeepSeek-V2 (2024) and DeepSeek-V3 (2024)
Technical Reports, without the biases that balance routers, which are not trained by gradients (the layer that predicts
a second token is the option `mtp=1`); Kimi Team, Kimi K2 (2025); Yang et al., Qwen3 Technical Report (2025); OpenAI,
gpt-oss model card (2025). Experts are run as transformers 5 runs them on CUDA or as Megatron-Core does, evenly loaded
unless told otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.core_routers import CORE_ROUTER, CORE_ROUTER_APART, GATE_IN_FLOAT32
from ropewalk.workload.dense import Linear
from ropewalk.workload.dispatch import DISPATCHES, DOMAIN, NCCL
from ropewalk.workload.exchange import Exchange, Meeting, When
from ropewalk.workload.experts import Experts, SortTokens, SumExperts
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import CAST, GROUPED_ROUTER, ROUTER
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Routine, Written
from ropewalk.workload.zoo import core_code, graphs, latent, llama
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    added,
    calls,
    captured,
    enter,
    fan_in,
    interpreted,
    leave,
    residual,
    sharing,
)
from ropewalk.workload.zoo.shape import Transformer

WIDENED = Routine("float32 for the router", (CAST,), (CAST,), ("cast",))


@dataclass(frozen=True)
class Mixture:
    """Which layers have experts, how many, and how a token finds its own."""

    experts: int
    choices: int
    """Experts a token goes to."""
    ffn: int
    """Neurons of an expert."""
    shared: int = 0
    """Experts that every token goes to besides."""
    dense: int = 0
    """Layers at the front with a plain feed-forward layer."""
    router: Routine = ROUTER
    latent: latent.Latent | None = None
    """Compressed keys and values, where the model has them."""
    masked: bool = True
    """Slots without an expert are set to zero around the experts, where no compiler makes that part of what comes
    next."""
    narrow_weights: bool = False
    """What the router weighs experts by is as narrow as their results; otherwise in float32."""
    mtp: int = 0
    """Layers behind the last that predict tokens behind the next one."""
    biased: bool = False
    """Routers and experts have biases."""
    clamped: bool = False
    """Gates of experts are clamped."""
    ungated: bool = False
    """Experts square what is above zero of their neurons, without a gate."""
    shared_ffn: int = 0
    """Neurons of what every token goes to, where they are not those of so many experts."""
    squeezed: int = 0
    """Width to which tokens are brought before they are sent to experts; 0: they are sent as they are."""
    wide_latent: bool = False
    """What brings them there and back is never narrowed to 8 bits or fewer."""
    glued: bool = False
    """Gates and biases of experts are part of their products, where the stack can (Transformer Engine, 2026)."""
    router_pads: bool = False
    """Routers send as many tokens to each expert as narrow products want, where the stack can (Megatron-Core's
    `--moe-router-padding-for-quantization`)."""
    most: float = 1.0
    """The largest part of all groups of experts that a token may reach."""
    router_fusion: bool = True
    """Routers are few kernels, where the stack has them (Megatron-Core's `--moe-router-fusion`)."""
    dispatch: str = NCCL
    domain: int = DOMAIN
    """GPUs that NVLink joins, over which tokens are sent once (DeepEP)."""
    capacity: float = 0.0
    """Slots of an expert against its even share: further tokens are dropped, empty slots are computed all the same, as
    Megatron-Core pads them. 0: nothing is dropped."""
    imbalance: float = 1.0
    """Tokens of the fullest rank against an even share, where nothing is dropped: all ranks wait for it."""

    def check(self, name: str) -> None:
        """Refuse what no mixture is, all of it at once."""
        findings = Findings(WorkloadError, f"model {name}")
        if not 1 <= self.choices <= self.experts:
            findings.add(f"a token cannot go to {self.choices} of {self.experts} experts: give fewer")
        if self.imbalance < 1:
            findings.add(
                f"the fullest rank cannot have {self.imbalance:g} times an even share: give imbalance=1 or more"
            )
        if self.capacity and self.imbalance != 1:
            findings.add("with a capacity all ranks have equal work: give either capacity or imbalance")
        if self.dispatch not in DISPATCHES:
            findings.add(DISPATCHES.unknown(self.dispatch))
        findings.raise_if_any()

    @property
    def load(self) -> float:
        """Slots of the rank that the others wait for, against an even share."""
        return self.capacity or self.imbalance

    def there(self, slots: int, hidden: int, run: Run) -> Exchange:
        """Slots to their experts. Hosts of Megatron-Core wait for their counts, unless tokens are dropped."""
        found = self._exchange(Meeting.DISPATCH, slots, hidden)
        weighed = hidden if DISPATCHES.named(self.dispatch).make.weighed else 0
        return replace(found, weighed=weighed, counted=run.stack.merged and not self.capacity)

    def back(self, slots: int, hidden: int) -> Exchange:
        """Slots from their experts."""
        return self._exchange(Meeting.COMBINE, slots, hidden)

    def _exchange(self, meeting: Meeting, slots: int, hidden: int) -> Exchange:
        if not DISPATCHES.named(self.dispatch).make.once:
            return Exchange(meeting, slots * hidden)
        return Exchange(meeting, slots * hidden, True, self.experts, self.choices, self.domain, self.most)


def _gpt_oss(layers: int, experts: int) -> tuple[Transformer, Mixture]:
    """Windows of 128 tokens in every second layer, biases everywhere, heads of 64."""
    shape = Transformer(
        layers, 2880, 64, 201088, 4096, 8, 2880, 64, tied=False, window=128, whole_every=2, qkv_bias=True,
        out_bias=True, sinks=True,
    )  # fmt: skip
    return shape, Mixture(experts, 4, 2880, biased=True, clamped=True, narrow_weights=True)


SHAPES = {
    "mixtral-8x7b": (Transformer(32, 4096, 32, 32000, 4096, 8, 14336, tied=False), Mixture(8, 2, 14336)),
    "mixtral-8x22b": (Transformer(56, 6144, 48, 32768, 4096, 8, 16384, tied=False), Mixture(8, 2, 16384)),
    "deepseek-moe-16b": (
        Transformer(28, 2048, 16, 102400, 4096, 16, 10944, tied=False),
        Mixture(64, 6, 1408, shared=2, dense=1),
    ),
    "deepseek-v3": (
        Transformer(61, 7168, 128, 129280, 4096, 128, 18432, tied=False),
        Mixture(
            256, 8, 2048, shared=1, dense=3, router=GROUPED_ROUTER, latent=latent.Latent(1536, 512, 128, 64, 128),
            most=0.5,
        ),
    ),
    "deepseek-v2-lite": (
        Transformer(27, 2048, 16, 102400, 4096, 16, 10944, tied=False),
        Mixture(64, 6, 1408, shared=2, dense=1, latent=latent.Latent(0, 512, 128, 64, 128)),
    ),
    "deepseek-v2": (
        Transformer(60, 5120, 128, 102400, 4096, 128, 12288, tied=False),
        Mixture(160, 6, 1536, shared=2, dense=1, latent=latent.Latent(1536, 512, 128, 64, 128)),
    ),
    "kimi-k2": (
        Transformer(61, 7168, 64, 163840, 4096, 64, 18432, tied=False),
        Mixture(384, 8, 2048, shared=1, dense=1, router=GROUPED_ROUTER, latent=latent.Latent(1536, 512, 128, 64, 128)),
    ),
    "qwen3-30b-a3b": (
        Transformer(48, 2048, 32, 151936, 4096, 4, 6144, 128, tied=False, qk_norm=True),
        Mixture(128, 8, 768, narrow_weights=True),
    ),
    "qwen3-235b-a22b": (
        Transformer(94, 4096, 64, 151936, 4096, 4, 12288, 128, tied=False, qk_norm=True),
        Mixture(128, 8, 1536, narrow_weights=True),
    ),
    "gpt-oss-20b": _gpt_oss(24, 32),
    "gpt-oss-120b": _gpt_oss(36, 128),
}  # fmt: skip


def layers(shape: Transformer, mixture: Mixture, run: Run) -> list[Layer]:
    compressed = mixture.latent

    def attention(window: int) -> Operators:
        return latent.attention(shape, compressed, run) if compressed else llama.attention(shape, run, window)

    dense = llama.by_window(shape, "dense block", lambda window: attention(window) + llama.feed_forward(shape, run))
    blocks = llama.by_window(shape, "block", lambda window: attention(window) + feed_forward(shape, mixture, run))
    made = llama.between_words(shape, run, dense[: mixture.dense] + blocks[mixture.dense :])
    if compressed:
        made[0] = replace(made[0], operators=llama.embedding(shape, run, compressed.rotated))
    return made


def feed_forward(shape: Transformer, mixture: Mixture, run: Run) -> Operators:
    elements, wide = run.tokens * shape.hidden, mixture.squeezed or shape.hidden
    slots = ceil(run.tokens * mixture.choices * mixture.load)
    readers = 3 if mixture.shared else 2
    down, up = _squeezed(shape, mixture, run)
    return (
        llama.norm(run, shape.hidden),
        enter(elements, When.SPLIT),
        fan_in(elements, readers, Role.ROUTED),
        *router(shape, mixture, run),
        *down,
        SortTokens(run.tokens, mixture.choices, wide, mixture.experts, run.stack.merged),
        mixture.there(slots, wide, run),
        Experts(
            slots,
            mixture.experts,
            wide,
            mixture.ffn,
            mixture.masked and not run.stack.fused,
            run.stack.fused,
            biased=mixture.biased,
            apart=run.stack.merged,
            clamped=mixture.clamped,
            resorted=run.stack.merged and mixture.dispatch == NCCL,
            glued=mixture.glued and run.stack.merged,
            ungated=mixture.ungated,
            router_pads=mixture.router_pads,
        ),
        mixture.back(slots, wide),
        SumExperts(
            run.tokens,
            mixture.choices,
            wide,
            run.stack.merged,
            mixture.narrow_weights,
            run.stack.fused and not run.stack.own_code,
        ),
        *up,
        calls("view", "view", "module", "module", "module"),
        interpreted(500, run, core_code.EXPERTS),
        *((calls(*("narrow_core_forward",) * core_code.EXPERTS.forward),) if run.stack.merged else ()),
        *((interpreted(0, run, core_code.EXCHANGE),) if mixture.dispatch == NCCL and not mixture.capacity else ()),
        *(shared(shape, mixture, run) if mixture.shared else ()),
        leave(elements, When.SPLIT),
        residual(elements),
    )


def _squeezed(shape: Transformer, mixture: Mixture, run: Run) -> tuple[Operators, Operators]:
    """What brings tokens to the width of experts, and back, where it is another one."""
    if not mixture.squeezed:
        return (), ()
    down = Linear(run.tokens, shape.hidden, mixture.squeezed, False, Role.ROUTED, exact=mixture.wide_latent)
    up = Linear(run.tokens, mixture.squeezed, shape.hidden, False, Role.ROUTED, exact=mixture.wide_latent)
    return (sharing(down),), (up,)


def router(shape: Transformer, mixture: Mixture, run: Run) -> Operators:
    scores = Linear(run.tokens, shape.hidden, mixture.experts, bias=mixture.biased, role=Role.ROUTED, exact=True)
    if run.stack.merged:
        routine = CORE_ROUTER if mixture.router_fusion else CORE_ROUTER_APART
        core = (
            Written(GATE_IN_FLOAT32, run.tokens, shape.hidden, Role.ROUTED),
            sharing(scores),
            Written(routine, run.tokens, mixture.experts, Role.ROUTED),
            interpreted(0, run, core_code.ROUTER),
        )
        return captured(run, graphs.ROUTER, core)
    widened = (
        Written(WIDENED, run.tokens, shape.hidden, Role.ROUTED),
        Written(WIDENED, mixture.experts, shape.hidden, Role.WHOLE),
    )
    made = (
        *(widened if mixture.router is GROUPED_ROUTER else ()),
        sharing(scores),
        Written(mixture.router, run.tokens, mixture.experts, Role.ROUTED),
        interpreted(0, run, core_code.ROUTER),
    )
    return captured(run, graphs.ROUTER, made)


def shared(shape: Transformer, mixture: Mixture, run: Run) -> Operators:
    """Experts that see every token: one wide gated layer beside the others, and the sum of both.

    It stays split over tensor ranks where the others are folded, so its tokens are gathered and scattered by itself.
    """
    neurons, elements = mixture.shared_ffn or mixture.shared * mixture.ffn, run.tokens * shape.hidden
    return (
        enter(elements, When.FOLDED),
        *(llama.squared if mixture.ungated else llama.gated)(run, shape.hidden, neurons),
        leave(elements, When.FOLDED),
        added(elements, role=Role.ROUTED),
    )
