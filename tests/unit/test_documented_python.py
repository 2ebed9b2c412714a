"""The Python that the manual shows runs as it stands, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ropewalk as rw
from ropewalk.plans import write_plan
from ropewalk.training.planned import plan_of

ROOT = Path(__file__).parents[2]
SMALL = "gpt:layers=2,hidden=128,heads=4,vocabulary=512"


PAGES = ("README.md", "docs/python.md", "docs/plans.md", "docs/choices.md", "docs/cluster-files.md", "docs/overlap.md",
         "docs/running.md", "docs/expect.md", "docs/howto/researcher.md")  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_plan(plan_of(rw.simulate(SMALL, "2x2", sequence=64, tensor=2)), "plan.json")  # a page may read some plan
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "init_process_group" not in block]  # tests/extras/test_documented_torch.py
    assert blocks, f"{page} shows no Python"
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
        assert capsys.readouterr().out, f"an example of {page} prints nothing"
