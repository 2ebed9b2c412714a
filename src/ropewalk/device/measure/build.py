"""From a kernel to something that can be run: tensors of the right sizes and the PyTorch call that does the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn

from ropewalk.device.measure.host import OPTIMISERS
from ropewalk.workload.kernel import Kernel

Run = Callable[[], Any]
Room = tuple[str, torch.dtype]
"""Device and element type of the tensors."""
EIGHT_BITS = torch.float8_e4m3fn
"""The numbers of products in FP8; gradients have more exponent and less mantissa."""
GRADIENTS = torch.float8_e5m2
LARGEST = 448.0
"""The largest number of `EIGHT_BITS`."""


def runnable(kernel: Kernel, device: str, dtype: torch.dtype) -> Run:
    """A call that launches this kernel once, on random data."""
    return _BUILDERS[kernel.kind](kernel.form, kernel.dims, (device, dtype))


def _random(room: Room, *shape: int) -> torch.Tensor:
    if room[1].itemsize == 1:
        return _random((room[0], torch.bfloat16), *shape).to(room[1])
    return torch.randn(*shape, device=room[0], dtype=room[1], generator=_dice(room))


def _random_like(tensor: torch.Tensor) -> torch.Tensor:
    return _random((tensor.device.type, tensor.dtype), *tensor.shape)


def _indices(room: Room, count: int, below: int) -> torch.Tensor:
    return torch.randint(below, (count,), device=room[0], generator=_dice(room))


def _dice(room: Room) -> torch.Generator:
    """Randomness of our own: the framework's is unusable for good once a capture that draws from it has failed."""
    return torch.Generator(room[0]).manual_seed(1)


def _matmul(form: str, dims: tuple[int, ...], room: Room) -> Run:
    count, rows, columns, inner = dims
    if room[1] == EIGHT_BITS:
        return _scaled(form, dims, room)
    batch = (count,) if count > 1 else ()
    left = _random(room, *batch, rows, inner) if form != "weight_grad" else _random(room, *batch, inner, rows).mT
    right = _random(room, *batch, columns, inner).mT if form == "forward" else _random(room, *batch, inner, columns)
    return lambda: left @ right


def _scaled(form: str, dims: tuple[int, ...], room: Room) -> Run:
    """A product in FP8: both operands lie along the inner dimension; gradients are added up in full."""
    _, rows, columns, inner = dims
    left = _random((room[0], EIGHT_BITS if form == "forward" else GRADIENTS), rows, inner)
    right = _random(room, columns, inner).t()
    scale, quick = torch.ones((), device=room[0]), form == "forward"
    multiply = torch._scaled_mm
    return lambda: multiply(left, right, scale, scale, out_dtype=torch.bfloat16, use_fast_accum=quick)


