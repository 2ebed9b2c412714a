"""Operators as real models use them: tied weights, gradients nobody needs, small tensors read by many."""

from ropewalk.workload.adapted import Adapted, Weights, adapt
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout
from ropewalk.workload.image import Convolution
from ropewalk.workload.operator import Role, Split
from ropewalk.workload.reduction import Broadcast, Reduction
from ropewalk.workload.upsampling import TransposedConvolution


def test_an_operator_whose_own_figures_are_right_stays_itself() -> None:
    linear = Linear(8, 4, 2)
    assert adapt(linear, 10, 2, 32.0) is linear
    assert adapt(linear, 8, 1, 32.0) == Adapted(linear, 8, 1, 32.0)


def test_gradients_nobody_needs_are_not_computed() -> None:
    product = Product(2, 3, 4, 5)
    assert Adapted(product, 0, 0, 0.0, (0,)).backward() == product.backward()[1:]
    assert Adapted(Dropout(64), 0, 0, 0.0, (0,)).saved_bytes() == 0


def test_a_split_shares_what_is_left_in_the_proportions_of_the_operator() -> None:
    half = Adapted(Linear(8, 4, 6, role=Role.COLUMNS), weights=24, tensors=1, saved=16.0).split(Split(tensor=2))
    assert half.operator == Linear(8, 4, 3, role=Role.COLUMNS)
    assert (half.parameters(), half.saved_elements()) == (12, 16.0)


def test_weights_cost_no_time() -> None:
    weights = Weights(100, 3)
    assert (weights.forward(), weights.backward(), weights.parameters(), weights.parameter_tensors()) == (
        (),
        (),
        100,
        3,
    )
    assert weights.split(Split(tensor=4)) == weights


def test_a_reduction_reads_everything_once_and_spreads_its_gradient() -> None:
    mean = Reduction(4, 256)
    assert (mean.forward()[0].elements_read, mean.backward()[0].elements_written) == (1024, 1024)
    assert Reduction(4, 256, widened=True).forward()[0].moved_bytes(2) == 4096


def test_a_broadcast_is_a_sum_backwards() -> None:
    assert Broadcast(32, 8).forward() == ()
    assert Broadcast(32, 8).backward()[0].elements_read == 256
    assert Broadcast(32, 8, role=Role.INSIDE).split(Split(tensor=4)) == Broadcast(8, 8, role=Role.INSIDE)


def test_a_transposed_convolution_that_reads_data_sends_nothing_back() -> None:
    mirror = Convolution(1, 4, 8, 8, 16, (2, 2), (2, 2))
    assert len(TransposedConvolution(mirror, first=True).backward()) == 1
    assert TransposedConvolution(mirror, bias=True).saved_elements() == 16 * 16
