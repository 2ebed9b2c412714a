"""The Python that the manual shows runs as it stands, page by page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from documented import PAGES, ROOT, blocks

import ropewalk as rw
from ropewalk.plans import write_plan
from ropewalk.training.planned import plan_of

SMALL = "gpt:layers=2,hidden=128,heads=4,vocabulary=512"
ELSEWHERE = ("docs/tutorial.md", "docs/models.md")
"""Modules of PyTorch: tests/extras/test_documented_tutorial.py and test_documented_torch.py run them."""


def run_here(page: str) -> list[str]:
    """The examples of a page but those that train on several ranks: tests/extras/test_documented_torch.py."""
    shown = [block.text for block in blocks(page, "python") if block.reason is None]
    return [text for text in shown if "init_process_group" not in text]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and run_here(page)])
def test_the_examples_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    write_plan(plan_of(rw.simulate(SMALL, "2x2", sequence=64, tensor=2)), "plan.json")  # a page may read some plan
    names: dict[str, object] = {}
    for text in run_here(page):
        exec(compile(text, page, "exec"), names)
        assert capsys.readouterr().out, f"an example of {page} prints nothing"
