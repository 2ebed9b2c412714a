"""PyTorch itself launches what the routines and operators say, in both passes, for code written here."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch, which the extras bring")

import torch
import torch.nn.functional as fn
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Dropout, Normalise, Pointwise
from ropewalk.workload.experts import Experts
from ropewalk.workload.interaction import Interaction
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.loss import BinaryCrossEntropy, CrossEntropy
from ropewalk.workload.lstm import Lstm
from ropewalk.workload.operator import Operator
from ropewalk.workload.routines import GATE, GELU, RMS_NORM, ROTATE, ROTATE_PAIRS, Routine
from ropewalk.workload.written import Written
from ropewalk.workload.zoo.resnet import DEPTHS, residual
from ropewalk.workload.zoo.trail import Image, Trail

pytestmark = pytest.mark.extras

SAMPLES, LENGTH, WIDTH, HEADS = 2, 16, 64, 4
TOKENS, SIZE = SAMPLES * LENGTH, WIDTH // HEADS
SILENT = {"empty", "empty_like", "new_empty", "empty_strided", "detach", "_unsafe_view", "alias"}
SEVERAL = {"slice_backward": 2, "nll_loss_backward": 2, "convolution_backward": 2, "masked_fill": 2}
"""Operations that run more than one kernel on CUDA: zeros and a copy; gradients of an image and of a weight; a copy and
what is set in it."""


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Names of the operations that run kernels, and the sizes of products."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.products: Counter[tuple[int, ...]] = Counter()

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = call(*args, **(kwargs or {}))
        name, returns = call._schema.name.split("::")[1], call._schema.returns
        is_view = returns and returns[0].alias_info is not None and not returns[0].alias_info.is_write
        if name not in SILENT and not is_view:
            self.names.append(name)
        if name in ("mm", "addmm", "bmm"):
            left, right = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)][-2:]
            count = left.shape[0] if name == "bmm" else 1
            self.products[count, left.shape[-2], right.shape[-1], left.shape[-1]] += 1
        return result

    @property
    def launches(self) -> int:
        """Zeros with a scatter into them are one: together they are what the gradient of a look-up does."""
        scattered = Counter(zip(self.names, self.names[1:], strict=False))["new_zeros", "index_put"]
        return sum(SEVERAL.get(name, 1) for name in self.names) - scattered


def recorded(run: Callable[[], Any], inputs: Sequence[Any]) -> tuple[Recorder, Recorder]:
    """What runs forward, and what runs backward to the gradients of these inputs."""
    with Recorder() as forward:
        result = run()
    grad = torch.ones_like(result)
    with Recorder() as backward:
        torch.autograd.grad(result, inputs, grad)
    return forward, backward


def agrees(operators: Sequence[Operator], run: Callable[[], Any], *inputs: Any) -> None:
    """As many launches and the same products in both passes."""
    ways: tuple[list[Kernel], list[Kernel]] = (
        [kernel for operator in operators for kernel in operator.forward()],
        [kernel for operator in operators for kernel in operator.backward()],
    )
    for kernels, seen in zip(ways, recorded(run, inputs), strict=True):
        assert len(kernels) == seen.launches, seen.names
        assert Counter(kernel.dims for kernel in kernels if kernel.kind == "matmul") == seen.products


def rows(*shape: int) -> Any:
    """Activations: the result of something, so that its gradient is needed and nothing is kept for it."""
    return torch.randn(*shape, dtype=torch.bfloat16).requires_grad_()


def test_a_root_mean_square_norm_in_float32() -> None:
    x, scale = rows(SAMPLES, LENGTH, WIDTH), rows(WIDTH)

    def norm() -> Any:
        wide = x.to(torch.float32)
        length = wide.pow(2).mean(-1, keepdim=True)
        return scale * (wide * torch.rsqrt(length + 1e-6)).to(torch.bfloat16)

    agrees([Written(RMS_NORM, TOKENS, WIDTH)], norm, x, scale)


def test_a_rotation_of_halves() -> None:
    x = rows(SAMPLES, LENGTH, WIDTH)
    cos, sin = (torch.randn(1, 1, LENGTH, SIZE, dtype=torch.bfloat16) for _ in range(2))

    def rotate() -> Any:
        heads = x.view(SAMPLES, LENGTH, HEADS, SIZE).transpose(1, 2)
        return heads * cos + turned(heads) * sin

    def turned(heads: Any) -> Any:
        front, back = heads[..., : SIZE // 2], heads[..., SIZE // 2 :]
        return torch.cat((-back, front), -1)

    agrees([Written(ROTATE, TOKENS, WIDTH)], rotate, x)


def test_a_rotation_of_pairs() -> None:
    x = rows(SAMPLES, HEADS, LENGTH, SIZE)
    cos, sin = (torch.randn(1, 1, LENGTH, SIZE // 2, dtype=torch.bfloat16) for _ in range(2))

    def rotate() -> Any:
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.cat((even * cos - odd * sin, odd * cos + even * sin), -1)

    agrees([Written(ROTATE_PAIRS, TOKENS, WIDTH)], rotate, x)


def elementwise(routine: Routine) -> Written:
    return Written(routine, TOKENS, WIDTH)


def test_a_gelu_of_tanh_written_out() -> None:
    x = rows(SAMPLES, LENGTH, WIDTH)
    agrees(
        [elementwise(GELU)], lambda: 0.5 * x * (1 + torch.tanh((2 / pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3)))), x
    )


def test_a_gated_layer() -> None:
    gate, up = rows(SAMPLES, LENGTH, WIDTH), rows(SAMPLES, LENGTH, WIDTH)
    agrees([elementwise(GATE)], lambda: fn.silu(gate) * up, gate, up)


def test_linear_layers_with_their_weights_both_ways_round() -> None:
    x, weight, bias = rows(TOKENS, WIDTH), rows(96, WIDTH), rows(96)
    agrees([Linear(TOKENS, WIDTH, 96)], lambda: fn.linear(x, weight, bias), x, weight, bias)
    turned = rows(WIDTH, 96)
    agrees([Linear(TOKENS, WIDTH, 96, turned=True)], lambda: torch.addmm(bias, x, turned), bias, x, turned)


def test_a_layer_norm_and_dropout() -> None:
    x, weight, bias = rows(TOKENS, WIDTH), rows(WIDTH), rows(WIDTH)
    agrees([Normalise(TOKENS, WIDTH)], lambda: fn.layer_norm(x, (WIDTH,), weight, bias), x, weight, bias)
    agrees([Dropout(TOKENS * WIDTH)], lambda: torch.native_dropout(x, 0.1, True)[0], x)


def test_the_loss_of_a_causal_language_model() -> None:
    logits, words = rows(SAMPLES, LENGTH, 1000), torch.randint(1000, (SAMPLES, LENGTH))

    def loss() -> Any:
        labels = fn.pad(words, (0, 1), value=-100)[..., 1:].contiguous()
        return fn.cross_entropy(logits.float().view(-1, 1000), labels.view(-1))

    forward, backward = recorded(loss, [logits])
    operator = CrossEntropy(TOKENS, 1000, widened=True, shifted=True)
    assert len(operator.forward()) == forward.launches
    assert len(operator.backward()) == backward.launches + 1  # the gradient of the loss itself, a one


def test_the_loss_of_a_classifier() -> None:
    logits, labels = rows(SAMPLES, 1000), torch.randint(1000, (SAMPLES,))
    forward, backward = recorded(lambda: fn.cross_entropy(logits, labels), [logits])
    assert len(CrossEntropy(SAMPLES, 1000).forward()) == forward.launches
    assert len(CrossEntropy(SAMPLES, 1000).backward()) == backward.launches + 1


def test_the_loss_of_a_click() -> None:
    logits, clicks = rows(SAMPLES, 1), torch.rand(SAMPLES, 1, dtype=torch.bfloat16)
    forward, backward = recorded(lambda: fn.binary_cross_entropy(torch.sigmoid(logits), clicks), [logits])
    assert len(BinaryCrossEntropy(SAMPLES).forward()) == forward.launches
    assert len(BinaryCrossEntropy(SAMPLES).backward()) == backward.launches + 1


def test_the_interaction_of_features() -> None:
    features = [rows(SAMPLES, WIDTH) for _ in range(5)]
    low = torch.tril_indices(5, 5, -1)

    def interact() -> Any:
        each = torch.stack(features, 1)
        return torch.cat([features[0], torch.bmm(each, each.mT)[:, low[0], low[1]]], 1)

    agrees([Interaction(SAMPLES, 5, WIDTH)], interact, *features)


def test_grouped_products_of_experts() -> None:
    slots, experts, neurons = 64, 4, 96
    x = rows(slots, WIDTH)
    up, down = rows(experts, 2 * neurons, WIDTH), rows(experts, WIDTH, neurons)
    ends = torch.arange(1, experts + 1, dtype=torch.int32) * (slots // experts)

    def run() -> Any:
        gate, rest = torch._grouped_mm(x, up.transpose(-2, -1), offs=ends).chunk(2, -1)
        return torch._grouped_mm(fn.silu(gate) * rest, down.transpose(-2, -1), offs=ends)

    agrees([Experts(slots, experts, WIDTH, neurons, masked=False)], run, x, up, down)


def test_grouped_products_of_experts_with_slots_set_to_zero_around_them() -> None:
    slots, experts, neurons = 64, 4, 96
    x = rows(slots, WIDTH)
    up, down = rows(experts, 2 * neurons, WIDTH), rows(experts, WIDTH, neurons)
    ends = torch.arange(1, experts + 1, dtype=torch.int32) * (slots // experts)
    without = torch.zeros(slots, 1, dtype=torch.bool)

    def run() -> Any:
        tokens = x.clone().masked_fill_(without, 0.0)
        first = torch._grouped_mm(tokens, up.transpose(-2, -1), offs=ends).masked_fill(without, 0.0)
        gate, rest = first.chunk(2, -1)
        return torch._grouped_mm(fn.silu(gate) * rest, down.transpose(-2, -1), offs=ends).masked_fill(without, 0.0)

    copied = Pointwise(slots * WIDTH, backward_passes=0)
    agrees([copied, Experts(slots, experts, WIDTH, neurons)], run, x, up, down)


@pytest.mark.parametrize(("depth", "stride"), [("resnet18", 1), ("resnet18", 2), ("resnet50", 2)])
def test_a_residual_block(depth: str, stride: int) -> None:
    channels = 64 * DEPTHS[depth].expansion
    width = 64 * stride
    outputs = width * DEPTHS[depth].expansion
    main: list[nn.Module] = []

    def add(inputs: int, results: int, kernel: int, step: int, *, last: bool = False) -> None:
        main.extend((nn.Conv2d(inputs, results, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(results)))
        main.extend(() if last else (nn.ReLU(inplace=True),))

    if depth == "resnet18":
        add(channels, width, 3, stride)
        add(width, outputs, 3, 1, last=True)
    else:
        add(channels, width, 1, 1)
        add(width, width, 3, stride)
        add(width, outputs, 1, 1, last=True)
    path = nn.Sequential(*main)
    shortcut = nn.Sequential(nn.Conv2d(channels, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
    changes = stride > 1
    image = torch.randn(2, channels, 8, 8).requires_grad_()

    def run() -> Any:
        out = path(image)
        out += shortcut(image) if changes else image
        return fn.relu(out, inplace=True)

    trail = residual(Trail(Image(2, channels, 8, 8)), DEPTHS[depth], width, stride)
    modules = [path, shortcut] if changes else [path]
    weights = [weight for module in modules for weight in module.parameters()]
    agrees(trail.operators, run, image, *weights)
    assert sum(operator.parameters() for operator in trail.operators) == sum(weight.numel() for weight in weights)
    assert sum(operator.parameter_tensors() for operator in trail.operators) == len(weights)


def test_the_parameters_of_a_recurrent_layer() -> None:
    layer = nn.LSTM(96, 64)
    assert Lstm(10, 2, 96, 64).parameters() == sum(weight.numel() for weight in layer.parameters())
    assert Lstm(10, 2, 96, 64).parameter_tensors() == len(list(layer.parameters()))
