"""The commands of docs/operate.md, asked of a service that runs, end with the exit codes that the page names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from documented import ROOT, blocks
from service_process import process

pytestmark = pytest.mark.extras

PAGE = "docs/operate.md"
WAITS, NEVER = 3, 4
CODES = {"cluster submit big": WAITS, "cluster submit huge": NEVER, "cluster what-if --gpus 64": WAITS}
"""Of commands that do not end with 0."""
LEFT_OUT = {
    "cluster events --follow": "it goes on until it is ended",
    "cluster status --service": "needs certificates",
    "serve token revoke": "each token has an id of its own",
    "serve backup": "writes outside of this folder",
    "serve import-slurm": "needs Slurm: tests/extras/test_slurm.py",
}
"""How commands begin that are not run, and why. Services that are started are left out, too: one runs already."""


def shown() -> Iterator[list[str]]:
    """The commands of the page that ask something of a service, of a file, or write files."""
    for block in blocks(PAGE, "console"):
        for words in block.commands:
            starts_service = words[1:2] == ["serve"] and (len(words) == 2 or words[2].startswith("-"))
            asked = words[0] == "ropewalk" and words[1] in ("cluster", "serve", "list") and not starts_service
            if asked and not _begins(words, LEFT_OUT):
                yield words[1:]


def _begins(words: list[str], beginnings: dict[str, object]) -> bool:
    return any(" ".join(words).startswith(f"ropewalk {beginning}") for beginning in beginnings)


def test_the_commands_of_the_page_run_one_after_the_other(tmp_path, monkeypatch, ropewalk) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(ROOT / "examples", "examples")
    plan = ("simulate", "gpt2:layers=2", "--seq", "64", "--cluster", "dgx-h100:8", "--plan", "plan.json")
    assert ropewalk(*plan).code == 0
    commands = list(shown())
    assert len(commands) > 25
    (tmp_path / "service").mkdir()
    with process(tmp_path / "service", "--cluster", "examples/live.yaml", "--no-auth") as service:
        monkeypatch.setenv("ROPEWALK_SERVICE", service.url)
        for command in commands:
            text = " ".join(command)
            if "--plan" in command:  # another job of the same name, on an empty cluster
                assert [ropewalk("cluster", "end", name).code for name in ("train", "big")] == [0, 0]
            answer = ropewalk(*command)
            expected = next((code for beginning, code in CODES.items() if text.startswith(beginning)), 0)
            assert answer.code == expected, f"{text}\n{answer.stdout}\n{answer.stderr}"
            assert answer.stdout or answer.stderr