def _scaled_groups(form: str, dims: tuple[int, ...], room: Room) -> Run:
    """Experts in FP8; each row and each column of a group has a scale of its own."""
    groups, rows, columns, inner = dims
    ends = torch.arange(1, groups + 1, device=room[0], dtype=torch.int32) * (rows // groups)
    if form == "weight_grad":
        left, right = _random(room, inner, rows), _random(room, columns, rows).t()
        scales = [torch.ones(groups * length, device=room[0]) for length in (inner, columns)]
    else:
        left, right = _random(room, rows, inner), _random(room, groups, columns, inner).mT
        scales = [torch.ones(rows, device=room[0]), torch.ones(groups, columns, device=room[0])]
    multiply = torch._scaled_grouped_mm
    return lambda: multiply(left, right, *scales, offs=ends, out_dtype=torch.bfloat16, use_fast_accum=True)


def _grouped(form: str, dims: tuple[int, ...], room: Room) -> Run:
    groups, rows, columns, inner = dims
    if room[1] == EIGHT_BITS:
        return _scaled_groups(form, dims, room)
    ends = torch.arange(1, groups + 1, device=room[0], dtype=torch.int32) * (rows // groups)
    if form == "weight_grad":
        left, right = _random(room, inner, rows), _random(room, rows, columns)
    else:
        left = _random(room, rows, inner)
        weight = (columns, inner) if form == "forward" else (inner, columns)
        right = _random(room, groups, *weight)
        right = right.mT if form == "forward" else right
    multiply = torch._grouped_mm
    return lambda: multiply(left, right, offs=ends)


def _convolution(form: str, dims: tuple[int, ...], room: Room) -> Run:
    batch, channels, height, width, outputs, k0, k1, s0, s1, p0, p1, groups = dims
    image = _random(room, batch, channels, height, width)
    weight = _random(room, outputs, channels // groups, k0, k1)
    stride, padding, ones = [s0, s1], [p0, p1], [1, 1]
    if form == "forward":
        return lambda: torch.ops.aten.convolution(image, weight, None, stride, padding, ones, False, [0, 0], groups)
    grad = _random_like(torch.ops.aten.convolution(image, weight, None, stride, padding, ones, False, [0, 0], groups))
    mask = [form == "input_grad", form == "weight_grad", False]
    return lambda: torch.ops.aten.convolution_backward(
        grad, image, weight, None, stride, padding, ones, False, [0, 0], groups, mask
    )


def _attention(form: str, dims: tuple[int, ...], room: Room) -> Run:
    batch, heads, kv_heads, queries, keys, size, causal = dims
    query = _random(room, batch, queries, heads, size).transpose(1, 2)
    key, value = (_random(room, batch, keys, kv_heads, size).transpose(1, 2) for _ in range(2))
    grouped = kv_heads != heads
    mask = torch.ones(queries, keys, dtype=torch.bool, device=room[0]).tril() if "_masked" in form else None
    dropout = 0.1 if form.endswith("_dropped") else 0.0

    def forward() -> torch.Tensor:
        return fn.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=bool(causal), enable_gqa=grouped
        )

    if form.startswith("forward"):
        return forward
    inputs = [tensor.requires_grad_() for tensor in (query, key, value)]
    return _gradient(forward(), inputs)


def _gradient(result: torch.Tensor, inputs: list[torch.Tensor]) -> Run:
    grad = _random_like(result)
    return lambda: torch.autograd.grad(result, inputs, grad, retain_graph=True)


def _pointwise(form: str, dims: tuple[int, ...], room: Room) -> Run:
    elements, reads, _ = dims
    tensors = [_random(room, elements) for _ in range(max(reads, 1))]
    if form == "dropout":
        return lambda: torch.native_dropout(tensors[0], 0.1, True)
    if form == "transpose":
        side = max(1, elements // 64)
        strided = tensors[0][: side * 64].view(side, 64).t()
        return lambda: strided.contiguous()
    if form == "permute":
        heads = tensors[0][: elements // 4096 * 4096].view(-1, 64, 64).transpose(0, 1)
        return lambda: heads.contiguous()
    if form == "broadcast":
        rows, weight = tensors[0].view(-1, 64), tensors[1][:64]
        return lambda: rows * weight
    if form == "cat":
        halves = tensors[0].view(-1, 64).chunk(2, 1)
        return lambda: torch.cat(halves, 1)
    if form == "cast":
        return tensors[0].float if room[1] != torch.float32 else tensors[0].bfloat16
    if form == "gelu":
        return lambda: fn.gelu(tensors[0])
    if form == "gelu_backward":
        return lambda: torch.ops.aten.gelu_backward(tensors[0], tensors[1])
    if reads == 0:
        return lambda: tensors[0].zero_()
    if reads == 1:
        return lambda: torch.relu(tensors[0])
    if reads == 2:
        return lambda: torch.add(tensors[0], tensors[1])
    return lambda: torch.addcmul(tensors[0], tensors[1], tensors[2])


def _quantise(form: str, dims: tuple[int, ...], room: Room) -> Run:
    """Narrowing as one kernel, which only a compiler makes of PyTorch's operations, for each size anew."""
    numbers, scale = _random(room, max(1, dims[0] // 1024), 1024), torch.ones((), device=room[0])
    narrow = torch.compile(_NARROWINGS[form], dynamic=False)
    narrow(numbers, scale)
    return lambda: narrow(numbers, scale)


def _largest(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return numbers.abs().amax() * scale


def _narrowed(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (numbers.float() * scale).clamp(-LARGEST, LARGEST).to(EIGHT_BITS)


def _narrowed_both(numbers: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    narrow = _narrowed(numbers, scale)
    return narrow, narrow.t().contiguous()


def _narrowed_block(numbers: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    blocks = numbers.view(numbers.shape[0], -1, 128).float()
    largest = blocks.abs().amax(-1, keepdim=True).clamp(1e-12) / LARGEST
    return (blocks / largest).to(EIGHT_BITS).view(numbers.shape), largest * scale


_NARROWINGS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "amax": _largest,
    "tensor": _narrowed,
    "both": _narrowed_both,
    "block": _narrowed_block,
}


def _rowwise(form: str, dims: tuple[int, ...], room: Room) -> Run:
    rows, width = dims
    x = _random(room, rows, width)
    if form == "column_sum":
        return lambda: x.sum(0)
    if form == "row_mean":
        return lambda: x.mean(-1, keepdim=True)
    name, _, backward = form.partition("_backward")
    weight = torch.ones(width, device=room[0], dtype=room[1], requires_grad=True)
    bias = torch.zeros(width, device=room[0], dtype=room[1], requires_grad=True)
    forward: dict[str, Run] = {
        "layer_norm": lambda: fn.layer_norm(x, (width,), weight, bias),
        "rms_norm": lambda: fn.rms_norm(x, (width,), weight),
        "softmax": lambda: torch.softmax(x, -1),
        "log_softmax": lambda: torch.log_softmax(x, -1),
    }
    if "backward" not in form:
        del backward
        return torch.no_grad()(forward[name])
    x.requires_grad_()
    inputs = [x, *{"layer_norm": [weight, bias], "rms_norm": [weight]}.get(name, [])]
    return _gradient(forward[name](), inputs)


def _batch_norm(form: str, dims: tuple[int, ...], room: Room) -> Run:
    batch, channels, positions = dims
    x = _random(room, batch, channels, positions, 1)
    ones, zeros = (torch.full((channels,), value, device=room[0], dtype=room[1]) for value in (1.0, 0.0))
    running = [zeros.clone(), ones.clone()]

    def forward() -> torch.Tensor:
        return fn.batch_norm(x, running[0], running[1], ones, zeros, training=True)

    if form == "forward":
        return torch.no_grad()(forward)
    return _gradient(forward_of(forward, x, ones, zeros), [x, ones, zeros])


def forward_of(forward: Callable[[], torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    for tensor in inputs:
        tensor.requires_grad_()
    return forward()


def _pool(form: str, dims: tuple[int, ...], room: Room) -> Run:
    batch, channels, height, width, kernel, stride, padding = dims
    x = _random(room, batch, channels, height, width)
    slide = fn.max_pool2d if form.startswith("max") else fn.avg_pool2d

    def forward() -> torch.Tensor:
        return slide(x, kernel, stride, padding)

    if not form.endswith("backward"):
        return torch.no_grad()(forward)
    return _gradient(forward_of(forward, x), [x])


def _embedding(form: str, dims: tuple[int, ...], room: Room) -> Run:
    lookups, width, vocabulary = dims
    index = _indices(room, lookups, vocabulary)
    if form == "forward":
        table = _random(room, vocabulary, width)
        return lambda: fn.embedding(index, table)
    grad = _random(room, lookups, width)
    return lambda: torch.ops.aten.embedding_dense_backward(grad, index, vocabulary, -1, False)


def _embedding_bag(form: str, dims: tuple[int, ...], room: Room) -> Run:
    bags, lookups, width, vocabulary = dims
    index = _indices(room, bags * lookups, vocabulary).view(bags, lookups)
    table = _random(room, vocabulary, width)

    def forward() -> torch.Tensor:
        return fn.embedding_bag(index, table, mode="sum")

    if form == "forward":
        return torch.no_grad()(forward)
    return _gradient(forward_of(forward, table), [table])


def _recurrent(form: str, dims: tuple[int, ...], room: Room) -> Run:
    steps, batch, inputs, hidden = dims
    lstm = torch.nn.LSTM(inputs, hidden, device=room[0], dtype=room[1])
    x = _random(room, steps, batch, inputs)
    if form == "forward":
        return lambda: lstm(x)[0]
    return _gradient(lstm(x.requires_grad_())[0], [x, *lstm.parameters()])


def _optimiser(form: str, dims: tuple[int, ...], room: Room) -> Run:
    parameters, tensors = dims
    each = max(1, parameters // tensors)
    weights = [torch.nn.Parameter(_random(room, each)) for _ in range(tensors)]
    for weight in weights:
        weight.grad = _random_like(weight.detach())
    return OPTIMISERS[form](weights).step


_BUILDERS: dict[str, Callable[[str, tuple[int, ...], Room], Run]] = {
    "matmul": _matmul,
    "grouped_matmul": _grouped,
    "convolution": _convolution,
    "attention": _attention,
    "pointwise": _pointwise,
    "quantise": _quantise,
    "rowwise": _rowwise,
    "batch_norm": _batch_norm,
    "pool": _pool,
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
    "recurrent": _recurrent,
    "optimiser": _optimiser,
}
