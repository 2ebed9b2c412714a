"""What a healthy cluster shows, as a page."""

import pytest

from ropewalk.expect.question import ExpectQuestion
from ropewalk.expect.study import answer
from ropewalk.hardware import read_cluster
from ropewalk.report.expect import expect_page


@pytest.fixture(scope="module")
def page(read_page):
    cluster = read_cluster("dgx-h100:2")
    asked = ExpectQuestion(cluster, ("all_reduce", "all_gather", "reduce_scatter"), (1 << 20, 1 << 30))
    return read_page(expect_page(answer(asked)))


def test_benchmarks_with_equal_values_share_a_line_and_a_place_in_the_legend(page):
    (figure,) = page.figures("expected")
    assert {trace["legendgroup"] for trace in figure["data"]} == {"all_reduce", "all_gather, reduce_scatter"}
    assert "all_gather, reduce_scatter" in page.texts


def test_sizes_are_powers_of_two_as_nccl_tests_takes_them(page):
    (figure,) = page.figures("expected")
    assert figure["layout"]["xaxis"]["ticktext"] == ["1\xa0MiB", "1\xa0GiB"]


def test_of_many_sizes_some_are_written_below_the_axis(read_page):
    asked = ExpectQuestion(read_cluster("dgx-h100:1"), ("all_reduce",))
    (figure,) = read_page(expect_page(answer(asked))).figures("expected")
    ticks = figure["layout"]["xaxis"]["ticktext"]
    assert len(ticks) <= 10
    assert ticks[:3] == ["8\xa0B", "128\xa0B", "2\xa0KiB"]
