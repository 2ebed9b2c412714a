"""The command that installs an extra is for the Python that needs it."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from ropewalk import extras

ROOT = Path(__file__).parents[2]


def test_pip_alone_where_it_is_the_pip_of_this_python(monkeypatch):
    monkeypatch.setattr(extras.shutil, "which", lambda name: str(Path(sys.executable).with_name(name)))
    assert extras.how_to_install("onnx") == 'pip install "ropewalk[onnx]"'


@pytest.mark.parametrize("found", [None, "/usr/bin/pip"])
def test_the_python_is_named_where_pip_is_anothers(monkeypatch, found):
    monkeypatch.setattr(extras.shutil, "which", lambda name: found)
    monkeypatch.setattr(extras.sys, "executable", "/home/ada/my clone/.venv/bin/python")
    assert extras.how_to_install("onnx") == "'/home/ada/my clone/.venv/bin/python' -m pip install \"ropewalk[onnx]\""


def test_every_extra_that_messages_and_documents_name_exists():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    named = {
        extra
        for path in texts
        for match in re.findall(r"ropewalk\[([a-z,]+)\]|how_to_install\('([a-z]+)'\)", path.read_text())
        for extra in "".join(match).split(",")
    }
    assert {"torch", "serve", "onnx", "ray", "tables", "tune", "postgres"} <= named <= set(known)
