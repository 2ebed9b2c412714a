"""AmoebaNet-D for images of ImageNet: Real et al., Regularized Evolution (2018), with the cells of the GPipe paper.

Followed: the normal and the reduction cell of AmoebaNet-D, three reduction steps of the stem and trunk as GPipe counts
them (a stem, two reduction cells, then three groups of normal cells with a reduction cell between groups), widths that
double at each reduction. With 1000 classes this gives the parameter counts of GPipe's Table 1 (82M for 18 layers and
208 filters, 1.05B for 36 layers and 544). Not followed: the auxiliary classifier, drop-path and the scheduled
regularisation of the original training recipe. `amoebanet-18` and `amoebanet-36` have 512 filters, which gives the
sizes that DAPPLE reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ropewalk.errors import WorkloadError
from ropewalk.workload.operator import Role
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.parts import added, fan_in
from ropewalk.workload.zoo.trail import Image, Trail, joined, photographs

Step = Callable[[Trail, int], Trail]
"""What happens on one edge of a cell, given a stride."""


def ahead(trail: Trail, outputs: int, kernel: int = 1, stride: int = 1, padding: int = 0) -> Trail:
    """ReLU, convolution, norm."""
    return trail.relu().convolution(outputs, kernel, stride, padding).norm()


def point(trail: Trail, stride: int) -> Trail:
    return ahead(trail, trail.image.channels, 1, stride)


def square(trail: Trail, stride: int) -> Trail:
    width = trail.image.channels
    return ahead(ahead(ahead(trail, width // 4), width // 4, 3, stride, 1), width)


def cross(trail: Trail, stride: int) -> Trail:
    """1x7, then 7x1, in a narrow middle."""
    width = trail.image.channels
    narrow = ahead(trail, width // 4)
    narrow.relu().convolution(width // 4, (1, 7), (1, stride), (0, 3)).norm()
    narrow.relu().convolution(width // 4, (7, 1), (stride, 1), (3, 0)).norm()
    return ahead(narrow, width)


def pair_pool(trail: Trail, stride: int) -> Trail:
    return trail.pool("max", 2, stride)


def max_pool(trail: Trail, stride: int) -> Trail:
    return trail.pool("max", 3, stride, 1)


def mean_pool(trail: Trail, stride: int) -> Trail:
    return trail.pool("average", 3, stride, 1)


def nothing(trail: Trail, stride: int) -> Trail:
    return halved(trail, trail.image.channels) if stride > 1 else trail


@dataclass(frozen=True)
class Cell:
    """Edges in pairs, each from an earlier state; states 0 and 1 are the inputs. Which states leave the cell."""

    edges: tuple[tuple[int, Step], ...]
    leaving: tuple[int, ...]


NORMAL = Cell(
    ((1, point), (1, max_pool), (1, nothing), (0, cross), (0, point), (0, cross), (2, max_pool), (2, nothing),
     (1, mean_pool), (5, point)),
    (0, 3, 4, 6),
)  # fmt: skip
REDUCTION = Cell(
    ((0, pair_pool), (0, max_pool), (2, nothing), (1, square), (2, cross), (2, max_pool), (3, nothing),
     (1, pair_pool), (2, mean_pool), (3, point)),
    (4, 5, 6),
)  # fmt: skip


def halved(trail: Trail, outputs: int) -> Trail:
    """Half the side by two convolutions of stride 2, the second of them one pixel on."""
    trail.relu()
    return trail.branches(
        trail.fork().convolution(outputs // 2, 1, 2), trail.fork().convolution(outputs - outputs // 2, 1, 2)
    ).norm()


def amoebanet(
    name: str, batch: int, *, layers: int = 18, filters: int = 512, side: int = 224, classes: int = 1000
) -> list[Layer]:
    """A layer for the stem, for every cell and for the head; a cell reads the two cells before it."""
    if layers < 3 or layers % 3 or filters % 16:
        raise WorkloadError(
            f"model {name}: {layers} layers of {filters} filters do not make three equal groups of cells: "
            "give layers= a multiple of 3 and filters= a multiple of 16"
        )
    width = filters // 4
    stem = Trail(photographs(name, batch, side, 64))
    stem.convolution(width, 3, 2, 1, first=True).norm()
    made = [Layer("stem", tuple(stem.operators), stem.image.elements, kind="stem")]
    images = [stem.image]
    group = [(NORMAL, 1)] * (layers // 3)
    plan = [(REDUCTION, 2), (REDUCTION, 2), *group, (REDUCTION, 2), *group, (REDUCTION, 2), *group]
    for number, (cell, scale) in enumerate(plan):
        width *= scale
        before = max(0, number - 1)
        trail = celled(cell, images[number], images[before], width)
        inputs = (before, number) if before != number else (number,)
        kind = "reduction" if cell is REDUCTION else "cell"
        made.append(Layer(f"cell {number}", tuple(trail.operators), trail.image.elements, inputs, kind))
        images.append(trail.image)
    head = Trail(images[-1]).mean().linear(classes).loss()
    return [*made, Layer("head", tuple(head.operators), 1, (len(made) - 1,), "head")]


def celled(cell: Cell, last: Image, earlier: Image, width: int) -> Trail:
    """One cell over the last state and the one before it."""
    first, second = ahead(Trail(last), width), Trail(earlier)
    if earlier.height != last.height:
        halved(second, width)
    elif earlier.channels != width:
        ahead(second, width)
    out = Trail(last)
    out.operators = [fan_in(last.elements, 2), *first.operators, *second.operators]
    states = [first.image, second.image]
    for left, right in zip(cell.edges[::2], cell.edges[1::2], strict=True):
        ends = []
        for source, step in (left, right):
            stride = 2 if cell is REDUCTION and source < 2 else 1
            trail = step(Trail(states[source]), stride)
            out.operators += trail.operators
            ends.append(trail.image)
        out.operators.append(added(ends[0].elements, role=Role.WHOLE))
        states.append(ends[0])
    readers = [sum(edge[0] == state for edge in cell.edges) + (state in cell.leaving) for state in range(len(states))]
    out.operators += [fan_in(image.elements, count) for image, count in zip(states, readers, strict=True) if count > 1]
    end = states[-1]
    out.image = Image(end.batch, sum(states[at].channels for at in cell.leaving), end.height, end.width)
    out.operators.append(joined(out.image.elements))
    return out
