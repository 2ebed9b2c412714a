"""Pairs of an encoder of images and a language model: what images add, and what a frozen encoder saves."""

from __future__ import annotations

import pytest

from ropewalk.errors import StrategyError, WorkloadError
from ropewalk.strategy import Strategy, check, shares_of
from ropewalk.workload.workload import Layer
from ropewalk.workload.zoo import build

SMALL = "llava-1.5-7b:layers=1"


def products(layers: tuple[Layer, ...], *passes: str) -> float:
    return sum(
        kernel.flops
        for layer in layers
        for op in layer.operators
        for name in passes
        for kernel in getattr(op, name)()
        if kernel.kind in ("matmul", "attention", "convolution")
    )


def test_encoder_projector_and_language_model_follow_each_other() -> None:
    kinds = [layer.kind for layer in build(SMALL, 1).layers]
    assert kinds == ["vision embedding", *["vision block"] * 24, "projector", "embedding", "block", "head"]


def test_every_image_is_encoded() -> None:
    one, four = (build(f"{SMALL},images={images}", 1, 4096).layers for images in (1, 4))
    assert products(four[:26], "forward") == 4 * products(one[:26], "forward")
    assert products(four[26:], "forward") == products(one[26:], "forward")


def test_a_block_of_the_encoder_multiplies_its_weights_and_looks_at_all_patches() -> None:
    block = build(SMALL, 2).layers[1:2]
    patches = 2 * 577
    attention = 2 * 2 * 2 * 577**2 * 1024
    assert products(block, "forward") == 2 * patches * (4 * 1024**2 + 2 * 1024 * 4096) + attention


def test_a_frozen_encoder_has_no_backward_pass_and_keeps_nothing() -> None:
    frozen, trained = (build(f"{SMALL},vision={vision}", 1) for vision in ("frozen", "trained"))
    assert products(frozen.layers[:25], "backward") == 0
    assert products(trained.layers[:25], "backward") > products(trained.layers[:25], "forward")
    assert sum(layer.saved_bytes(2) for layer in frozen.layers[:25]) == 0
    assert trained.parameters() - frozen.trained_parameters() == 303_507_456  # CLIP's encoder


@pytest.mark.parametrize("stack", ["eager", "compiled", "megatron"])
def test_pairs_split_over_tensor_ranks_and_stages_under_every_stack(stack: str) -> None:
    model, strategy = build(f"{SMALL},stack={stack}", 1), Strategy(tensor=2, pipeline=2, micro_batches=2)
    check(strategy, model)
    assert len(shares_of(model, strategy)) == len(model.layers)


def test_images_are_not_cut_along_the_sequence() -> None:
    with pytest.raises(StrategyError, match="are encoded whole, which 2 context ranks cut: set context to 1"):
        check(Strategy(context=2), build(SMALL, 1))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("llava-1.5-7b:images=4", "images have 2304 tokens, and a sample 2048: give a sequence of 2304 or more"),
        ("llava-1.5-7b:side=448", "have more patches than positions: give side=336 or less"),
        ("qwen2-vl-7b:side=450", "do not divide into patches of 28: give side= a multiple"),
        ("qwen2-vl-7b:vision=cold", "vision=cold is not known: give trained or frozen"),
    ],
)
def test_images_that_do_not_fit_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        build(name, 1)
