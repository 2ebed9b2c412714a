"""Schedule files for PyTorch: byte for byte as they should be, and read without mercy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk.errors import StrategyError
from ropewalk.export.torch_pipeline import compute_comms, compute_only, read_compute_comms, read_compute_only
from ropewalk.export.torch_pipeline.cells import parse
from ropewalk.timetable import dual_pipe, dual_pipe_v, interleaved
from ropewalk.timetable.named import timetable
from ropewalk.timetable.table import Entry, Pass, from_rows

KNOWN = Path(__file__).parents[3] / "data" / "torch_schedules"


@pytest.mark.parametrize("form", [compute_only, compute_comms], ids=lambda form: form.__name__)
@pytest.mark.parametrize("name", ["1f1b", "1f1b-deep"])
def test_files_that_pytorch_ran_are_written_byte_for_byte(name, form):
    known = (KNOWN / f"{name}.{form.__name__}.csv").read_bytes()
    assert form(timetable(name, 4, 8)).encode() == known


@pytest.mark.parametrize("name", ["1f1b", "1f1b-deep"])
def test_files_that_pytorch_ran_are_read(name):
    expected = str(timetable(name, 4, 8))
    assert str(read_compute_only((KNOWN / f"{name}.compute_only.csv").read_text(), name)) == expected
    with open(KNOWN / f"{name}.compute_comms.csv", newline="") as file:
        assert str(read_compute_comms(file.read(), name)) == expected


def test_passes_side_by_side_share_a_cell():
    first = compute_only(dual_pipe_v(2, 4)).splitlines()[0].split(",")
    assert "(3F2;0B0)OVERLAP_F_B" in first


def test_parameters_of_three_stages_are_gathered_at_a_time():
    """Five stages on one rank, one micro-batch: the window moves down the row and back."""
    (row,) = compute_comms(interleaved(1, 1, 5)).splitlines()
    cells = row.split(",")
    assert cells[:4] == ["0UNSHARD", "1UNSHARD", "2UNSHARD", "0F0"]
    assert cells[4:7] == ["0RESHARD", "3UNSHARD", "1F0"]
    assert cells[-3:] == ["0B0", "0REDUCE_GRAD", "0RESHARD"]
    assert not any("SEND" in cell for cell in cells)


@pytest.mark.parametrize(
    "cell", ["1F0xyz", "1F", "F0", "1G0", "0OVERLAP_F_B1", "(0F4;7B0)", "1UNSHARD3", "1SEND_F", "-1F0"]
)
def test_a_cell_is_read_from_its_first_to_its_last_character(cell):
    assert parse(cell) is None
    with pytest.raises(StrategyError, match="rank 0, cell 0 says"):
        read_compute_only(f"{cell}\n")


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("", "it is empty"),
        ("\n", "no rank has a pass to run"),
        ("0F0,0B0,1F0\n1B0\n", r"stage 1 is on ranks \[0, 1\]"),
        ("0F0,0B0\n2F0,2B0\n", "stage 1 of 3 has no pass"),
        ("0F0,0B0\n1F0\n", "piece 1 has 0 backward passes of micro-batch 0"),
        ("0F0,0I0,0W0\n1F0,1W0,1I0\n", "1W0 does not come after 1I0"),
        ("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "deadlock: "),
        ("0UNSHARD,0F0,0B0\n", "rank 0 communicates in a file of passes only"),
    ],
)
def test_files_of_passes_that_are_wrong_are_refused(content, fact):
    with pytest.raises(StrategyError, match=fact):
        read_compute_only(content, "s.csv")


GOOD = ["0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1", "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1"]


def test_a_file_without_sharding_is_fine():
    assert read_compute_comms("\n".join(GOOD)).micro_batches == 2


@pytest.mark.parametrize(
    ("rank", "old", "new", "fact"),
    [
        (0, "0F1,", "0F1,,", "rank 0, cell 3 is empty"),
        (0, "0SEND_F0,", "", "rank 0 sends 1 messages to rank 1, which receives 2|is sent as activations"),
        (1, "1RECV_F1,", "", "rank 1 uses data that it has not received: activations of micro-batch 1 for stage 1"),
        (0, "0F0,0SEND_F0", "0SEND_F0,0F0", "rank 0 sends a result that it has not computed"),
        (1, "1RECV_F0,1F0,1RECV_F1", "1RECV_F1,1RECV_F0,1F0", "list messages in the same order on both"),
        (0, "0SEND_F0", "0SEND_B0", "which has no such neighbour"),
        (1, "1RECV_F0", "1RECV_F0,0RECV_B1", "rank 1 receives data for another rank"),
        (0, "0F0,0SEND_F0", "0UNSHARD,0F0,0SEND_F0,0RESHARD", "rank 0 computes stage 0 without its parameters"),
        (0, "0B1", "0REDUCE_GRAD,0B1", "rank 0 computes stage 0 after REDUCE_GRAD"),
        (0, "0B1", "0B1,0REDUCE_GRAD,0REDUCE_GRAD", "reduces gradients of stage 0 twice"),
        (0, "0B1", "0B1,1REDUCE_GRAD", "which is not its own"),
        (1, "1SEND_B1", "1SEND_B1,1RESHARD", "RESHARD of stage 1 where it has no effect"),
    ],
)
def test_communication_that_does_not_fit_the_passes_is_refused(rank, old, new, fact):
    rows = list(GOOD)
    assert old in rows[rank]
    rows[rank] = rows[rank].replace(old, new)
    with pytest.raises(StrategyError, match=fact):
        read_compute_comms("\r\n".join(rows))


def test_two_copies_of_a_model_cannot_be_said():
    with pytest.raises(StrategyError, match="PyTorch's schedules support one: use dualpipev"):
        compute_only(dual_pipe(2, 4))


def test_half_a_backward_pass_side_by_side_cannot_be_said():
    row = [(Pass.FORWARD, 0), (Pass.FORWARD, 1), (Pass.INPUT, 0), (Pass.WEIGHT, 0), (Pass.BACKWARD, 1)]
    entries = [Entry(kind, 0, number, paired=place == 1) for place, (kind, number) in enumerate(row)]
    with pytest.raises(StrategyError, match="pairs whole backward passes only"):
        compute_only(from_rows("mine", [entries], [0], 2))
