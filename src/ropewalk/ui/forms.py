"""A form for every command, made from its own options: what the command line can ask, the browser can, too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ropewalk.errors import Findings, InputError
from ropewalk.ui.asked import Asked

HIDDEN = frozenset({"help", "json", "page", "plan", "again", "engine", "version"})
"""Options that the browser gives itself, or that mean nothing there."""
READ_FILES = frozenset({"jobs", "trace", "files", "nodes", "workload"})
"""Parameters that name files to read, where their help does not begin with `WRITES`; other files are outputs."""
WRITES = "Write "
OTHER = "Options"
CODE = "file.py:Class, "
"""What help texts offer and the browser does not: code is not run over HTTP."""


@dataclass(frozen=True)
class Field:
    """One option or argument as a form shows it."""

    name: str
    flag: str
    """What stands before the value; empty for an argument."""
    off_flag: str
    """What turns a switch off, where there is such a flag."""
    kind: str
    """text, number, switch, choice or file"""
    about: str
    panel: str
    default: str
    choices: tuple[str, ...] = ()
    required: bool = False
    several: bool = False
    title: str = ""
    """What an argument is called in the usage of its command."""

    @property
    def label(self) -> str:
        return self.flag or self.title or self.name

    @property
    def usual(self) -> str:
        """What an empty choice stands for."""
        return f"default ({self.default})" if self.default else "default"


@dataclass(frozen=True)
class Form:
    """The fields of a command, by panel in the order of its help."""

    command: tuple[str, ...]
    about: str
    fields: tuple[Field, ...]
    writes_page: bool
    writes_plan: bool
    panels: tuple[str, ...] = field(default=())
    example: Mapping[str, str] = field(default_factory=dict)
    """Fields that the first example of its help fills in; empty where it needs files."""

    @property
    def example_line(self) -> str:
        """The command line of the example, of options that the form has."""
        known = {one.name: one for one in self.fields}
        typed = {name: _typed(known[name], text) for name, text in self.example.items()}
        return self.asked(typed).command_line if typed else ""

    def asked(self, values: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> Asked:
        """The command line that somebody has filled in; every slip is reported at once."""
        findings = Findings(InputError, "the form")
        known = {one.name: one for one in self.fields}
        for name in values:
            if name not in known:
                findings.add(f"there is no option {name[:60]!r}: use one of those shown")
        arguments: list[str] = []
        options: list[str] = []
        for one in self.fields:
            found = _values(one, values.get(one.name), findings)
            if not one.flag:
                if one.required and not found:
                    findings.add(f"{one.name} is missing: fill it in")
                arguments += found
            elif one.kind == "switch":
                options += found
            else:
                options += [word for value in found for word in (one.flag, value)]
        findings.raise_if_any()
        # Behind --, nothing is an option: an argument that begins with a dash stays one.
        dashed = any(value.startswith("-") for value in arguments)
        return Asked(self.command, (*options, *(("--",) if dashed else ()), *arguments), files or {})


def form_of(command: Any, path: Sequence[str], filled: Callable[[str], str] = str) -> Form:
    """The form of a command (Typer's, which has no public type), as its help describes it.

    `filled` completes help texts that name what can be chosen.
    """
    shown = [made for one in command.params if one.name not in HIDDEN and (made := _field(one)) is not None]
    fields = tuple(replace(one, about=filled(one.about).replace(CODE, "")) for one in shown)
    names = {one.name for one in command.params}
    about = filled(command.help or "").strip().partition("\n\n")[0].replace("\n", " ")
    panels = tuple(dict.fromkeys(one.panel for one in fields))
    example = _example(command.help or "", path, fields)
    return Form(tuple(path), about, fields, "page" in names, "plan" in names, panels, example)


def _example(text: str, path: Sequence[str], fields: Sequence[Field]) -> dict[str, str]:
    """What the first example of a help text fills in; options that only the command line has are left out.

    >>> fields = [Field("kind", "", "", "text", "", "", ""), Field("hosts", "--hosts", "", "number", "", "", "")]
    >>> _example("Example: `ropewalk sync ring --hosts 64 --page a.html`", ["sync"], fields)
    {'kind': 'ring', 'hosts': '64'}
    """
    found = re.search(rf"Example: `ropewalk {' '.join(path)} ([^`]*)`", text)
    if found is None:
        return {}
    flags = {flag: one for one in fields for flag in (one.flag, one.off_flag) if flag}
    arguments = [one for one in fields if not one.flag]
    filled: dict[str, str] = {}
    words = shlex.split(found[1])
    while words:
        word = words.pop(0)
        one = flags.get(word)
        if one is not None and one.kind == "switch":
            filled[one.name] = "true" if word == one.flag else "false"
        elif word.startswith("--"):
            value = words.pop(0) if words and not words[0].startswith("--") else ""
            if one is not None:
                filled[one.name] = " ".join(filter(None, (filled.get(one.name), value)))
        elif not arguments or arguments[0].kind == "file":
            return {}
        else:
            one = arguments[0] if arguments[0].several else arguments.pop(0)
            filled[one.name] = " ".join(filter(None, (filled.get(one.name), word)))
    return filled


def _typed(one: Field, text: str) -> str | bool | list[str]:
    """What a field of the form sends when this is filled in."""
    if one.kind == "switch":
        return text == "true"
    return text.split() if one.several else text


def _field(one: Any) -> Field | None:
    kind, choices = _kind(one)
    writes = (one.help or "").startswith(WRITES) and kind in ("file", "text")
    if one.hidden or writes or (kind == "file" and one.name not in READ_FILES):
        return None
    option = one.param_type_name == "option"
    return Field(
        one.name, one.opts[0] if option else "", one.secondary_opts[0] if one.secondary_opts else "", kind,
        one.help or "", getattr(one, "rich_help_panel", None) or OTHER, _shown(one.default), choices, one.required,
        bool(one.multiple if option else one.nargs != 1), "" if option else (one.metavar or "").strip("[].").lower(),
    )  # fmt: skip


def _shown(default: Any) -> str:
    """A default as somebody would type or choose it; nothing where there is none."""
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, list | tuple):
        return ",".join(str(value) for value in default)
    if isinstance(default, float):
        return str(int(default)) if default.is_integer() else str(default)
    return str(default) if isinstance(default, str | int) else ""


def _kind(one: Any) -> tuple[str, tuple[str, ...]]:
    if getattr(one, "is_flag", False):
        return "switch", ()
    described = getattr(one, "type_descriptor", None)
    if described is not None:  # Typer since it has types of its own
        kinds = {Path: "file", int: "number", float: "number"}
        return kinds.get(described.annotation, "text"), ()
    name = one.type.name.partition(" ")[0]
    if name == "choice":
        return "choice", tuple(str(choice) for choice in one.type.choices)
    return {"path": "file", "integer": "number", "float": "number"}.get(name, "text"), ()


def _values(one: Field, given: Any, findings: Findings) -> list[str]:
    """What was filled in, as words of a command line; nothing where it was left as it is."""
    if given is None or given == "" or given == []:
        return []
    if one.kind == "switch":
        if given not in (True, False):
            findings.add(f"{one.name} is a switch: send true or false")
            return []
        if given:
            return [one.flag]
        return [one.off_flag] if one.off_flag else []
    many = given if isinstance(given, list) else [given]
    if not one.several and len(many) > 1:
        findings.add(f"{one.name} takes one value, got {len(many)}: give one")
    if not all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in many):
        findings.add(f"{one.name} is not text or a number: send one of the two")
        return []
    return [str(value) for value in many]
