"""Parts of a model that are never narrowed to 8 or 4 bits."""

from __future__ import annotations

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import WorkloadError
from ropewalk.workload.adapted import bare
from ropewalk.workload.dense import Linear
from ropewalk.workload.experts import Experts
from ropewalk.workload.workload import Workload
from ropewalk.workload.zoo import build

SUPER = "nemotron-3-super:stack=megatron,mtp=2"


def narrow(workload: Workload) -> dict[str, int]:
    """Products of each layer that may be narrowed."""
    found: dict[str, int] = {}
    for layer in workload.layers:
        products = [bare(op) for op in layer.operators]
        found[layer.name] = sum(isinstance(op, Linear | Experts) and not op.exact for op in products)
    return found


def test_the_last_blocks_are_wide_as_a_whole() -> None:
    plain, wide = build(SUPER, 1, 512), build(f"{SUPER},wide_layers=14", 1, 512)
    before, now = narrow(plain), narrow(wide)
    changed = [name for name in before if before[name] != now[name]]
    blocks = [layer.name for layer in plain.layers if layer.kind not in ("embedding", "head", "prediction block")]
    assert changed == [name for name in blocks[-14:] if before[name]]
    assert all(now[name] == 0 for name in changed)


@pytest.mark.parametrize(("part", "kind"), [("attention", "attention block"), ("prediction", "prediction block")])
def test_a_part_is_wide_and_nothing_else(part: str, kind: str) -> None:
    plain, wide = build(SUPER, 1, 512), build(f"{SUPER},wide={part}", 1, 512)
    before, now = narrow(plain), narrow(wide)
    for layer in plain.layers:
        assert now[layer.name] == (0 if layer.kind == kind else before[layer.name])


def test_latent_projections_are_wide_and_experts_are_not() -> None:
    plain, wide = narrow(build(SUPER, 1, 512)), narrow(build(f"{SUPER},wide=latent", 1, 512))
    changed = {plain[name] - wide[name] for name in plain}
    assert changed == {0, 2}


def test_wide_attention_takes_longer_in_few_bits_and_as_long_in_bf16() -> None:
    def seconds(options: str, precision: str) -> float:
        prices, layers = pricer("gb200", precision), build(SUPER + options, 1, 8192).layers
        return sum(prices.forward_work(one.operators).gpu_s for one in layers if one.kind.endswith("attention block"))

    assert seconds(",wide=attention", "nvfp4") > 1.1 * seconds("", "nvfp4")
    assert seconds(",wide=attention", "bf16") == seconds("", "bf16")


def test_parts_that_do_not_exist_are_refused() -> None:
    with pytest.raises(WorkloadError, match="there is no part of a model that keeps its numbers 'head'"):
        build(f"{SUPER},wide=head", 1, 512)


def test_more_blocks_than_there_are_is_all_of_them() -> None:
    few = "qwen3-30b-a3b:layers=2,stack=megatron,wide_layers="
    assert narrow(build(f"{few}9", 1, 512)) == narrow(build(f"{few}2", 1, 512))
    assert not any(narrow(build(f"{few}9", 1, 512)).values())


def test_fewer_than_no_blocks_are_refused() -> None:
    with pytest.raises(WorkloadError, match="wide_layers"):
        build("qwen3-30b-a3b:wide_layers=-1", 1, 512)
