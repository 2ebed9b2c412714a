"""Commands that the manual shows: all are known with all their options, and what takes seconds runs, page by page."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from documented import PAGES, ROOT, Block, blocks
from typer.main import get_command

from ropewalk.cli import app

DEFAULTS = {"cluster": "replay", "serve": "run"}
"""What a group of commands does where none of them is named."""

ELSEWHERE = {
    "docs/tutorial.md": "trains with PyTorch: tests/extras/test_documented_tutorial.py",
    "docs/models.md": "reads modules of PyTorch: tests/extras/test_documented_torch.py",
    "docs/operate.md": "needs a service: tests/extras/test_documented_service.py",
}
"""Pages whose commands run in the extras."""

NOT_HERE = {
    "lab up": "network namespaces", "lab run": "network namespaces", "lab status": "network namespaces",
    "lab fault": "network namespaces", "lab rewire": "network namespaces", "lab down": "network namespaces",
    "lab suite": "network namespaces",
    "serve": "it goes on until it is ended", "ui": "it goes on until it is ended",
    "collective allreduce torus:2x2 --run": "trains with PyTorch",
    "plan llama3-70b": "half a minute", "plan llama-7b": "half a minute",
    "plan dlrm --servers 128": "minutes", "simulate plan.json --failed": "its plan takes minutes",
    "pipeline gpt2-xl": "a quarter of a minute", "overlap bert-large": "half a minute",
}  # fmt: skip
"""How commands begin that no test of this file runs, and why."""


def known(command: list[str]) -> None:
    """Follow the words of a command line through groups, and let the last one take its options without running."""
    found: Any = get_command(app)
    words = command[1:]
    while hasattr(found, "commands"):
        named = bool(words) and words[0] in found.commands
        name = words.pop(0) if named else DEFAULTS.get(found.name or "")
        assert name, f"there is no {' '.join(command[:3])}"
        found = found.commands[name]
    options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1 and not word[1:].replace(".", "").isdigit():
            assert word.partition("=")[0] in options, f"{' '.join(command)}: no option {word}"


def run_here(page: str) -> list[tuple[Block, list[str]]]:
    """The commands of a page that run in this process, in order."""
    return [
        (block, command)
        for block in blocks(page, "console")
        for command in block.commands
        if block.reason is None and command[0] == "ropewalk" and not _left_out(" ".join(command[1:]))
    ]


def _left_out(text: str) -> bool:
    return any(f"{text} ".startswith(f"{beginning} ") for beginning in NOT_HERE)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_known_with_all_its_options(page: str) -> None:
    for block in blocks(page, "console"):
        for command in block.commands:
            if command[0] == "ropewalk":
                known(command)


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(AssertionError, match="no option --sizes-of"):
        known(["ropewalk", "fabric", "torus:4x4", "--sizes-of", "3"])
    with pytest.raises(AssertionError, match="there is no"):
        known(["ropewalk", "lab", "begin"])


def test_what_is_left_out_is_shown_somewhere() -> None:
    shown = [" ".join(command[1:]) for page in PAGES for block in blocks(page, "console") for command in block.commands]
    for beginning in NOT_HERE:
        assert any(f"{text} ".startswith(f"{beginning} ") for text in shown), f"no page shows {beginning}"


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and run_here(page)])
def test_the_commands_of_a_page_run_one_after_the_other(page: str, tmp_path, monkeypatch, ropewalk) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    for block, command in run_here(page):
        answer = ropewalk(*command[1:])
        assert answer.code == 0, f"{page}, line {block.line}: {' '.join(command)}\n{answer.stderr}"
        assert answer.stdout or answer.stderr
