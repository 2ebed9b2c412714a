"""The six models of TopoOpt's study (Wang et al., NSDI 2023) in their exact sizes, a layer for every operator.

They are not the models of the same names elsewhere: "BERT" is an encoder beside a decoder without words or wide
feed-forward layers, VGG16 pads by two and ends in 289 million parameters, ResNet50 tells ten classes apart. Tables are
layers of their own, so that each can sit on a server of its own, and they come first: their rows are under way while
the rest of the first layers computes. What the study leaves open is taken as follows: ResNet50 is torchvision's on
images of side 229 (the side of its VGG16); the parameter count of NCF says that it ends in two guesses, one of the
factors and one of the stack, which are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ropewalk.errors import WorkloadError
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.interaction import Interaction
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.loss import BinaryCrossEntropy
from ropewalk.workload.operator import Operator, Role
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo.entry import Make, Option, ZooEntry
from ropewalk.workload.zoo.recommendation import DOSES, INPUTS
from ropewalk.workload.zoo.resnet import resnet
from ropewalk.workload.zoo.trail import Trail, joined, photographs, relu
from ropewalk.workload.zoo.vgg import POOL, STAGES


@dataclass(frozen=True)
class StudySetup:
    """How the study runs a model: `servers` of `gpus` GPUs, each with `batch` samples a step."""

    batch: int
    servers: int
    gpus: int

    @property
    def global_batch(self) -> int:
        return self.batch * self.servers * self.gpus


class LayerList:
    """Layers as they are listed: each call adds one and returns its number."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.layers: list[Layer] = []

    def add(self, name: str, operators: tuple[Operator, ...], elements: int, inputs: tuple[int, ...], kind: str) -> int:
        self.layers.append(Layer(name, operators, elements, inputs, kind))
        return len(self.layers) - 1

    def table(self, name: str, lookups: int, rows: int, width: int) -> int:
        return self.add(name, (SparseTable(self.batch, lookups, rows, width),), self.batch * width, (), "table")

    def join(self, name: str, width: int, inputs: tuple[int, ...]) -> int:
        return self.add(name, (joined(self.batch * width),), self.batch * width, inputs, "join")

    def dense(self, name: str, inputs: int, outputs: int, source: int | None, *, bare: bool = False) -> int:
        """A linear layer with a ReLU behind it unless it is `bare`; without a source it reads data."""
        linear = Linear(self.batch, inputs, outputs, first=source is None)
        after = () if bare else (relu(self.batch * outputs),)
        return self.add(
            name, (linear, *after), self.batch * outputs, () if source is None else (source,), "dense"
        )  # fmt: skip

    def dense_stack(self, name: str, width: int, widths: tuple[int, ...], source: int | None) -> int:
        at = source
        for number, outputs in enumerate(widths):
            at = self.dense(f"{name} {number}", width, outputs, at)
            width = outputs
        if at is None:
            raise WorkloadError(f"the stack {name!r} has an input and no layer: give at least two widths")
        return at

    def loss(self, name: str, width: int, source: int) -> int:
        """The last linear layer, with the loss of a click."""
        operators = (Linear(self.batch, width, 1), BinaryCrossEntropy(self.batch))
        return self.add(name, operators, self.batch, (source,), "head")


def dlrm(
    name: str, batch: int, *, tables: int = 64, rows: int = 10_000_000, width: int = 128, lookups: int = 100,
    bottom: tuple[int, ...] = (2048,) * 8, top: tuple[int, ...] = (4096,) * 16, dots: bool = False,
) -> list[Layer]:  # fmt: skip
    """Tables beside a stack for numbers, joined, and a stack on top that ends in one number.

    `bottom` starts with the width of its input. So does `top` in the simulated jobs, where the joined width takes the
    place of its first entry; with `dots` features meet in dot products and all of `top` are layers, as in PyTorch's
    DLRM.
    """
    made = LayerList(batch)
    looked_up = tuple(made.table(f"table {number}", lookups, rows, width) for number in range(tables))
    below = made.dense_stack("bottom", bottom[0], bottom[1:], None)
    if dots:
        meet = Interaction(batch, tables + 1, width)
        joint, wide = made.add("interaction", (meet,), batch * meet.outputs, (*looked_up, below), "join"), meet.outputs
        above = made.dense_stack("top", wide, top, joint)
    else:
        wide = bottom[-1] + tables * width
        above = made.dense_stack("top", wide, top[1:], made.join("join", wide, (*looked_up, below)))
    made.loss("head", top[-1], above)
    return made.layers


