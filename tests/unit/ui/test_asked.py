from __future__ import annotations

import pytest

from ropewalk.errors import InputError
from ropewalk.ui.asked import MOST_FILE_BYTES, Asked

PLAN = ("plan",)


@pytest.mark.parametrize(
    "value",
    [
        "/etc/passwd", "~/secret.yaml", "../up.yaml", "rails,/etc/passwd", "x:/etc/passwd", "--cluster=/etc/passwd",
        "C:\\secret", "net.py:Net", "NET.PY:Net", "net.py", "a\x00b", "a\nb", "x" * 5000,
    ],
)  # fmt: skip
def test_values_that_leave_the_folder_or_run_code_are_refused(value):
    with pytest.raises(InputError):
        Asked(PLAN, (value,))


@pytest.mark.parametrize(
    "value",
    ["llama3-70b:layers=4", "leaf-spine:4x4x4", "1e12tokens/30days", "rails,rail-only,wire:8x400Gbps", "tp 4, pp 8"],
)
def test_what_commands_really_take_passes(value):
    assert Asked(PLAN, (value,)).arguments == (value,)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("../x.yaml", b""),
        ("x.py", b""),
        ("x.sh", b""),
        (".yaml", b""),
        ("a/b.yaml", b""),
        ("x.yaml", b"0" * (MOST_FILE_BYTES + 1)),
    ],
)  # fmt: skip
def test_files_are_bounded_and_never_code(name, content):
    with pytest.raises(InputError):
        Asked(PLAN, (name,), {name: content})


def test_the_key_is_the_question_and_nothing_else():
    one = Asked(PLAN, ("gpt2",), {"a.yaml": b"1"})
    assert one.key == Asked(PLAN, ("gpt2",), {"a.yaml": b"1"}).key
    assert len({one.key, Asked(PLAN, ("gpt2",), {"a.yaml": b"2"}).key, Asked(PLAN, ("gpt3",)).key}) == 3
