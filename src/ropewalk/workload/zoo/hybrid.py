"""Models of Mamba-2 layers, alone or in a pattern with attention, feed-forward layers and experts.

Dao and Gu, Mamba-2 (2024); NVIDIA, Nemotron-H (2025) and Nemotron 3 (2025, 2026). A pattern has a letter for every
layer: M Mamba-2, * attention, - feed-forward, E experts. Attention has no positions. Experts of the larger Nemotron 3
work on a narrower vector, into which tokens are brought before they are sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.dense import Linear
from ropewalk.workload.operator import Role
from ropewalk.workload.routines import CONVOLVE_ALONG, GATE, GATE_AT_ONCE, GATED_NORM_AT_ONCE, GROUPED_ROUTER
from ropewalk.workload.scan import Scan
from ropewalk.workload.workload import Layer
from ropewalk.workload.written import Written
from ropewalk.workload.zoo import llama, mixture
from ropewalk.workload.zoo.graphs import FEED_FORWARD, SCAN
from ropewalk.workload.zoo.mixture import Mixture
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    calls,
    captured,
    copied,
    enter,
    gathered,
    interpreted,
    leave,
    residual,
)
from ropewalk.workload.zoo.shape import Transformer

KINDS = {"M": "mamba block", "*": "attention block", "-": "feed-forward block", "E": "expert block"}
"""What the letters of a pattern stand for."""


@dataclass(frozen=True)
class Hybrid:
    """Which layers there are, and the sizes of those with a state."""

    pattern: str
    heads: int
    """Of a Mamba-2 layer."""
    size: int = 64
    state: int = 128
    groups: int = 8
    experts: Mixture | None = None

    def check(self, name: str) -> None:
        """Refuse what makes no model."""
        findings = Findings(WorkloadError, f"model {name}")
        strange = sorted(set(self.pattern) - set(KINDS))
        if strange or not self.pattern:
            said = ", ".join(f"{letter} {kind.removesuffix(' block')}" for letter, kind in KINDS.items())
            findings.add(f"pattern={self.pattern} is not a pattern of layers: write {said}")
        if "E" in self.pattern and self.experts is None:
            findings.add(f"pattern={self.pattern} has experts, but this model has none: leave E out")
        if self.heads % self.groups:
            findings.add(f"{self.groups} groups do not divide {self.heads} heads of states: change one")
        findings.raise_if_any()
        if self.experts is not None:
            self.experts.check(name)


SHORT = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
SUPER = "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"
ULTRA = "MEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
WORDS, LENGTH = 131072, 8192


def _mamba(layers: int, hidden: int) -> tuple[Transformer, Hybrid]:
    """The models of the paper: nothing but scans, one group, states of twice the width."""
    heads = 2 * hidden // 64
    return Transformer(layers, hidden, heads, 50288, 2048), Hybrid("M" * layers, heads, groups=1)


def _nemotron_3(pattern: str, hidden: int, heads: int, scanned: int, experts: Mixture) -> tuple[Transformer, Hybrid]:
    shape = Transformer(len(pattern), hidden, heads, WORDS, LENGTH, 2, experts.ffn, 128, tied=False)
    return shape, Hybrid(pattern, scanned, experts=experts)


def _experts(count: int, choices: int, ffn: int, shared: int, squeezed: int = 0) -> Mixture:
    return Mixture(
        count, choices, ffn, shared=1, router=GROUPED_ROUTER, ungated=True, shared_ffn=shared, squeezed=squeezed
    )


SHAPES = {
    "mamba2-130m": _mamba(24, 768),
    "mamba2-370m": _mamba(48, 1024),
    "mamba2-780m": _mamba(48, 1536),
    "mamba2-1.3b": _mamba(48, 2048),
    "mamba2-2.7b": _mamba(64, 2560),
    "nemotron-h-8b": (Transformer(52, 4096, 32, WORDS, LENGTH, 8, 21504, 128, tied=False), Hybrid(SHORT, 128)),
    "nemotron-3-nano": _nemotron_3(NANO, 2688, 32, 64, _experts(128, 6, 1856, 3712)),
    "nemotron-3-super": _nemotron_3(SUPER, 4096, 32, 128, _experts(512, 22, 2688, 5376, 1024)),
    "nemotron-3-ultra": _nemotron_3(ULTRA, 8192, 64, 256, _experts(512, 22, 5120, 10240, 2048)),
}


def layers(shape: Transformer, hybrid: Hybrid, run: Run) -> list[Layer]:
    made = {letter: (KINDS[letter], _layer(letter, shape, hybrid, run)) for letter in sorted(set(hybrid.pattern))}
    return llama.between_words(shape, run, [made[letter] for letter in hybrid.pattern])


def predicting(shape: Transformer, hybrid: Hybrid, run: Run) -> Operators:
    """What predicts tokens behind the next one: attention and experts (Nemotron 3 Super)."""
    return _layer("*", shape, hybrid, run) + _layer("E" if hybrid.experts else "-", shape, hybrid, run)


def _layer(letter: str, shape: Transformer, hybrid: Hybrid, run: Run) -> Operators:
    if letter == "M":
        return mamba(shape, hybrid, run)
    if letter == "*":
        return llama.attention(shape, run, rotated=False)
    if letter == "E" and hybrid.experts is not None:
        return mixture.feed_forward(shape, hybrid.experts, run)
    elements = run.tokens * shape.hidden
    made = (
        llama.norm(run, shape.hidden), enter(elements), *llama.squared(run, shape.hidden, shape.neurons),
        leave(elements), residual(elements),
    )  # fmt: skip
    return captured(run, FEED_FORWARD, made)


def _gated(run: Run, inner: int) -> Operators:
    """What was scanned by its gate, and its norm."""
    if run.stack.merged:
        return (Written(GATED_NORM_AT_ONCE, run.tokens, inner, Role.INSIDE),)
    gate = GATE_AT_ONCE if run.stack.fused else GATE
    return Written(gate, run.tokens, inner, Role.INSIDE), llama.norm(run, inner, Role.INSIDE)


def _by_sample(run: Run, width: int) -> Operators:
    """Megatron-Core keeps the tokens of all samples side by side, scans want sample after sample: several are copied.

    Gradients of what one product makes are written to one tensor by its kernels, and joined by others' code.
    """
    if not run.stack.merged:
        return (gathered(run.tokens * width, "cat"),)
    return (copied(run.tokens * width),) if run.samples > 1 else ()


def mamba(shape: Transformer, hybrid: Hybrid, run: Run) -> Operators:
    """Gate, scanned numbers, what writes and reads states and steps by one product; a convolution along the sequence;
    the scan; the gate and a norm of each group; the product back."""
    elements, inner = run.tokens * shape.hidden, hybrid.heads * hybrid.size
    convolved = inner + 2 * hybrid.groups * hybrid.state
    made = inner + convolved + hybrid.heads
    layer = (
        llama.norm(run, shape.hidden),
        enter(elements),
        Linear(run.tokens, shape.hidden, made, bias=False, role=Role.COLUMNS),
        *_by_sample(run, made),
        Written(CONVOLVE_ALONG, run.tokens, convolved, Role.INSIDE),
        calls("view", "view", "view", "view", "module", "module"),
        interpreted(200, run),
        Scan(run.samples, run.length, hybrid.heads, hybrid.size, hybrid.state, hybrid.groups),
        *(_by_sample(run, inner) if run.stack.merged else ()),
        *_gated(run, inner),
        Linear(run.tokens, inner, shape.hidden, bias=False, role=Role.ROWS),
        leave(elements),
        residual(elements),
    )
    return captured(run, SCAN, layer)