def ncf(
    name: str, batch: int, *, tables: int = 64, rows: int = 1_000_000, factors: int = 64, width: int = 128,
    mlp: tuple[int, ...] = (4096,) * 8,
) -> list[Layer]:  # fmt: skip
    """`tables` tables each for users and items, narrow for their product and wide for the stack."""
    made = LayerList(batch)
    narrow, deep = tables * factors, 2 * tables * width
    sorts = ("user factors", "item factors", "user", "item")
    looked_up = [
        tuple(made.table(f"{sort} {number}", 1, rows, wide) for number in range(tables))
        for sort, wide in zip(sorts, (factors, factors, width, width), strict=True)
    ]  # fmt: skip
    users, items = (made.join(f"{sort} joined", narrow, looked_up[at]) for at, sort in enumerate(sorts[:2]))
    times = Pointwise(batch * narrow, reads=2, backward_passes=2, role=Role.WHOLE, call="multiply")
    product = made.add("product", (times,), batch * narrow, (users, items), "join")
    joint = made.join("joined", deep, (*looked_up[2], *looked_up[3]))
    above = made.dense_stack("stack", deep, mlp[1:], joint)
    guess = made.dense("guess of factors", narrow, 1, product, bare=True)
    last = (
        Linear(batch, mlp[-1], 1),
        Pointwise(batch, reads=2, role=Role.WHOLE, call="add"),
        BinaryCrossEntropy(batch),
    )
    made.add("head", last, batch, (guess, above), "head")
    return made.layers


def candle(
    name: str, batch: int, *, towers: tuple[int, ...] = (16384,) * 16, dense: tuple[int, ...] = (16384,) * 8
) -> list[Layer]:
    """Five towers side by side, joined with two doses, a stack on top and two numbers at its end."""
    made = LayerList(batch)
    tops = tuple(
        made.dense_stack(f"tower {number} layer", width, towers, None) for number, width in enumerate(INPUTS)
    )  # fmt: skip
    wide = len(INPUTS) * towers[-1] + DOSES
    above = made.dense_stack("stack", wide, dense, made.join("join", wide, tops))
    loss = Pointwise(batch, reads=2, role=Role.WHOLE, call="mean")
    last = (Linear(batch, dense[-1], 1), relu(batch), Linear(batch, 1, 1), loss)
    made.add("head", last, batch, (above,), "head")
    return made.layers


