"""AlexNet and VGG, as in torchvision: convolutions with biases, then three wide linear layers.

Krizhevsky, One Weird Trick (2014), which is torchvision's AlexNet; Simonyan and Zisserman, VGG (2014).
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.trail import Trail, photographs

POOL = 0
STAGES = {
    "vgg11": (64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL),
    "vgg13": (64, 64, POOL, 128, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL),
    "vgg16": (64, 64, POOL, 128, 128, POOL, *(256,) * 3, POOL, *(512,) * 3, POOL, *(512,) * 3, POOL),
    "vgg19": (64, 64, POOL, 128, 128, POOL, *(256,) * 4, POOL, *(512,) * 4, POOL, *(512,) * 4, POOL),
}
"""Outputs of the convolutions, with a pool where it says so."""


def vgg(name: str, batch: int, *, side: int = 224, classes: int = 1000) -> list[Layer]:
    """A layer for every convolution, the pool behind it included, and for every linear layer."""
    image = photographs(name, batch, side, 32)
    layers: list[Layer] = []
    trail = Trail(image)
    stages = STAGES[name]
    for at, outputs in enumerate(stages):
        if outputs == POOL:
            trail.pool("max", 2, 2)
        else:
            trail.convolution(outputs, 3, 1, 1, bias=True, first=at == 0).relu()
        if at + 1 == len(stages) or stages[at + 1] != POOL:
            layers.append(_layer(f"convolution {len(layers)}", trail))
            trail = trail.fork()
    trail.resize(7).linear(4096).relu().dropout()
    return layers + _classifier(trail, classes, wide_last=False)


def alexnet(name: str, batch: int, *, side: int = 224, classes: int = 1000) -> list[Layer]:
    image = photographs(name, batch, side, 63)
    stages: tuple[Callable[[Trail], Trail], ...] = (
        lambda t: t.convolution(64, 11, 4, 2, bias=True, first=True).relu().pool("max", 3, 2),
        lambda t: t.convolution(192, 5, 1, 2, bias=True).relu().pool("max", 3, 2),
        lambda t: t.convolution(384, 3, 1, 1, bias=True).relu(),
        lambda t: t.convolution(256, 3, 1, 1, bias=True).relu(),
        lambda t: t.convolution(256, 3, 1, 1, bias=True).relu().pool("max", 3, 2),
    )
    layers: list[Layer] = []
    trail = Trail(image)
    for number, stage in enumerate(stages):
        layers.append(_layer(f"convolution {number}", stage(trail)))
        trail = trail.fork()
    trail.resize(6).dropout().linear(4096).relu().dropout()
    return layers + _classifier(trail, classes, wide_last=True)


def _classifier(first: Trail, classes: int, *, wide_last: bool) -> list[Layer]:
    """Three linear layers; AlexNet drops before the second, VGG behind it too."""
    second = first.fork().linear(4096).relu()
    if not wide_last:
        second.dropout()
    third = second.fork().linear(classes).loss()
    return [_layer("linear 0", first, "linear"), _layer("linear 1", second, "linear"), _layer("head", third, "head")]


def _layer(name: str, trail: Trail, kind: str = "convolution") -> Layer:
    return Layer(name, tuple(trail.operators), trail.image.elements, kind=kind)
