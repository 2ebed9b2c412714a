"""Kernels: the pieces of work that a GPU is handed one after the other, by kind, form and size.

A kernel has no time. It says what is computed (`kind`, `form`, `dims`), how much arithmetic that is and how many bytes
it must move at least; a device prices it. Elements have no type either until they are priced: `elements_read` and
`elements_written` are counted in elements of the step's precision, `bytes_fixed` in bytes whatever the precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch on the GPU (or a fixed small family of launches that always come together)."""

    kind: str
    form: str
    dims: tuple[int, ...]
    flops: float = 0.0
    elements_read: float = 0.0
    elements_written: float = 0.0
    bytes_fixed: float = 0.0
    exact: bool = False
    """It keeps the step's precision where other products are narrowed to 8 bits or fewer."""
    handed: bool = False
    """Where products are narrow, the kernel before it hands it its operand narrow."""
    apart: bool = False
    """Each group of a grouped product is a launch of its own, as Transformer Engine multiplies experts."""
    wide: bool = False
    """A product of float32 numbers whatever the step's precision."""
    draws: float = 0.0
    """Random numbers that are made one by one, as torch.compile's kernels make them."""

    def moved_bytes(self, element_bytes: float) -> float:
        """Bytes that must cross the memory of the GPU at least."""
        return (self.elements_read + self.elements_written) * element_bytes + self.bytes_fixed


def matmul(
    form: str, rows: int, columns: int, inner: int, count: int = 1, *, exact: bool = False, wide: bool = False
) -> Kernel:
    """`count` products [rows, inner] x [inner, columns].

    The form says how the operands lie in memory, as the three products of a linear layer have them: `forward`
    (x Wᵀ), `input_grad` (dy W) and `weight_grad` (dyᵀ x).

    >>> matmul("forward", 1024, 4096, 1024).flops == 2 * 1024**2 * 4096
    True
    """
    read = count * (rows * inner + inner * columns)
    return Kernel(
        "matmul",
        form,
        (count, rows, columns, inner),
        2.0 * count * rows * columns * inner,
        read,
        count * rows * columns,
        exact=exact or count > 1,
        wide=wide,
    )


def accumulation(weights: int, gradient_bytes: float = 4.0) -> Kernel:
    """What it takes beyond a product to add its result to gradients that are already there.

    They are read and written, in float32 unless told, where the product alone writes 16 bits.
    """
    return Kernel("pointwise", "map", (weights, 1, 1), weights, bytes_fixed=(2 * gradient_bytes - 2.0) * weights)


def grouped_matmul(
    form: str, groups: int, rows: int, columns: int, inner: int, *, exact: bool = False, handed: bool = False,
    apart: bool = False,
) -> Kernel:  # fmt: skip
    """Products of `rows` vectors in all with one matrix for each of `groups` groups, as the experts of a layer do.

    `weight_grad` sums over the rows of each group: [inner, rows of the group] x [rows of the group, columns].
    """
    weights = groups * inner * columns
    read, written = (
        (rows * (inner + columns), weights) if form == "weight_grad" else (rows * inner + weights, rows * columns)
    )
    flops = 2.0 * rows * columns * inner
    dims = groups, rows, columns, inner
    return Kernel("grouped_matmul", form, dims, flops, read, written, exact=exact, handed=handed, apart=apart)


