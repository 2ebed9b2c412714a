"""Sliding windows: what attention computes, what it takes, and which layers have one."""

from __future__ import annotations

import pytest

from ropewalk.device.pricer import pricer
from ropewalk.errors import WorkloadError
from ropewalk.workload import kernel as k
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.files import read_workload, write_workload
from ropewalk.workload.operator import Split
from ropewalk.workload.zoo import build


def test_a_window_takes_less_the_shorter_it_is_and_never_more_than_none() -> None:
    prices = pricer("h200", "bf16")
    seconds = [
        prices.kernel(k.attention(form, 4, 64, 8, 8192, 8192, 64, True, window))
        for form in ("forward", "backward")
        for window in (128, 512, 2048, 0)
    ]
    assert seconds[:4] == sorted(seconds[:4])
    assert seconds[4:] == sorted(seconds[4:])
    assert seconds[0] < seconds[3] / 8


def test_a_window_longer_than_the_sequence_is_none() -> None:
    wide, none = (FusedAttention(1, 8, 8, 512, 512, 64, causal=True, window=window) for window in (512, 0))
    assert wide.forward() == none.forward()
    assert wide.backward() == none.backward()


def test_ranks_that_share_a_sequence_share_the_pairs_inside_of_its_windows() -> None:
    whole = FusedAttention(1, 8, 8, 4096, 4096, 64, causal=True, window=512)
    part = whole.split(Split(context=4))
    assert 4 * part.forward()[0].flops == whole.forward()[0].flops


def test_every_sixth_layer_of_gemma_3_sees_all_tokens() -> None:
    kinds = [layer.kind for layer in build("gemma3-1b", 1, 64).layers[1:-1]]
    assert [at for at, kind in enumerate(kinds) if kind == "block"] == [5, 11, 17, 23]
    assert set(kinds) == {"block", "windowed block"}


def test_a_mask_in_memory_computes_what_a_window_hides() -> None:
    compiled = build("mistral-7b:layers=1,stack=compiled", 1, 8192)
    forms = [kn.form for op in compiled.layers[1].operators for kn in op.forward() if kn.kind == "attention"]
    assert forms == ["forward_masked"]


def test_a_model_with_windows_is_written_and_read(tmp_path) -> None:
    model = build("gpt-oss-20b:layers=2", 1, 256)
    write_workload(model, tmp_path / "model.yaml")
    assert read_workload(tmp_path / "model.yaml").layers == model.layers


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("gpt2:window=128", "has no option 'window'"),
        ("deepseek-v3:window=128", "has no option 'window'"),
        ("llama-7b:whole_every=2", "chooses among layers with a window: give window= too"),
        ("mistral-7b:window=few", "window=few: give a whole number, 0 or more"),
    ],
)
def test_windows_that_a_model_cannot_have_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        build(name, 1)
