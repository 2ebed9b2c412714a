"""Inception v3, as in torchvision: Szegedy et al., Rethinking the Inception Architecture (2015).

`aux` adds the second classifier that torchvision trains with by default; its loss counts 0.4 there.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.parts import fan_in
from ropewalk.workload.zoo.trail import Trail, photographs


def inception(name: str, batch: int, *, side: int = 299, classes: int = 1000, aux: bool = False) -> list[Layer]:
    """A layer for each convolution of the stem and for each module of branches."""
    modules: tuple[tuple[str, Callable[[Trail], Trail]], ...] = (
        ("stem 0", lambda t: t.block(32, 3, 2, first=True)),
        ("stem 1", lambda t: t.block(32, 3)),
        ("stem 2", lambda t: t.block(64, 3, 1, 1).pool("max", 3, 2)),
        ("stem 3", lambda t: t.block(80, 1)),
        ("stem 4", lambda t: t.block(192, 3).pool("max", 3, 2)),
        ("mixed 5b", lambda t: small(t, 32)),
        ("mixed 5c", lambda t: small(t, 64)),
        ("mixed 5d", lambda t: small(t, 64)),
        ("mixed 6a", shrink_small),
        ("mixed 6b", lambda t: long(t, 128)),
        ("mixed 6c", lambda t: long(t, 160)),
        ("mixed 6d", lambda t: long(t, 160)),
        ("mixed 6e", lambda t: long(t, 192)),
        ("mixed 7a", shrink_long),
        ("mixed 7b", wide),
        ("mixed 7c", wide),
    )
    trail = Trail(photographs(name, batch, side, 75))
    layers: list[Layer] = []
    for title, module in modules:
        trail = module(trail.fork() if layers else trail)
        layers.append(_layer(title, trail, title.split()[0], (len(layers) - 1,) if layers else ()))
        if aux and title == "mixed 6e":
            layers.append(_layer("second head", second_head(trail.fork(), classes), "head", (len(layers) - 1,)))
            trunk = len(layers) - 2
        elif aux and title == "mixed 7a":
            branch = Trail(trail.image)
            branch.operators = [fan_in(layers[trunk].output_elements, 2), *trail.operators]
            layers[-1] = _layer(title, branch, "mixed", (trunk,))
    head = trail.fork().mean().dropout().linear(classes).loss()
    return [*layers, _layer("head", head, "head", (len(layers) - 1,))]


def small(trail: Trail, pooled: int) -> Trail:
    """Module A: 1x1, 5x5, two 3x3, pool."""
    return trail.branches(
        trail.fork().block(64, 1),
        trail.fork().block(48, 1).block(64, 5, 1, 2),
        trail.fork().block(64, 1).block(96, 3, 1, 1).block(96, 3, 1, 1),
        trail.fork().pool("average", 3, 1, 1).block(pooled, 1),
    )


def shrink_small(trail: Trail) -> Trail:
    """Module B: half the side."""
    return trail.branches(
        trail.fork().block(384, 3, 2),
        trail.fork().block(64, 1).block(96, 3, 1, 1).block(96, 3, 2),
        trail.fork().pool("max", 3, 2),
    )


def long(trail: Trail, width: int) -> Trail:
    """Module C: 7x7 convolutions as 1x7 and 7x1."""
    return trail.branches(
        trail.fork().block(192, 1),
        trail.fork().block(width, 1).block(width, (1, 7), 1, (0, 3)).block(192, (7, 1), 1, (3, 0)),
        trail.fork().block(width, 1).block(width, (7, 1), 1, (3, 0)).block(width, (1, 7), 1, (0, 3))
        .block(width, (7, 1), 1, (3, 0)).block(192, (1, 7), 1, (0, 3)),
        trail.fork().pool("average", 3, 1, 1).block(192, 1),
    )  # fmt: skip


def shrink_long(trail: Trail) -> Trail:
    """Module D: half the side."""
    return trail.branches(
        trail.fork().block(192, 1).block(320, 3, 2),
        trail.fork().block(192, 1).block(192, (1, 7), 1, (0, 3)).block(192, (7, 1), 1, (3, 0)).block(192, 3, 2),
        trail.fork().pool("max", 3, 2),
    )


def wide(trail: Trail) -> Trail:
    """Module E: 3x3 convolutions as 1x3 beside 3x1."""
    return trail.branches(
        trail.fork().block(320, 1),
        split(trail.fork().block(384, 1)),
        split(trail.fork().block(448, 1).block(384, 3, 1, 1)),
        trail.fork().pool("average", 3, 1, 1).block(192, 1),
    )


def split(trail: Trail) -> Trail:
    return trail.branches(trail.fork().block(384, (1, 3), 1, (0, 1)), trail.fork().block(384, (3, 1), 1, (1, 0)))


def second_head(trail: Trail, classes: int) -> Trail:
    return trail.pool("average", 5, 3).block(128, 1).block(768, 5).mean().linear(classes).loss()


def _layer(name: str, trail: Trail, kind: str, inputs: tuple[int, ...] = ()) -> Layer:
    return Layer(name, tuple(trail.operators), trail.image.elements, inputs, kind)
