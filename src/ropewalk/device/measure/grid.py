"""Which kernels are measured: sizes spread over what models ask for, plus the shapes that networks are made of.

Every shape is drawn from a formula or a seeded generator, so the grid is the same on every machine. `small` keeps the
kernels that a laptop runs in a minute.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

from ropewalk.workload import kernel as k
from ropewalk.workload.kernel import Kernel

MOST_FLOPS = 3e12
MOST_ELEMENTS = 6e8
SMALL_FLOPS = 2e9
SMALL_ELEMENTS = 4e6

WIDTHS = (64, 128, 256, 512, 768, 1024, 1280, 1600, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 11008, 14336, 16384)
ROWS = (64, 128, 256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 16384, 32768, 65536, 131072)
FORMS = ("forward", "input_grad", "weight_grad")


def grid(*, small: bool = False) -> list[Kernel]:
    """All kernels to measure, without repeats, in a fixed order."""
    flops, elements = (SMALL_FLOPS, SMALL_ELEMENTS) if small else (MOST_FLOPS, MOST_ELEMENTS)
    every = itertools.chain(
        linears(), vocabularies(), batched(), experts(), convolutions(),
        attentions(), narrowings(), pointwises(), rowwises(), batch_norms(),
        pools(), embeddings(), bags(), recurrents(), optimisers(),
    )  # fmt: skip
    chosen = dict.fromkeys(
        kernel
        for kernel in every
        if kernel.flops <= flops
        and (
            kernel.elements_read + kernel.elements_written <= elements * 4 or (kernel.kind == "optimiser" and not small)
        )
    )
    return list(chosen)


def measured_in(precision: str, kernels: Iterable[Kernel], *, gpu: bool) -> list[Kernel]:
    """The kernels of the grid to measure in one precision: what differs from another precision, and what there is."""
    if precision == "fp8":
        return [kernel for kernel in kernels if kernel.kind in EIGHT_BIT_KINDS and _in_sixteens(kernel)]
    if precision == "fp32":  # what multiplies nothing is the same as in tf32
        kernels = [kernel for kernel in kernels if kernel.kind in k.PRODUCTS]
    return [kernel for kernel in kernels if kernel.kind != "quantise" or (gpu and precision == "bf16")]


EIGHT_BIT_KINDS = ("matmul", "grouped_matmul")
"""What FP8 multiplies: linear layers and experts."""


def _in_sixteens(kernel: Kernel) -> bool:
    """Products in FP8 take one pair of matrices whose sides are multiples of 16."""
    groups, rows, columns, inner = kernel.dims
    sides = (rows // groups, columns, inner) if kernel.kind == "grouped_matmul" else (rows, columns, inner)
    return all(side % 16 == 0 for side in sides) and (kernel.kind == "grouped_matmul" or groups == 1)


def linears() -> list[Kernel]:
    """Linear layers: four to one, square, one to four and random pairs of widths, at every number of rows."""
    draw = random.Random(1)
    pairs = (
        {(w, w) for w in WIDTHS} | {(w, 4 * w) for w in WIDTHS if w <= 8192} | {(4 * w, w) for w in WIDTHS if w <= 8192}
    )
    pairs |= {(w, 3 * w) for w in WIDTHS if w <= 5120} | {(draw.choice(WIDTHS), draw.choice(WIDTHS)) for _ in range(24)}
    cases = [(rows, *pair) for pair in sorted(pairs) for rows in ROWS]
    draw.shuffle(cases)
    kept = cases[: len(cases) * 3 // 5]
    return [linear(form, *case) for case in sorted(kept) for form in FORMS]


def linear(form: str, rows: int, inputs: int, outputs: int) -> Kernel:
    """One of the three products of a linear layer."""
    shape = {
        "forward": (rows, outputs, inputs),
        "input_grad": (rows, inputs, outputs),
        "weight_grad": (outputs, inputs, rows),
    }
    return k.matmul(form, *shape[form])


def vocabularies() -> list[Kernel]:
    """The last layer of language models, whose width is often odd, and of classifiers, which are narrow."""
    words = (1000, 10, 1, 21843, 28996, 30522, 32000, 32128, 50257, 50265, 50304, 51200, 128256)
    rows, hidden = (32, 128, 512, 2048, 4096, 8192, 16384), (768, 1024, 1280, 1600, 2048, 4096)
    cases = [(r, h, w) for r in rows for h in hidden for w in words if r * h * w <= MOST_FLOPS / 2]
    random.Random(2).shuffle(cases)
    return [linear(form, *case) for case in sorted(cases[:140]) for form in FORMS]


def batched(count: int = 90) -> list[Kernel]:
    """Many small products at once: attention that writes its scores, interaction of features, experts."""
    draw = random.Random(3)
    kernels = []
    for _ in range(count):
        heads, length, size = (
            draw.choice((16, 32, 64, 96, 128, 256, 512)),
            draw.choice((64, 128, 256, 512, 1024, 2048)),
            draw.choice((32, 64, 80, 96, 128)),
        )
        kernels += [
            k.matmul("forward", length, length, size, heads),
            k.matmul("input_grad", length, size, length, heads),
            k.matmul("weight_grad", length, size, length, heads),
        ]
    for bags, rows, size in itertools.product((512, 2048, 8192), (9, 27), (16, 64, 128)):
        kernels += [k.matmul("forward", rows, rows, size, bags), k.matmul("input_grad", rows, size, rows, bags)]
    return [kernel for kernel in kernels if kernel.elements_written + kernel.elements_read < MOST_ELEMENTS * 4]


def experts() -> list[Kernel]:
    """Experts of a mixture: the rows of each group meet a matrix of their own."""
    shapes = [
        (8, 64, 256),
        (8, 4096, 28672),
        (8, 14336, 4096),
        (8, 1024, 7168),
        (8, 3584, 1024),
        (64, 2048, 2816),
        (64, 1408, 2048),
    ]
    shapes += [
        (groups, *ends)
        for groups in (4, 16, 32, 64, 128)
        for hidden, neurons in ((2048, 768), (4096, 1536), (5120, 1536), (7168, 2048), (2880, 2880))
        for ends in ((hidden, 2 * neurons), (neurons, hidden))
    ]
    return [
        k.grouped_matmul(form, groups, rows, *ends)
        for groups, inputs, outputs in shapes
        for rows in (1024, 4096, 8192, 16384, 32768, 65536)
        for form, ends in (
            ("forward", (outputs, inputs)),
            ("input_grad", (inputs, outputs)),
            ("weight_grad", (outputs, inputs)),
        )
    ]


IMAGE_LAYERS = (
    # channels, side, outputs, kernel, stride, padding, groups
    (3, 224, 64, 7, 2, 3, 1), (3, 224, 64, 3, 1, 1, 1), (3, 224, 64, 11, 4, 2, 1), (3, 299, 32, 3, 2, 0, 1),
    (3, 224, 768, 16, 16, 0, 1), (3, 224, 1024, 16, 16, 0, 1), (3, 224, 32, 3, 2, 1, 1),
    (64, 224, 64, 3, 1, 1, 1), (64, 112, 128, 3, 1, 1, 1), (128, 112, 128, 3, 1, 1, 1), (128, 56, 256, 3, 1, 1, 1),
    (256, 56, 256, 3, 1, 1, 1), (256, 28, 512, 3, 1, 1, 1), (512, 28, 512, 3, 1, 1, 1), (512, 14, 512, 3, 1, 1, 1),
    (64, 56, 64, 1, 1, 0, 1), (64, 56, 64, 3, 1, 1, 1), (64, 56, 256, 1, 1, 0, 1), (256, 56, 64, 1, 1, 0, 1),
    (256, 56, 128, 1, 1, 0, 1), (128, 56, 128, 3, 2, 1, 1), (128, 28, 512, 1, 1, 0, 1), (256, 56, 512, 1, 2, 0, 1),
    (512, 28, 128, 1, 1, 0, 1), (128, 28, 128, 3, 1, 1, 1), (512, 28, 256, 1, 1, 0, 1), (256, 28, 256, 3, 2, 1, 1),
    (256, 14, 1024, 1, 1, 0, 1), (512, 28, 1024, 1, 2, 0, 1), (1024, 14, 256, 1, 1, 0, 1), (256, 14, 256, 3, 1, 1, 1),
    (1024, 14, 512, 1, 1, 0, 1), (512, 14, 512, 3, 2, 1, 1), (512, 7, 2048, 1, 1, 0, 1), (1024, 14, 2048, 1, 2, 0, 1),
    (2048, 7, 512, 1, 1, 0, 1), (512, 7, 512, 3, 1, 1, 1), (64, 27, 192, 5, 1, 2, 1), (192, 13, 384, 3, 1, 1, 1),
    (384, 13, 256, 3, 1, 1, 1), (256, 13, 256, 3, 1, 1, 1), (64, 56, 128, 3, 2, 1, 1), (64, 56, 128, 1, 2, 0, 1),
    (32, 149, 32, 3, 1, 0, 1), (32, 147, 64, 3, 1, 1, 1), (64, 73, 80, 1, 1, 0, 1), (80, 73, 192, 3, 1, 0, 1),
    (192, 35, 64, 1, 1, 0, 1), (48, 35, 64, 5, 1, 2, 1), (96, 35, 96, 3, 1, 1, 1), (288, 35, 384, 3, 2, 0, 1),
    (768, 17, 192, 1, 1, 0, 1), (1280, 8, 320, 1, 1, 0, 1), (448, 8, 384, 3, 1, 1, 1), (2048, 8, 320, 1, 1, 0, 1),
    (128, 56, 128, 3, 1, 1, 32), (256, 28, 256, 3, 1, 1, 32), (96, 56, 96, 3, 1, 1, 96), (576, 14, 576, 3, 1, 1, 576),
)  # fmt: skip


def convolutions() -> list[Kernel]:
    """Layers of image networks at several batches, and random ones between them."""
    cases = [(batch, *layer) for layer in IMAGE_LAYERS for batch in (4, 16, 32, 64, 128, 256)]
    draw = random.Random(4)
    for _ in range(40):
        side, kernel = draw.choice((7, 14, 17, 28, 35, 56)), draw.choice((1, 3, 3, 5))
        channels, outputs = (draw.choice((32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024)) for _ in "io")
        cases.append(
            (draw.choice((8, 24, 48, 96, 192)), channels, side, outputs, kernel, draw.choice((1, 1, 2)), kernel // 2, 1)
        )
    kernels = [
        k.convolution(form, batch, channels, side, side, outputs, (size, size), (stride, stride), (pad, pad), groups)
        for batch, channels, side, outputs, size, stride, pad, groups in cases
        for form in FORMS
        if not (form == "input_grad" and channels == 3)
    ]
    for batch, (window, pad) in itertools.product(
        (16, 64, 128), (((1, 7), (0, 3)), ((7, 1), (3, 0)), ((1, 3), (0, 1)))
    ):
        kernels += [k.convolution(form, batch, 160, 17, 17, 192, window, (1, 1), pad) for form in FORMS]
    return kernels


def attentions() -> list[Kernel]:
    heads = (
        (12, 12, 64),
        (16, 16, 64),
        (25, 25, 64),
        (32, 32, 128),
        (32, 8, 128),
        (16, 16, 128),
        (40, 40, 128),
        (8, 8, 64),
        (4, 4, 64),
        (12, 12, 80),
        (32, 8, 64),
        (64, 8, 128),
        (16, 4, 64),
    )
    cases = [
        (batch, *head, length, causal)
        for head in heads
        for length in (128, 197, 256, 512, 1024, 2048, 4096, 8192)
        for batch in (1, 4, 8, 16, 64)
        for causal in (False, True)
        if 2**9 <= batch * length <= 2**16 and not (length == 197 and causal)
    ]
    random.Random(5).shuffle(cases)
    long = [(1, heads, kv, 128, length, True) for heads, kv in ((4, 1), (8, 1), (8, 8)) for length in (16384, 32768)]
    return (
        [
            k.attention(form, batch, many, few, length, length, size, causal)
            for batch, many, few, size, length, causal in [*sorted(cases[:200]), *long]
            for form in ("forward", "backward")
        ]
        + [
            k.attention(form, batch, *heads, length, length, 128, causal=False)
            for heads in ((8, 8), (32, 32), (32, 8))
            for batch, length in ((1, 8192), (2, 4096), (4, 2048), (1, 256))
            for form in ("forward_masked", "backward_masked")
        ]
        + [
            k.attention(form, batch, heads, heads, length, length, 64, causal and "_masked" not in form)
            for batch, heads, length, causal in (
                (32, 16, 384, False),
                (8, 25, 1024, True),
                (128, 12, 197, False),
                (1, 4, 128, False),
            )
            for form in ("forward_dropped", "backward_dropped", "forward_masked_dropped", "backward_masked_dropped")
        ]
    )


def narrowings() -> list[Kernel]:
    """Tensors of 16 bits that become operands of products in FP8."""
    return [k.quantise(form, 2**power) for form in k.QUANTISED_BYTES for power in (17, 20, 22, 24, 26, 28)]


def pointwises() -> list[Kernel]:
    sizes = [int(2 ** (power / 2)) // 4096 * 4096 for power in range(24, 58)]
    forms = [("map", 0), ("map", 1), ("map", 2), ("map", 3), ("gelu", 1), ("gelu_backward", 2), ("transpose", 1)]
    forms += [("permute", 1), ("broadcast", 2), ("cat", 1), ("cast", 1), ("dropout", 1)]
    return [k.rebuilt("pointwise", form, (size, reads, 1)) for size in sizes for form, reads in forms]


def rowwises() -> list[Kernel]:
    shapes = [
        (rows, width)
        for rows in (128, 512, 2048, 4096, 8192, 16384, 65536)
        for width in (64, 256, 768, 1024, 1600, 2048, 4096, 8192)
    ]
    passes = {
        "layer_norm": (1, 1), "layer_norm_backward": (2, 1), "rms_norm": (1, 1), "rms_norm_backward": (2, 1),
        "softmax": (1, 1), "softmax_backward": (2, 1), "column_sum": (1, 0), "row_mean": (1, 0),
    }  # fmt: skip
    kernels = [k.rowwise(form, *shape, *tensors) for form, tensors in passes.items() for shape in shapes]
    words = [
        (rows, width) for rows in (32, 128, 512, 2048, 8192, 16384) for width in (1000, 30522, 32000, 50257, 128256)
    ]
    kernels += [k.rowwise("log_softmax", *shape, 1, 1) for shape in words]
    kernels += [k.rowwise("log_softmax_backward", *shape, 2, 1) for shape in words]
    return kernels


def batch_norms() -> list[Kernel]:
    shapes = [
        (64, 12544),
        (64, 3136),
        (256, 3136),
        (128, 3136),
        (128, 784),
        (512, 784),
        (256, 196),
        (1024, 196),
        (512, 49),
        (2048, 49),
        (32, 21609),
        (192, 1225),
    ]
    return [
        k.batch_norm(form, batch, *shape)
        for form in ("forward", "backward")
        for shape in shapes
        for batch in (4, 16, 32, 64, 128, 256)
    ]


def pools() -> list[Kernel]:
    maxima = [
        (64, 112, 3, 2, 1),
        (64, 224, 2, 2, 0),
        (128, 112, 2, 2, 0),
        (256, 56, 2, 2, 0),
        (512, 28, 2, 2, 0),
        (64, 55, 3, 2, 0),
        (192, 71, 3, 2, 0),
        (288, 35, 3, 2, 0),
    ]
    averages = [(192, 35, 3, 1, 1), (768, 17, 3, 1, 1), (2048, 8, 8, 1, 0), (2048, 7, 7, 1, 0), (512, 7, 7, 1, 0)]
    return [
        k.pool(name + suffix, batch, channels, side, side, window, stride, pad)
        for name, shapes in (("max", maxima), ("average", averages))
        for channels, side, window, stride, pad in shapes
        for batch in (8, 32, 128)
        for suffix in ("", "_backward")
    ]


def embeddings() -> list[Kernel]:
    shapes = itertools.product((512, 2048, 8192, 32768), (64, 768, 1024, 2048, 4096), (1024, 32000, 50257, 128256))
    return [k.embedding(form, *shape) for shape in shapes for form in ("forward", "backward")]


def bags() -> list[Kernel]:
    shapes = itertools.product((512, 2048, 8192, 32768), (1, 10, 60), (16, 64, 128), (10_000, 1_000_000))
    return [k.embedding_bag(form, *shape) for shape in shapes for form in ("forward", "backward")]


def recurrents() -> list[Kernel]:
    shapes = itertools.product(
        (10, 25, 50), (8, 32, 64, 128, 256), ((128, 128), (512, 512), (1024, 1024), (2048, 1024))
    )
    return [
        k.recurrent(form, steps, batch, *widths) for steps, batch, widths in shapes for form in ("forward", "backward")
    ]


def optimisers() -> list[Kernel]:
    """Few large tensors, so that the GPU is what takes the time; the host's time is measured on many small ones."""
    sizes = ((2**14, 1), (2**18, 1), (2**20, 1), (2**23, 2), (2**26, 4), (2**28, 8), (2**30, 16))
    return [k.optimiser(form, size, count) for form in k.OPTIMISER_PASSES for size, count in sizes]
