"""An image on its way through a network: each step adds an operator and changes the image's size."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropewalk.errors import WorkloadError
from ropewalk.workload import kernel as k
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Dropout, Pointwise
from ropewalk.workload.image import BatchNorm, Convolution, Pool
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.written import Launch, Routine, Written
from ropewalk.workload.zoo.parts import added, fan_in, sharing

Pair = int | tuple[int, int]

MEAN = Routine("mean of an image", (Launch("row_mean", 1, 0),), (Launch(reads=0),), ("mean",))
RESIZE = Routine("pool to a fixed size", (Launch(),), (Launch(),), ("average_pool",))


@dataclass(frozen=True)
class Image:
    """A batch of images, or of what convolutions make of them."""

    batch: int
    channels: int
    height: int
    width: int

    @property
    def elements(self) -> int:
        return self.batch * self.channels * self.height * self.width


def photographs(name: str, batch: int, side: int, least: int) -> Image:
    """What the network reads; `least` is the side below which nothing is left of it at the end."""
    if side < least:
        raise WorkloadError(f"model {name}: images of side {side} vanish on the way: give side={least} or more")
    return Image(batch, 3, side, side)


class Trail:
    """Operators in order, and the image behind the last of them."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.operators: list[Operator] = []

    def convolution(
        self, outputs: int, kernel: Pair, stride: Pair = 1, padding: Pair = 0, *, bias: bool = False,
        first: bool = False, groups: int = 1,
    ) -> Trail:  # fmt: skip
        image = self.image
        operator = Convolution(
            image.batch, image.channels, image.height, image.width, outputs, _pair(kernel), _pair(stride),
            _pair(padding), groups, bias, first,
        )  # fmt: skip
        self.operators.append(operator)
        high, wide = operator.result_side
        self.image = Image(image.batch, outputs, high, wide)
        return self

    def norm(self) -> Trail:
        image = self.image
        self.operators.append(BatchNorm(image.batch, image.channels, image.height * image.width))
        return self

    def relu(self) -> Trail:
        """In place; its result is what the next convolution keeps anyway."""
        self.operators.append(relu(self.image.elements))
        return self

    def block(self, outputs: int, kernel: Pair, stride: Pair = 1, padding: Pair = 0, *, first: bool = False) -> Trail:
        """Convolution, norm, ReLU."""
        return self.convolution(outputs, kernel, stride, padding, first=first).norm().relu()

    def pool(self, form: str, kernel: int, stride: int, padding: int = 0) -> Trail:
        image = self.image
        self.operators.append(
            Pool(form, image.batch, image.channels, image.height, image.width, kernel, stride, padding)
        )
        high, wide = (k.convolved(side, kernel, stride, padding) for side in (image.height, image.width))
        self.image = replace(image, height=high, width=wide)
        return self

    def resize(self, side: int) -> Trail:
        """Means over as many pieces as make an image of this side."""
        larger = max(self.image.height * self.image.width, side * side)
        rows = self.image.batch * self.image.channels
        self.operators.append(Written(RESIZE, rows, larger, Role.WHOLE))
        self.image = replace(self.image, height=side, width=side)
        return self

    def mean(self) -> Trail:
        """One number a channel."""
        image = self.image
        self.operators.append(Written(MEAN, image.batch * image.channels, image.height * image.width, Role.WHOLE))
        self.image = replace(image, height=1, width=1)
        return self

    def dropout(self) -> Trail:
        self.operators.append(Dropout(self.image.elements, Role.WHOLE))
        return self

    def linear(self, outputs: int) -> Trail:
        image = self.image
        inputs = image.channels * image.height * image.width
        self.operators.append(Linear(image.batch, inputs, outputs))
        self.image = Image(image.batch, outputs, 1, 1)
        return self

    def loss(self) -> Trail:
        self.operators.append(CrossEntropy(self.image.batch, self.image.channels))
        return self

    def branches(self, *trails: Trail) -> Trail:
        """Trails that all start here, joined channel by channel at their ends."""
        self.operators.append(fan_in(self.image.elements, len(trails)))
        self.operators += trails[0].operators
        for trail in trails[1:]:
            self.operators += beside(trail)
        end = trails[0].image
        self.image = replace(end, channels=sum(trail.image.channels for trail in trails))
        self.operators.append(joined(self.image.elements))
        return self

    def around(self, shortcut: Trail) -> Trail:
        """The sum with a way round everything so far, which started where this trail did."""
        self.operators += beside(shortcut)
        self.operators += [added(self.image.elements, role=Role.WHOLE)]
        return self

    def fork(self) -> Trail:
        """A new trail from here."""
        return Trail(self.image)


def beside(trail: Trail) -> list[Operator]:
    """Operators of a trail whose start is read, and kept, by another trail too."""
    kept = trail.operators[:1]
    shared = [sharing(operator) if isinstance(operator, Convolution) else operator for operator in kept]
    return shared + trail.operators[1:]


def relu(elements: int) -> Pointwise:
    return Pointwise(elements, saved=0.0, role=Role.WHOLE, call="relu")


def joined(elements: int) -> Pointwise:
    """Tensors put side by side; their gradients are views."""
    return Pointwise(elements, 1, "cat", backward_passes=0, saved=0.0, role=Role.WHOLE, call="cat")


def _pair(value: Pair) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)
