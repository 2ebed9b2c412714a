"""Pairs of an encoder of images and a language model: patches are encoded, brought to its width, put among its words.

Liu et al., Improved Baselines with Visual Instruction Tuning (LLaVA-1.5, 2023); Wang et al., Qwen2-VL (2024). Layers
are those of transformers' models: encoder, projector, then the language model, whose sequences have words and images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.adapted import Adapted, Weights
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Normalise, Pointwise
from ropewalk.workload.image import Convolution
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo import adapters, like_llama, llama
from ropewalk.workload.zoo.entry import DEFAULT_STACK, Option, ZooEntry
from ropewalk.workload.zoo.parts import (
    Operators,
    Run,
    as_kept_by,
    attended,
    calls,
    enter,
    fan_in,
    gelu,
    interpreted,
    leave,
    projected,
    residual,
    sharing,
)
from ropewalk.workload.zoo.shape import TRAITS, Transformer
from ropewalk.workload.zoo.stacks import STACKS
from ropewalk.workload.zoo.transformer import SIZES, known, resized, running

TRAINED, FROZEN = "trained", "frozen"


@dataclass(frozen=True)
class Encoder:
    """A vision transformer in front of a language model."""

    layers: int
    hidden: int
    heads: int
    ffn: int
    side: int
    """Of an image unless told otherwise, in pixels."""
    patch: int = 14
    frames: int = 1
    """Copies of an image in a patch: encoders of films read two frames at once."""
    positions: int = 0
    """Rows of a learnt table; 0: positions are rotations, without a class token."""
    around: int = 0
    """Norms around all blocks."""
    merged: int = 1
    """Patches on a side of a square that become one token of the language model."""

    def patches(self, side: int) -> int:
        return (side // self.patch) ** 2 + (1 if self.positions else 0)

    def tokens(self, side: int) -> int:
        """Of the language model, for an image."""
        return (side // (self.patch * self.merged)) ** 2


CLIP = Encoder(24, 1024, 16, 4096, 336, positions=577, around=2)
QWEN2 = Encoder(32, 1280, 16, 5120, 448, frames=2, merged=2)
QWEN2_7B = like_llama.SHAPES["Qwen2.5 language model"]["qwen2.5-7b"]

SHAPES = {
    "llava-1.5-7b": (CLIP, replace(llama.SHAPES["llama2-7b"], vocabulary=32064, sequence=2048), FROZEN),
    "llava-1.5-13b": (CLIP, replace(llama.SHAPES["llama2-13b"], vocabulary=32064, sequence=2048), FROZEN),
    "qwen2-vl-7b": (QWEN2, QWEN2_7B, TRAINED),
}
"""Encoder, language model, and whether the encoder is trained with it."""


def entry(name: str, encoder: Encoder, shape: Transformer, usual: str) -> ZooEntry:
    """A pair of the zoo; sizes are those of its language model."""

    def make(
        name: str, batch: int, length: int, *, images: int = 1, side: int = encoder.side, vision: str = usual,
        attention: str = "fused", stack: str = DEFAULT_STACK, lora: int = 0, **sizes: Option,
    ) -> list[Layer]:  # fmt: skip
        _check(name, encoder, length, images, side, vision)
        run = Run(batch, length, known(name, attention), dropout=False, stack=running(name, stack, tuple(STACKS)))
        made = resized(name, shape, sizes)
        seeing = replace(run, samples=batch * images, length=encoder.patches(side))
        before = [*encoded(encoder, seeing, side), _projector(encoder, made, seeing, side)]
        after = llama.layers(made, run)
        after[0] = replace(after[0], operators=(*after[0].operators, *_put_among_words(made, run)))
        if vision == FROZEN:
            before[:-1] = [replace(layer, operators=tuple(map(_unmoved, layer.operators))) for layer in before[:-1]]
            before[-1] = replace(before[-1], operators=_first_trained(encoder, before[-1].operators))
            return [*before[:-1], *adapters.added([before[-1], *after], lora, run.stack)]
        return adapters.added([*before, *after], lora, run.stack)

    own: dict[str, Option] = {
        "images": 1, "side": encoder.side, "vision": usual, "attention": "fused", "stack": DEFAULT_STACK, "lora": 0,
    }  # fmt: skip
    sizes = {size: getattr(shape, size) for size in (*SIZES, *TRAITS)}
    about = "vision-language model"
    return ZooEntry(name, make, about, sequence=shape.sequence, options=own | sizes, switched_off=("window",))


def _check(name: str, encoder: Encoder, length: int, images: int, side: int, vision: str) -> None:
    findings = Findings(WorkloadError, f"model {name}")
    step = encoder.patch * encoder.merged
    if side % step:
        findings.add(f"images of side {side} do not divide into patches of {step}: give side= a multiple")
    elif encoder.positions and encoder.patches(side) > encoder.positions:
        findings.add(f"images of side {side} have more patches than positions: give side={encoder.side} or less")
    elif images * encoder.tokens(side) > length:
        tokens = images * encoder.tokens(side)
        findings.add(
            f"images have {tokens} tokens, and a sample {length}: give a sequence of {tokens} or more, or fewer images"
        )
    if vision not in (TRAINED, FROZEN):
        findings.add(f"vision={vision} is not known: give {TRAINED} or {FROZEN}")
    findings.raise_if_any()


def encoded(encoder: Encoder, run: Run, side: int) -> list[Layer]:
    """Patches and blocks of the encoder."""
    elements, patch = run.tokens * encoder.hidden, (encoder.patch, encoder.patch)
    channels = 3 * encoder.frames
    looked_up = (encoder.positions + 1) * encoder.hidden if encoder.positions else 0
    patches: Operators = (
        Convolution(run.samples, channels, side, side, encoder.hidden, patch, patch, bias=False, first=True),
        calls("view", "transpose"),
        *((Weights(looked_up, 2), Pointwise(elements, 2, "broadcast", call="add")) if looked_up else ()),
        *((Normalise(run.tokens, encoder.hidden),) if encoder.around else ()),
    )
    block = _kept(run, (*_attention(encoder, run), *_feed_forward(encoder, run)))
    return [
        Layer("patches", _kept(run, patches), elements, kind="vision embedding"),
        *(Layer(f"vision block {at}", block, elements, kind="vision block") for at in range(encoder.layers)),
    ]


def _kept(run: Run, operators: Sequence[Operator]) -> Operators:
    return tuple(as_kept_by(run.stack, operator) for operator in operators)


def _attention(encoder: Encoder, run: Run) -> Operators:
    elements, wide = run.tokens * encoder.hidden, encoder.hidden
    one = Linear(run.tokens, wide, wide, role=Role.COLUMNS)
    three = (replace(one, outputs=3 * wide),) if run.stack.merged or not encoder.positions else (
        fan_in(elements, 3), one, sharing(one), sharing(one)
    )  # fmt: skip
    return (
        Normalise(run.tokens, wide),
        enter(elements),
        *three,
        calls("view", "view", "transpose", "transpose", "module", "module"),
        interpreted(200, run),
        *attended(run, encoder.heads, encoder.heads, wide // encoder.heads, causal=False, dropout=False, masked=False),
        *projected(run, wide, wide, bias=True),
        residual(elements),
    )


def _feed_forward(encoder: Encoder, run: Run) -> Operators:
    elements = run.tokens * encoder.hidden
    return (
        Normalise(run.tokens, encoder.hidden),
        enter(elements),
        Linear(run.tokens, encoder.hidden, encoder.ffn, role=Role.COLUMNS),
        gelu(run.tokens * encoder.ffn, Role.INSIDE),
        Linear(run.tokens, encoder.ffn, encoder.hidden, role=Role.ROWS),
        calls("module"),
        leave(elements),
        residual(elements),
    )


def _projector(encoder: Encoder, shape: Transformer, run: Run, side: int) -> Layer:
    """Two linear layers from patches, merged where several become one token, to the width of the language model."""
    tokens, wide = run.samples * encoder.tokens(side), encoder.hidden * encoder.merged**2
    middle = wide if encoder.merged > 1 else shape.hidden
    operators: Operators = (
        Normalise(run.tokens, encoder.hidden),
        Linear(tokens, wide, middle),
        gelu(tokens * middle, Role.WHOLE),
        Linear(tokens, middle, shape.hidden),
        calls("view", "module"),
    )
    return Layer("projector", _kept(run, operators), tokens * shape.hidden, kind="projector")


def _put_among_words(shape: Transformer, run: Run) -> Operators:
    """Tokens of images in the places that words left for them; on the way back their gradients are taken out."""
    return (Pointwise(run.tokens * shape.hidden, 2, "map", "permute", 1, backward_passes=2, saved=0.0, call="copy"),)


def _first_trained(encoder: Encoder, operators: Operators) -> Operators:
    """A projector behind a frozen encoder: no gradient leaves it, and the norm around all blocks is the encoder's."""
    norm, linear, *others = operators
    assert isinstance(linear, Linear)
    return (_unmoved(norm) if encoder.around else norm, replace(linear, first=True), *others)


def _unmoved(operator: Operator) -> Operator:
    """An operator before all that is trained: nothing is kept of it, and no gradient comes back to it."""
    every = tuple(range(len(operator.backward())))
    if not every and not operator.parameters():
        return operator
    return Adapted(operator, operator.parameters(), 0, 0.0, every, frozen=True)
