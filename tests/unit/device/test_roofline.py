from dataclasses import replace

import pytest

from ropewalk.device.device import PRECISIONS, device
from ropewalk.device.roofline import roofline
from ropewalk.workload import kernel as k

H200, BF16 = device("h200"), PRECISIONS["bf16"]


def test_a_large_product_runs_at_the_rate_that_is_achievable():
    kernel = k.matmul("forward", 16896, 16384, 8192)  # whole waves of tiles on 132 multiprocessors
    rate = kernel.flops / (roofline(kernel, H200, BF16) - H200.launch_s)
    assert rate == pytest.approx(H200.achievable * H200.peak_flops["bf16"], rel=0.03)


def test_a_copy_runs_at_the_speed_of_memory():
    kernel = k.pointwise("map", 2**30)
    seconds = roofline(kernel, H200, BF16) - H200.launch_s
    assert kernel.moved_bytes(2) / seconds == pytest.approx(H200.streaming * H200.memory_bandwidth)


def test_one_tile_more_than_a_wave_costs_a_wave():
    side = 12 * 128
    device_of_144 = replace(H200, multiprocessors=144)
    full = roofline(k.matmul("forward", side, side, 64), device_of_144, BF16)
    more = roofline(k.matmul("forward", side + 1, side, 64), device_of_144, BF16)
    much = roofline(k.matmul("forward", side + 64, side, 64), device_of_144, BF16)
    assert full < more == pytest.approx(much, rel=0.2)


def test_few_tiles_are_helped_by_cutting_the_inner_dimension():
    narrow = k.matmul("weight_grad", 128, 128, 65536)
    one_tile = 2.0 * 128 * 128 * 65536 / (H200.achievable * H200.peak_flops["bf16"] / 132 * 0.95)
    assert roofline(narrow, H200, BF16) < one_tile / 4


@pytest.mark.parametrize("form", ["forward", "input_grad", "weight_grad"])
def test_the_three_products_of_a_convolution_are_those_of_the_matrices_it_is_made_of(form):
    pixel = k.convolution(form, 32, 256, 14, 14, 1024, (1, 1), (1, 1), (0, 0))
    rows = 32 * 14 * 14
    same = {
        "forward": k.matmul("forward", rows, 1024, 256),
        "input_grad": k.matmul("input_grad", rows, 256, 1024),
        "weight_grad": k.matmul("weight_grad", 1024, 256, rows),
    }[form]
    assert pixel.flops == same.flops
    assert roofline(pixel, H200, BF16) == pytest.approx(roofline(same, H200, BF16), rel=1e-9)


def test_a_recurrent_layer_cannot_be_faster_than_its_steps_one_by_one():
    short, long = (k.recurrent("forward", steps, 64, 1024, 1024) for steps in (10, 20))
    assert roofline(long, H200, BF16) > 1.9 * roofline(short, H200, BF16)
