"""ResNets, as in torchvision: He et al., Deep Residual Learning (2015), with strides in the 3x3 convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.parts import fan_in
from ropewalk.workload.zoo.trail import Trail, photographs

Block = Callable[[Trail, int, int], Trail]


@dataclass(frozen=True)
class Depth:
    """What one residual block is, how much wider its end is than its middle, and blocks in each of four stages."""

    block: Block
    expansion: int
    blocks: tuple[int, int, int, int]


def basic(trail: Trail, width: int, stride: int) -> Trail:
    return trail.block(width, 3, stride, 1).convolution(width, 3, 1, 1).norm()


def bottleneck(trail: Trail, width: int, stride: int) -> Trail:
    return trail.block(width, 1).block(width, 3, stride, 1).convolution(4 * width, 1).norm()


DEPTHS = {
    "resnet18": Depth(basic, 1, (2, 2, 2, 2)),
    "resnet34": Depth(basic, 1, (3, 4, 6, 3)),
    "resnet50": Depth(bottleneck, 4, (3, 4, 6, 3)),
    "resnet101": Depth(bottleneck, 4, (3, 4, 23, 3)),
    "resnet152": Depth(bottleneck, 4, (3, 8, 36, 3)),
}


def resnet(name: str, batch: int, *, side: int = 224, classes: int = 1000) -> list[Layer]:
    """A layer for the stem, for every residual block and for the head."""
    depth = DEPTHS[name]
    trail = Trail(photographs(name, batch, side, 32)).block(64, 7, 2, 3, first=True).pool("max", 3, 2, 1)
    layers = [_layer("stem", trail, "stem")]
    for stage, blocks in enumerate(depth.blocks):
        for number in range(blocks):
            trail = residual(trail.fork(), depth, 64 * 2**stage, 2 if stage and not number else 1)
            layers.append(_layer(f"stage {stage + 1} block {number}", trail, "block"))
    head = trail.fork().mean().linear(classes).loss()
    return [*layers, _layer("head", head, "head")]


def residual(trail: Trail, depth: Depth, width: int, stride: int) -> Trail:
    """A block and the way round it, which is a convolution where the size changes."""
    shortcut = trail.fork()
    trail.operators.append(fan_in(trail.image.elements, 2))
    outputs = depth.expansion * width
    if stride > 1 or trail.image.channels != outputs:
        shortcut.convolution(outputs, 1, stride).norm()
    return depth.block(trail, width, stride).around(shortcut).relu()


def _layer(name: str, trail: Trail, kind: str) -> Layer:
    return Layer(name, tuple(trail.operators), trail.image.elements, kind=kind)