def bert(name: str, batch: int, length: int, *, layers: int = 12, hidden: int = 1024, heads: int = 16) -> list[Layer]:
    """Encoder and decoder side by side, block by block: three attentions and four linear layers of the same width."""
    if hidden % heads:
        raise WorkloadError(f"model {name}: {heads} heads do not divide hidden={hidden}: change one of them")
    made = LayerList(batch)
    tokens, elements = batch * length, batch * length * hidden

    def attention(label: str, inputs: tuple[int, ...]) -> int:
        def linear() -> Linear:
            return Linear(tokens, hidden, hidden, bias=False)

        core = FusedAttention(batch, heads, heads, length, length, hidden // heads)
        return made.add(label, (linear(), linear(), linear(), core, linear()), elements, inputs, "attention")

    def widened(label: str, source: int) -> int:
        """Two linear layers, a ReLU between them."""
        first = (Linear(tokens, hidden, hidden), relu(elements))
        inner = made.add(f"{label} in", first, elements, (source,), "dense")
        return made.add(f"{label} out", (Linear(tokens, hidden, hidden),), elements, (inner,), "dense")

    encoded: tuple[int, ...] = ()
    decoded: tuple[int, ...] = ()
    for number in range(layers):
        encoded = (widened(f"block {number} encoder", attention(f"block {number} encoder attention", encoded)),)
        own = attention(f"block {number} decoder attention", decoded)
        decoded = (
            widened(f"block {number} decoder", attention(f"block {number} cross attention", (own, *encoded))),
        )  # fmt: skip
    loss = Pointwise(tokens, reads=2, role=Role.WHOLE, call="mean")
    made.add("head", (Linear(tokens, hidden, 1), loss), tokens, decoded, "head")
    return made.layers


def vgg16(name: str, batch: int, *, side: int = 229, classes: int = 1000) -> list[Layer]:
    """VGG16 whose convolutions pad by two and whose pools are 3x3: images grow on the way, the classifier with them."""
    trail = Trail(photographs(name, batch, side, 3))
    layers: list[Layer] = []
    stages = STAGES["vgg16"]
    for at, outputs in enumerate(stages):
        if outputs == POOL:
            trail.pool("max", 3, 2)
        else:
            trail.convolution(outputs, 3, 1, 2, bias=True, first=at == 0).relu()
        if at + 1 == len(stages) or stages[at + 1] != POOL:
            layers.append(_drawn(f"convolution {len(layers)}", trail, "convolution"))
            trail = trail.fork()
    for number in range(2):
        layers.append(_drawn(f"linear {number}", trail.linear(4096).relu(), "dense"))
        trail = trail.fork()
    return [*layers, _drawn("head", trail.linear(classes).loss(), "head")]


def _drawn(name: str, trail: Trail, kind: str) -> Layer:
    return Layer(name, tuple(trail.operators), trail.image.elements, kind=kind)


def resnet50(name: str, batch: int, *, side: int = 229, classes: int = 10) -> list[Layer]:
    return resnet("resnet50", batch, side=side, classes=classes)


SIMULATED = 4
"""GPUs of a server in the study's simulations; its testbed has one."""

VARIANTS: tuple[tuple[str, str, Make, dict[str, Option], int, StudySetup], ...] = (
    ("dlrm", "dedicated", dlrm, {}, 0, StudySetup(128, 128, SIMULATED)),
    ("dlrm", "all-to-all", dlrm, {"tables": 128}, 0, StudySetup(64, 128, SIMULATED)),
    (
        "dlrm", "shared", dlrm,
        {"tables": 16, "width": 256, "bottom": (1024,) * 8, "top": (2048,) * 16}, 0, StudySetup(256, 16, SIMULATED),
    ),
    (
        "dlrm", "testbed", dlrm,
        {
            "tables": 12, "rows": 100_000, "width": 32768, "lookups": 1, "bottom": (*(2048,) * 7, 32768),
            "top": (1024,) * 4, "dots": True,
        },
        0, StudySetup(64, 12, 1),
    ),
    ("candle", "dedicated", candle, {}, 0, StudySetup(256, 128, SIMULATED)),
    ("candle", "shared", candle, {"towers": (4096,) * 12, "dense": (4096,) * 8}, 0, StudySetup(256, 16, SIMULATED)),
    ("candle", "testbed", candle, {"towers": (4096,) * 8, "dense": (4096,) * 4}, 0, StudySetup(10, 12, 1)),
    ("bert", "dedicated", bert, {}, 64, StudySetup(16, 128, SIMULATED)),
    ("bert", "shared", bert, {"layers": 6, "hidden": 768, "heads": 12}, 256, StudySetup(16, 16, SIMULATED)),
    ("bert", "testbed", bert, {"layers": 6}, 64, StudySetup(2, 12, 1)),
    ("ncf", "dedicated", ncf, {}, 0, StudySetup(128, 128, SIMULATED)),
    ("vgg16", "dedicated", vgg16, {}, 0, StudySetup(64, 128, SIMULATED)),
    ("vgg16", "shared", vgg16, {}, 0, StudySetup(64, 16, SIMULATED)),
    ("vgg16", "testbed", vgg16, {}, 0, StudySetup(32, 12, 1)),
    ("resnet50", "dedicated", resnet50, {}, 0, StudySetup(128, 128, SIMULATED)),
    ("resnet50", "testbed", resnet50, {}, 0, StudySetup(20, 12, 1)),
)  # fmt: skip
"""Model, part of the study (5.3 dedicated, 5.4 all-to-all, 5.6 shared, 6 testbed), layers, what differs from the
dedicated sizes, tokens in a sample, and how it is run. Not published with its code, only recalled: the batches of DLRM,
VGG16 and ResNet50 on the testbed. NCF has 64 tables of each sort; `tables=32` is the study's smaller edition."""

DEFAULTS: dict[str, dict[str, Option]] = {
    "dlrm": {
        "tables": 64, "rows": 10_000_000, "width": 128, "lookups": 100, "bottom": (2048,) * 8, "top": (4096,) * 16,
        "dots": False,
    },
    "ncf": {"tables": 64, "rows": 1_000_000, "factors": 64, "width": 128, "mlp": (4096,) * 8},
    "candle": {"towers": (16384,) * 16, "dense": (16384,) * 8},
    "bert": {"layers": 12, "hidden": 1024, "heads": 16},
    "vgg16": {"side": 229, "classes": 1000},
    "resnet50": {"side": 229, "classes": 10},
}  # fmt: skip

JOBS: dict[str, StudySetup] = {f"topoopt-{model}-{part}": job for model, part, *_, job in VARIANTS}
"""How the study runs each of the entries, by name."""


def entries() -> list[ZooEntry]:
    """Every model of the study in every variant."""
    return [
        ZooEntry(
            f"topoopt-{model}-{part}", partial(make, **changed), f"{model} of TopoOpt's study, {part}",
            sequence=length, options=DEFAULTS[model] | changed,
        )
        for model, part, make, changed, length, _ in VARIANTS
    ]  # fmt: skip