def convolution(
    form: str, batch: int, channels: int, height: int, width: int, outputs: int, kernel: tuple[int, int],
    stride: tuple[int, int], padding: tuple[int, int], groups: int = 1,
) -> Kernel:  # fmt: skip
    """A 2-D convolution or one of its two gradients: `forward`, `input_grad`, `weight_grad`."""
    high, wide = convolved(height, kernel[0], stride[0], padding[0]), convolved(width, kernel[1], stride[1], padding[1])
    image, result = batch * channels * height * width, batch * outputs * high * wide
    weight = outputs * (channels // groups) * kernel[0] * kernel[1]
    flops = 2.0 * result * (channels // groups) * kernel[0] * kernel[1]
    written = {"forward": result, "input_grad": image, "weight_grad": weight}[form]
    dims = (batch, channels, height, width, outputs, *kernel, *stride, *padding, groups)
    return Kernel("convolution", form, dims, flops, image + result + weight - written, written)


def convolved(size: int, kernel: int, stride: int, padding: int) -> int:
    """Length of one side of the image behind a convolution or a pool.

    >>> convolved(224, 7, 2, 3)
    112
    """
    return (size + 2 * padding - kernel) // stride + 1


def attention(
    form: str, batch: int, heads: int, kv_heads: int, queries: int, keys: int, size: int, causal: bool, window: int = 0
) -> Kernel:
    """Fused attention that never writes its scores to memory: `forward`, or `backward`, which computes them again.

    Under a `window` a query meets no more keys than it has tokens. `forward_masked` and `backward_masked` read a mask
    and skip nothing that it hides; forms that end in `_dropped` make a random number for every pair.

    >>> attention("forward", 1, 1, 1, 8192, 8192, 64, True, 1024).flops / (4 * 8192 * 64)
    960.0
    """
    forward = form.startswith("forward")
    seen = window * (1.0 - window / (2.0 * keys)) if window else keys * (0.5 if causal else 1.0)
    pairs = batch * heads * queries * seen
    query, key = batch * heads * queries * size, batch * kv_heads * keys * size
    read, written = (query + 2 * key, query) if forward else (3 * query + 2 * key, query + 2 * key)
    products = 2 if forward else 5
    dims = (batch, heads, kv_heads, queries, keys, size, int(causal), *((window,) if window else ()))
    return Kernel("attention", form, dims, 2.0 * products * pairs * size, read, written)


def pointwise(form: str, elements: int, reads: float = 1, writes: float = 1, bytes_fixed: float = 0.0) -> Kernel:
    """Arithmetic on every element: `reads` tensors in, `writes` out, of `elements` elements each."""
    dims = (elements, math.ceil(reads), math.ceil(writes))
    return Kernel("pointwise", form, dims, elements, reads * elements, writes * elements, bytes_fixed)


def cast(elements: int) -> Kernel:
    """From the step's precision to float32 or back; where the step is float32 there is nothing to do.

    A device must price it at zero there: the form `cast` says so.
    """
    return Kernel("pointwise", "cast", (elements, 1, 1), elements, elements, 0.0, 4.0 * elements)


def quantise(form: str, elements: int) -> Kernel:
    """From 16 bits to 8 with a scale: what a product in FP8 asks of its operands.

    `amax` finds the largest number of a tensor; `tensor` scales by one number and narrows, `both` does so into two
    layouts, as Hopper's products need for gradients; `block` scales every 128 numbers of a row by their own largest.
    """
    return Kernel("quantise", form, (elements,), elements, elements, 0.0, QUANTISED_BYTES[form] * elements)


QUANTISED_BYTES = {"amax": 0.0, "tensor": 1.0, "both": 2.0, "block": 1.0}
"""Bytes written for each number, by form."""


def rowwise(form: str, rows: int, width: int, reads: float, writes: float) -> Kernel:
    """Normalisation, softmax and sums along rows: `reads` tensors in, `writes` out, of rows x width each."""
    return Kernel("rowwise", form, (rows, width), 5.0 * rows * width, reads * rows * width, writes * rows * width)


def batch_norm(form: str, batch: int, channels: int, positions: int) -> Kernel:
    """Normalisation of every channel over the batch: `forward` with statistics, `backward` with both sums."""
    elements = batch * channels * positions
    reads = 2 if form == "forward" else 4
    return Kernel("batch_norm", form, (batch, channels, positions), 10.0 * elements, reads * elements, elements)


def pool(
    form: str, batch: int, channels: int, height: int, width: int, kernel: int, stride: int, padding: int
) -> Kernel:
    """A window that slides over an image: `max`, `max_backward`, `average`, `average_backward`."""
    high, wide = convolved(height, kernel, stride, padding), convolved(width, kernel, stride, padding)
    image, result = batch * channels * height * width, batch * channels * high * wide
    read, written = (result, image) if form.endswith("backward") else (image, result)
    index = 8.0 * result if form.startswith("max") else 0.0
    dims = (batch, channels, height, width, kernel, stride, padding)
    return Kernel("pool", form, dims, image, read, written, index)


def embedding(form: str, lookups: int, width: int, vocabulary: int) -> Kernel:
    """Rows of a table: `forward` gathers them, `backward` adds gradients into a zeroed table of the same size."""
    rows = lookups * width
    written = rows if form == "forward" else rows + vocabulary * width
    return Kernel("embedding", form, (lookups, width, vocabulary), rows, rows, written, 8.0 * lookups)


def embedding_bag(form: str, bags: int, lookups: int, width: int, vocabulary: int) -> Kernel:
    """Sums of `lookups` rows of a table for each bag, as recommendation models do; `backward` fills a dense table."""
    rows = bags * lookups * width
    read, written = (rows, bags * width) if form == "forward" else (bags * width, rows + vocabulary * width)
    dims = (bags, lookups, width, vocabulary)
    return Kernel("embedding_bag", form, dims, rows, read, written, 8.0 * bags * lookups)


def recurrent(form: str, steps: int, batch: int, inputs: int, hidden: int) -> Kernel:
    """One LSTM layer over a sequence: `forward` or `backward`, all steps in one call."""
    weights = 4 * hidden * (inputs + hidden)
    flops = 2.0 * steps * batch * weights * (1 if form == "forward" else 2)
    states = steps * batch * (inputs + 6 * hidden)
    dims = (steps, batch, inputs, hidden)
    return Kernel("recurrent", form, dims, flops, states + steps * weights, states)


def optimiser(form: str, parameters: int, tensors: int) -> Kernel:
    """The update of all parameters in place; the form names the optimiser and how it is carried out."""
    read, written = OPTIMISER_PASSES[form]
    return Kernel("optimiser", form, (parameters, tensors), 10.0 * parameters, read * parameters, written * parameters)


ATTENTION_TILE = 128
"""Keys that fused attention reads at once: a window that begins within a tile costs all of it."""


def windowed_span(kernel: Kernel) -> int:
    """Keys that a tile of queries meets where attention has a window; 0 where it has none."""
    return kernel.dims[7] + ATTENTION_TILE if len(kernel.dims) > 7 else 0


MASKED = "_masked"
"""What forms of attention have in their names that read a mask and skip nothing that it hides."""
DROPPED = "_dropped"
"""How forms of attention end that drop scores at random."""
UNEVEN = "_uneven"
"""How forms of attention end whose queries and keys have more numbers than its values, as latent attention has them."""


def evened(kernel: Kernel) -> Kernel | None:
    """The same attention if all of its heads had their mean size; None for all other kernels."""
    return replace(kernel, form=kernel.form.removesuffix(UNEVEN)) if kernel.form.endswith(UNEVEN) else None


def undropped(kernel: Kernel) -> Kernel | None:
    """The kernel that drops no scores, of one that does; None of all others."""
    return replace(kernel, form=kernel.form.removesuffix(DROPPED)) if kernel.form.endswith(DROPPED) else None


def scan(form: str, batch: int, length: int, heads: int, size: int, state: int, groups: int, chunk: int) -> Kernel:
    """The scan of a Mamba-2 layer in chunks, a family of Triton kernels: `forward`, or `backward`, which makes the
    states of chunks and how their tokens see each other anew.

    Four products in chunks: what tokens write into states, how they see each other, what they take of each other and
    of the state before the chunk.
    """
    tokens, seen = batch * length, min(chunk, length)
    own, shared = tokens * heads * size, tokens * groups * state
    forward = 2.0 * (own * (2 * state + seen) + shared * seen)
    again = 2.0 * (own * state + shared * seen)
    states = -(-length // seen) * batch * heads * size * state
    flops, passes = (forward, 1) if form == "forward" else (2 * forward + again, 3)
    read, written = passes * own + 2 * passes * shared, passes * own
    dims = (batch, length, heads, size, state, groups, chunk)
    return Kernel("scan", form, dims, flops, read, written, 8.0 * passes * states)


PRODUCTS = ("matmul", "grouped_matmul", "convolution", "attention", "recurrent")
"""Kinds whose time depends on how numbers are multiplied, not only on how they are kept."""

OPTIMISER_PASSES = {
    "sgd": (2, 1),
    "momentum": (4, 3),
    "adamw_fused": (4, 3),
    "adamw_loop": (12, 8),
}
"""Tensors of the size of the parameters that an update reads and writes; `momentum` and `adamw_loop` go over them
several times, an operation at a time."""


ROWWISE_PASSES = {
    "layer_norm": (1, 1), "layer_norm_backward": (2, 1), "rms_norm": (1, 1), "rms_norm_backward": (2, 1),
    "softmax": (1, 1), "softmax_backward": (2, 1), "log_softmax": (1, 1), "log_softmax_backward": (2, 1),
    "column_sum": (1, 0), "row_mean": (1, 0),
}  # fmt: skip
"""Tensors of rows x width that the measured forms read and write."""


def rebuilt(kind: str, form: str, dims: tuple[int, ...]) -> Kernel:
    """The kernel that stands in a table under this kind, form and sizes.

    >>> rebuilt("matmul", "forward", (1, 2, 3, 4)) == matmul("forward", 2, 3, 4)
    True
    """
    return _REBUILD[kind](form, *dims)


_REBUILD: dict[str, Callable[..., Kernel]] = {
    "matmul": lambda form, count, rows, columns, inner: matmul(form, rows, columns, inner, count),
    "grouped_matmul": grouped_matmul,
    "convolution": lambda form, n, c, h, w, out, k0, k1, s0, s1, p0, p1, groups: convolution(
        form, n, c, h, w, out, (k0, k1), (s0, s1), (p0, p1), groups
    ),
    "attention": lambda form, batch, heads, kv_heads, queries, keys, size, causal, window=0: attention(
        form, batch, heads, kv_heads, queries, keys, size, bool(causal), window
    ),
    "pointwise": lambda form, elements, reads, writes: (
        cast(elements)
        if form == "cast"
        else pointwise(form, elements, reads, writes, elements if form == "dropout" else 0.0)
    ),
    "quantise": quantise,
    "rowwise": lambda form, rows, width: rowwise(form, rows, width, *ROWWISE_PASSES[form]),
    "batch_norm": batch_norm,
    "pool": pool,
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "recurrent": recurrent,
    "optimiser": optimiser,
}
