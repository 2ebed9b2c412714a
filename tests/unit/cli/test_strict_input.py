"""Numbers and clusters that could mean something else are refused; terminals without UTF-8 get an answer."""

import io
import sys

import pytest


@pytest.mark.parametrize("number", ["1_000", "١٦", "１６", "1e3", "nan"])
def test_numbers_of_options_are_digits(ropewalk, number):
    answer = ropewalk("cost", "gpt2", "--batch", number)
    assert answer.code == 2
    assert "write it with the digits 0 to 9" in answer.stderr


def test_a_number_of_an_option_fits_64_bits(ropewalk):
    answer = ropewalk("cost", "gpt2", "--batch", "9" * 20)
    assert answer.code == 2
    assert f"--batch {'9' * 20} does not fit 64 bits: give a whole number such as 64" in answer.stderr


def test_a_cluster_of_one_number_is_refused(ropewalk):
    answer = ropewalk("simulate", "gpt2", "--cluster", "16")
    assert answer.code == 2
    assert "write 1x16 for one server" in answer.stderr


def test_trees_of_a_root_have_a_bound(ropewalk):
    answer = ropewalk("collective", "allreduce", "ring:4", "--trees-per-root", "1000000")
    assert answer.code == 2
    assert "give at most 1024" in answer.stderr


def test_a_terminal_without_utf_8_gets_an_answer(monkeypatch):
    from ropewalk.cli import run

    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert run(["simulate", "gpt2", "--cluster", "1x2", "--batch", "4"]) == 0
    out.flush()
    assert out.buffer.getvalue()
