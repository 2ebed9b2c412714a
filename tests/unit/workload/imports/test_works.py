"""Operators from shapes: windows that fit, products told apart, what needs no gradient."""

import pytest

from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.image import Convolution, Pool
from ropewalk.workload.imports import windows, works
from ropewalk.workload.imports.contraction import contraction
from ropewalk.workload.imports.graph import Value
from ropewalk.workload.imports.pointwise import elementwise
from ropewalk.workload.imports.scopes import layer_scopes
from ropewalk.workload.kernel import convolved


def activation(*shape: int) -> Value:
    return Value(shape, gradient=True)


def weight(*shape: int) -> Value:
    return Value(shape, gradient=True, parameters=("w",), data=False)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [(224, 7, 2, 3, 1), (56, 3, 1, 2, 2), (30, 5, 3, 0, 4), (17, 4, 1, 1, 3), (9, 2, 2, 0, 1)],
)
def test_a_convolution_has_as_many_results_as_the_model_says(
    size: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    side = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    out = activation(2, 8, side, side)
    pair = [(number, number) for number in (stride, padding, dilation)]
    (work,) = windows.convolution(activation(2, 4, size, size), weight(8, 4, kernel, kernel), None, out, *pair, 1)
    assert isinstance(work.operator, Convolution)
    assert work.operator.result_elements == out.elements
    assert work.operator.parameters() == 8 * 4 * kernel * kernel
    assert work.operator.forward()[0].flops == 2 * out.elements * 4 * kernel * kernel


def test_a_convolution_of_sound_is_one_of_an_image_of_height_one() -> None:
    (work,) = windows.convolution(activation(2, 4, 100), weight(8, 4, 3), None, activation(2, 8, 50), [2], [1], [1], 1)
    assert work.operator == Convolution(2, 4, 1, 100, 8, (1, 3), (1, 2), (0, 1))


def test_a_convolution_of_video_has_the_arithmetic_of_three_dimensions() -> None:
    out = activation(2, 8, 5, 6, 6)
    ones = [1, 1, 1]
    (work,) = windows.convolution(activation(2, 4, 7, 8, 8), weight(8, 4, 3, 3, 3), None, out, ones, [0] * 3, ones, 1)
    assert work.operator.forward()[0].flops == 2 * out.elements * 4 * 27
    assert work.operator.parameters() == 8 * 4 * 27


def test_a_transposed_convolution_does_what_the_gradient_of_its_mirror_does() -> None:
    x, out = activation(2, 16, 8, 8), activation(2, 4, 16, 16)
    (work,) = windows.transposed(x, weight(16, 4, 2, 2), weight(4), out, [2, 2], [0, 0], [1, 1], 1)
    mirror = Convolution(2, 4, 16, 16, 16, (2, 2), (2, 2))
    assert work.operator.forward()[0] == mirror.backward()[0]
    assert work.operator.backward()[:2] == (mirror.forward()[0], mirror.backward()[1])
    assert work.operator.parameters() == 16 * 4 * 4 + 4


def test_a_pool_that_rounds_up_has_all_its_stops() -> None:
    (work,) = windows.pool("max", activation(1, 4, 15, 15), activation(1, 4, 8, 8), [2, 2], [2, 2], [0, 0])
    assert isinstance(work.operator, Pool)
    assert convolved(work.operator.height, 2, 2, work.operator.padding) == 8


def test_a_pool_to_one_element_has_a_window_as_large_as_the_image() -> None:
    (work,) = windows.adaptive_pool("average", activation(2, 64, 7, 7), activation(2, 64, 1, 1), 2)
    assert work.operator == Pool("average", 2, 64, 7, 7, 7, 1)


def test_a_pool_that_changes_nothing_costs_nothing() -> None:
    assert windows.adaptive_pool("average", activation(2, 64, 7, 7), activation(2, 64, 7, 7), 2) == []


def test_a_product_with_a_weight_is_a_linear_layer_and_one_of_activations_is_not() -> None:
    (layer,) = works.matmul(activation(2, 3, 8), weight(8, 5))
    (product,) = works.matmul(activation(2, 3, 8), activation(2, 8, 5))
    assert layer.operator == Linear(6, 8, 5, bias=False, turned=True)
    assert product.operator == Product(2, 3, 5, 8, works.WHOLE, transposed=False)


def test_a_product_with_a_constant_sends_one_gradient_back() -> None:
    (work,) = works.matmul(activation(6, 8), Value((8, 5), data=False))
    assert work.skips == (1,)


@pytest.mark.parametrize(
    ("equation", "left", "right", "flops"),
    [
        ("bhqd,bhkd->bhqk", (2, 4, 8, 16), (2, 4, 9, 16), 2 * 2 * 4 * 8 * 9 * 16),
        ("...ij,...jk->...ik", (2, 3, 4, 5), (2, 3, 5, 6), 2 * 2 * 3 * 4 * 5 * 6),
        ("ij,jk", (4, 5), (5, 6), 2 * 4 * 5 * 6),
        ("bnd,bmd->bnm", (7, 3, 5), (7, 2, 5), 2 * 7 * 3 * 2 * 5),
    ],
)
def test_an_einstein_sum_has_the_arithmetic_of_its_indices(
    equation: str, left: tuple[int, ...], right: tuple[int, ...], flops: int
) -> None:
    made = contraction(equation, (activation(*left), activation(*right)))
    assert made is not None
    assert made[0].operator.forward()[0].flops == flops


@pytest.mark.parametrize("equation", ["ii,ij->j", "ij,jk->k"])
def test_an_einstein_sum_that_is_not_one_product_is_not_guessed(equation: str) -> None:
    assert contraction(equation, (activation(4, 4), activation(4, 4))) is None


def test_a_bias_that_is_spread_over_rows_is_summed_over_them_backwards() -> None:
    made = elementwise("add", (activation(32, 8), weight(8)), activation(32, 8))
    assert [(kernel.form, kernel.dims) for work in made for kernel in work.operator.backward()] == [
        ("column_sum", (32, 8))
    ]


def test_a_scale_of_every_row_is_summed_along_the_rows_backwards() -> None:
    made = elementwise("mul", (activation(32, 8), activation(32, 1)), activation(32, 8))
    assert made[-1].operator.backward()[0].form == "row_mean"


def test_a_sum_passes_gradients_on_and_a_product_computes_two() -> None:
    pair = (activation(32, 8), activation(32, 8))
    assert [len(elementwise(name, pair, activation(32, 8))[0].operator.backward()) for name in ("add", "mul")] == [0, 2]


def test_names_of_operations_tell_layers_apart() -> None:
    paths = [
        ("layer1", "layer1.0", "conv1"), ("layer1", "layer1.1", "conv1"), ("fc",), ("model", "layers.3", "mlp", "up"),
        ("model", "norm"),
    ]  # fmt: skip
    assert [*layer_scopes(paths).values()] == ["layer1.0", "layer1.1", "fc", "model.layers.3", "model.norm"]
