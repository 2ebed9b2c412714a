"""Which kernels of a backward pass make gradients of weights alone."""

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.strategy.prices import KeptPrices, Pace
from ropewalk.workload import zoo
from ropewalk.workload.adapted import Adapted
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Normalise
from ropewalk.workload.experts import Experts
from ropewalk.workload.image import Convolution
from ropewalk.workload.opaque import Measured
from ropewalk.workload.table import Embedding


def forms(operator):
    return [kernel.form for kernel in operator.weight_backward()]


def test_products_with_weights_put_off_what_only_the_weights_need():
    assert forms(Linear(8, 4, 6, bias=False)) == ["weight_grad"]
    assert forms(Linear(8, 4, 6, first=True)) == ["weight_grad", "column_sum"]
    assert forms(Convolution(1, 3, 8, 8, 4, (3, 3))) == ["weight_grad"]
    assert forms(Experts(16, 4, 8, 16)) == ["weight_grad", "weight_grad"]


def test_tables_put_off_all_of_their_backward_pass():
    table = Embedding(64, 1000, 8, tied=True)
    assert table.weight_backward() == table.backward()


def test_products_of_activations_and_norms_put_off_nothing():
    assert forms(Product(4, 8, 8, 16)) == []
    assert forms(Normalise(8, 16)) == []


def test_kernels_that_never_run_are_not_put_off():
    linear = Linear(8, 4, 6)
    frozen = Adapted(linear, weights=6, tensors=1, saved=0.0, skips=(1,))
    assert [kernel.form for kernel in frozen.backward()] == ["input_grad", "column_sum"]
    assert forms(frozen) == ["column_sum"]


def test_measured_work_puts_off_a_share_that_was_said():
    whole = Measured(1e-3, 2e-3)
    parts = Measured(1e-3, 2e-3, weights=8, weight_share=0.25)
    assert forms(whole) == []
    assert sum(kernel.dims[0] for kernel in parts.backward()) == whole.backward()[0].dims[0]
    assert parts.weight_backward()[0].dims == (500_000_000,)


@pytest.mark.parametrize("name", ["gpt2", "resnet50", "dlrm", "gnmt-8", "mixtral-8x7b"])
def test_both_parts_take_as_long_as_the_backward_pass(name):
    prices = Pace(KeptPrices(pricer()), 1.5)
    for layer in zoo.build(name, 2).layers[:6]:
        whole = prices.backward(layer.operators)
        parts = prices.backward_input(layer.operators), prices.backward_weight(layer.operators)
        assert sum(parts) == pytest.approx(whole, rel=1e-12)
        assert min(parts) >= 0
