"""Commands that the manual shows: all of them are known with all their options, and those of the how-tos run."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from documented import PAGES, ROOT, Block, blocks
from typer.main import get_command

from ropewalk.cli import app

RUN = tuple(page for page in PAGES if page.startswith("docs/howto/"))

DEFAULTS = {"cluster": "replay", "serve": "run"}
"""What a group of commands does where none of them is named."""


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


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_how_to_run_one_after_the_other(page: str, tmp_path, monkeypatch, ropewalk) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    shown: list[Block] = blocks(page, "console")
    assert shown, f"{page} shows no command"
    for block in shown:
        for command in block.commands if block.reason is None else ():
            answer = ropewalk(*command[1:])
            assert answer.code == 0, f"{page}, line {block.line}: {' '.join(command)}\n{answer.stderr}"
            assert answer.stdout or answer.stderr
