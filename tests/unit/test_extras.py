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


def test_the_extra_that_brings_a_module_is_found_by_what_ropewalk_requires():
    assert extras.extra_with("sqlalchemy.orm") == extras.extra_with("msgspec") == "serve"
    assert extras.extra_with("onnx") == "onnx"
    assert extras.extra_with("numpy") is None  # no extra: ropewalk itself needs it
    assert extras.extra_with("ropes") is None


@pytest.mark.parametrize("words", ["serve token list", "serve backup copy.db", "serve token revoke abc"])
def test_commands_of_the_service_without_its_packages_say_how_to_get_them(words, ropewalk, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ropewalk.serve.store")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    answer = ropewalk(*words.split())
    assert answer.code == 2
    assert "needs the package sqlalchemy, which is not installed: " in answer.stderr
    assert answer.stderr.strip().endswith('install "ropewalk[serve]"')
