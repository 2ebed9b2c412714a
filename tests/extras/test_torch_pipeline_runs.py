"""PyTorch's pipeline runtime follows our schedule files and computes what a single process computes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')

import pipeline_jobs as jobs

from ropewalk.execute import LocalRanks
from ropewalk.export.torch_pipeline import compute_comms, compute_only
from ropewalk.timetable import automatic, v_homes
from ropewalk.timetable.clock import stage_times
from ropewalk.timetable.named import timetable

pytestmark = pytest.mark.extras

RANKS, MICRO_BATCHES = 4, 8
NAMES = ["gpipe", "1f1b", "1f1b-deep", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipev", "zb-auto"]
TOLERANCE = 1e-7
"""Sums of eight micro-batches in another order, in single precision: seen are 1.1e-8 for gradients, 6e-8 for losses."""


@pytest.fixture(scope="module")
def processes():
    with LocalRanks(RANKS, timeout_s=600) as started:
        yield started


def made(name):
    if name == "zb-auto":
        uneven = stage_times(np.linspace(1, 2, 2 * RANKS), 1.5, 1, 0.25)
        return automatic(uneven, MICRO_BATCHES, v_homes(RANKS)).timetable
    return timetable(name, RANKS, MICRO_BATCHES)


@pytest.mark.parametrize("form", [compute_only, compute_comms], ids=lambda form: form.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_pipelined_step_has_the_loss_and_the_gradients_of_one_process(processes, tmp_path, name, form):
    table = made(name)
    path = tmp_path / "schedule.csv"
    path.write_bytes(form(table).encode())
    homes = table.device_of_piece.tolist()
    ranks = processes.call(jobs.pipelined_step, [(str(path), form.__name__, homes, MICRO_BATCHES)] * RANKS)
    loss, gradients = jobs.whole_step(table.pieces, MICRO_BATCHES)
    assert sum(one for one, _ in ranks) == pytest.approx(loss, abs=TOLERANCE)
    found = {stage: values for _, mine in ranks for stage, values in mine.items()}
    assert found.keys() == gradients.keys()
    for stage, values in gradients.items():
        for ours, theirs in zip(found[stage], values, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_communication_is_spelled_out_as_pytorch_would(processes, tmp_path, name):
    table = made(name)
    path = tmp_path / "schedule.csv"
    path.write_text(compute_only(table))
    homes = table.device_of_piece.tolist()
    for rows in processes.call(jobs.lowered_by_torch, [(str(path), homes, MICRO_BATCHES)] * RANKS):
        assert [in_order(row) for row in rows] == [in_order(row) for row in compute_comms(table).splitlines()]


def in_order(row):
    """Stages that are let go of at the same time are listed in no particular order by PyTorch."""
    cells = row.split(",")
    last = next(number for number in reversed(range(len(cells))) if "RESHARD" not in cells[number])
    return cells[: last + 1] + sorted(cells[last + 1 :])
