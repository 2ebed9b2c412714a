"""The zoo launches what the frameworks launch.

`recorded_launches.json` holds what PyTorch 2.13 dispatched for small models of transformers 5.22 and torchvision, and
for a DLRM, in bfloat16 and training mode: forward, loss and backward, 2 samples of 16 tokens (4 samples for the DLRM,
2 images of side 32 for the vision transformer). A launch is an operation that runs a kernel on CUDA: views do not,
the gradient of a slice or of a negative log-likelihood takes two (zeros, then a copy), and zeros with a scatter into
them are one. `matmuls` lists count, rows, columns, inner and how often; `moved_bytes` sums what all operations but
products, attention and look-ups read and write; `saved_bytes` counts every tensor that autograd keeps once.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from ropewalk.workload import zoo
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.routines import GROUPED_ROUTER
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo import mixture, vit
from ropewalk.workload.zoo.latent import Latent
from ropewalk.workload.zoo.parts import Run
from ropewalk.workload.zoo.shape import Transformer

RECORDED = json.loads(Path(__file__).with_name("recorded_launches.json").read_text())


def tiny(name: str, **sizes: object) -> list[Layer]:
    return list(zoo.build(name, 2, 16, layers=2, hidden=64, heads=4, vocabulary=1000, **sizes).layers)


def deepseek() -> list[Layer]:
    shape = Transformer(2, 64, 4, 1000, 16, 4, 160, tied=False)
    experts = mixture.Mixture(
        8, 2, 48, shared=1, dense=1, router=GROUPED_ROUTER, latent=Latent(24, 16, 16, 8, 16), masked=False
    )
    return mixture.layers(shape, experts, Run(2, 16, dropout=False))


def vision(monkeypatch: pytest.MonkeyPatch) -> list[Layer]:
    monkeypatch.setitem(vit.SHAPES, "tiny", vit.Vision(16, 2, 4, 64, 256))
    return vit.vit("tiny", 2, side=32)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Layer]]:
    small = zoo.build("dlrm", 4, tables=3, rows=50, width=16, lookups=2, bottom=(32,), top=(24, 8, 1))
    return {
        "gpt2": tiny("gpt", positions=32),
        "bert": tiny("bert"),
        "llama": tiny("llama", kv_heads=2, ffn=160),
        "mixtral": tiny("mixtral-8x7b", kv_heads=2, ffn=160, expert_ffn=160, experts_per_layer=4, masked=False),
        "deepseek": deepseek(),
        "xlnet": tiny("xlnet"),
        "dlrm": list(small.layers),
        "vit": vision(monkeypatch),
    }


IMAGES = {
    # Operations that run kernels, forward and backward, of torchvision's models in training mode; convolutions;
    # bytes that autograd keeps for two images of this side in bfloat16.
    "alexnet": (23, 30, 5, 224, 4_425_138),
    "vgg11": (31, 38, 8, 64, 5_158_834),
    "resnet18": (90, 73, 20, 224, 23_827_890),
    "resnet50": (229, 179, 53, 64, 7_368_114),
    "resnet152": (671, 519, 155, 224, None),
    "inception-v3": (409, 338, 94, 299, None),
}


def kernels(layers: list[Layer], way: str) -> list[Kernel]:
    return [kernel for layer in layers for op in layer.operators for kernel in getattr(op, way)()]


APART = {
    # Each of three bags is measured with the numbering of its samples; a convolution's bias is a launch of its own.
    ("dlrm", "forward"): -3,
    ("vit", "forward"): 1,
    ("vit", "backward"): 1,
}


@pytest.mark.parametrize("name", RECORDED)
def test_parameters_are_those_of_the_framework(models: dict[str, list[Layer]], name: str) -> None:
    assert sum(layer.parameters() for layer in models[name]) == RECORDED[name]["parameters"]
    assert sum(layer.parameter_tensors() for layer in models[name]) == RECORDED[name]["tensors"]


@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize("name", RECORDED)
def test_as_many_kernels_are_launched(models: dict[str, list[Layer]], name: str, way: str) -> None:
    assert len(kernels(models[name], way)) == RECORDED[name][way]["launches"] + APART.get((name, way), 0)


@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize("name", RECORDED)
def test_the_same_products_are_computed(models: dict[str, list[Layer]], name: str, way: str) -> None:
    recorded = Counter({tuple(dims): times for *dims, times in RECORDED[name][way]["matmuls"]})
    assert Counter(kernel.dims for kernel in kernels(models[name], way) if kernel.kind == "matmul") == recorded


@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize("name", RECORDED)
def test_about_as_many_bytes_are_moved_between_products(models: dict[str, list[Layer]], name: str, way: str) -> None:
    moved = sum(k.moved_bytes(2) for k in kernels(models[name], way) if k.kind in ("pointwise", "rowwise"))
    assert moved == pytest.approx(RECORDED[name][way]["moved_bytes"], rel=0.1)


@pytest.mark.parametrize("name", [name for name in RECORDED if "saved_bytes" in RECORDED[name]])
def test_about_as_much_is_kept_for_the_backward_pass(models: dict[str, list[Layer]], name: str) -> None:
    saved = sum(layer.saved_bytes(2) for layer in models[name])
    assert saved == pytest.approx(RECORDED[name]["saved_bytes"], rel=0.06)


@pytest.mark.parametrize("name", IMAGES)
def test_image_models_launch_what_torchvision_launches(name: str) -> None:
    """An operation is a launch, but the gradient of a convolution is two (the first has one), that of a likelihood two,
    and a bias adds one forward and one backward."""
    forward, backward, convolutions, side, _ = IMAGES[name]
    layers = list(zoo.build(name, 2, side=side).layers)
    biases = convolutions if name in ("alexnet", "vgg11") else 0
    assert len(kernels(layers, "forward")) == forward + biases
    assert len(kernels(layers, "backward")) == backward + convolutions - 1 + 1 + biases


@pytest.mark.parametrize("name", [name for name in IMAGES if IMAGES[name][-1]])
def test_image_models_keep_what_torchvision_keeps(name: str) -> None:
    *_, side, kept = IMAGES[name]
    saved = sum(layer.saved_bytes(2) for layer in zoo.build(name, 2, side=side).layers)
    assert saved == pytest.approx(kept, rel=0.06)


def test_a_compiled_llama_launches_less_and_computes_the_same_products() -> None:
    written, compiled = (tiny("llama", kv_heads=2, ffn=160, stack=stack) for stack in ("eager", "compiled"))
    assert len(kernels(compiled, "forward")) < len(kernels(written, "forward")) / 1.5
    for way in ("forward", "backward"):
        products = [Counter(k.dims for k in kernels(one, way) if k.kind == "matmul") for one in (written, compiled)]
        assert products[0] == products[1]
    assert sum(layer.parameters() for layer in compiled) == sum(layer.parameters() for layer in written)
