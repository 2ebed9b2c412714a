"""An entry of the zoo: a name, how its layers are made, and which options it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from ropewalk.choices import Choice
from ropewalk.documents.numbers import digits_alone, finite, is_count
from ropewalk.errors import Findings, WorkloadError
from ropewalk.workload.workload import Layer, Workload, chain

Option = int | float | bool | str | tuple[int, ...]
Make = Callable[..., list[Layer]]
DEFAULT_STACK = "eager"
"""The stack that runs a model unless told otherwise."""
LARGEST = 10**12
"""Of a size: beyond it a number is a slip of the keyboard."""
MOST = {"layers": 10_000, "mtp": 1000, "tables": 100_000, "lookups": 10**6}
"""Of things that are made one by one."""


@dataclass(frozen=True, kw_only=True)
class ZooEntry(Choice[Make]):
    """A model that can be built for any batch.

    `make` is called with the name, the batch, the sequence where there is one, and the options.
    """

    sequence: int = 0
    """Tokens in a sample unless told otherwise; 0 where samples are not sequences."""
    options: Mapping[str, Option] = field(default_factory=dict)
    """Options with their defaults; a value given as text is read as the default's type."""
    switched_off: tuple[str, ...] = ()
    """Options that are sizes and may be 0, which turns off what they are the size of."""
    longest: int = 0
    """Tokens in a sample at most, where the model has a table of positions; 0: no limit."""

    def build(self, batch: int, sequence: int | None, given: Mapping[str, object]) -> Workload:
        """The model for one micro-batch of `batch` samples."""
        findings = Findings(WorkloadError, f"model {self.name}")
        if batch < 1:
            findings.add(f"a micro-batch of {batch} samples: give 1 or more")
        length = self._length(sequence, given, findings)
        options = self._options(given, findings)
        findings.raise_if_any()
        arguments = (self.name, batch, *((length,) if self.sequence else ()))
        layers = self.make(*arguments, **options)

        def resize(samples: int) -> Workload:
            return self.build(samples, sequence, given)

        stack = str(options.get("stack", DEFAULT_STACK))
        if any(layer.inputs for layer in layers):
            return Workload(self.name, tuple(layers), batch, length, stack=stack, resize=resize)
        made = chain(self.name, layers, batch=batch, sequence=length)
        return replace(made, stack=stack, resize=resize)

    def facts(self) -> dict[str, str]:
        tokens = f"{self.sequence} tokens" if self.sequence else "1"
        longest = f" (at most {self.longest})" if self.longest and self.longest != self.sequence else ""
        return {"parameters": _in_millions(self._parameters()), "sample": tokens + longest}

    def as_json(self) -> dict[str, Any]:
        own = {"name": self.name, "about": self.about, "parameters": self._parameters()}
        return own | {"sequence": self.sequence or None, "longest": self.longest or None}

    def _parameters(self) -> int:
        return self.build(1, None, {}).parameters()

    def _length(self, sequence: int | None, given: Mapping[str, object], findings: Findings) -> int:
        if sequence is None:
            return self.sequence
        if not self.sequence:
            findings.add(f"its samples are not sequences, so it cannot take {sequence} tokens: leave the sequence out")
        elif sequence < 1:
            findings.add(f"a sequence of {sequence} tokens is invalid: give 1 or more")
        elif self.longest and sequence > self.longest and "positions" not in given:
            findings.add(
                f"its table has {self.longest} positions, so it cannot take {sequence} tokens: "
                f"give at most {self.longest}, or positions={sequence}"
            )
        return sequence

    def _options(self, given: Mapping[str, object], findings: Findings) -> dict[str, Option]:
        read: dict[str, Option] = {}
        for name, value in given.items():
            if name not in self.options:
                if (name, value) != ("stack", DEFAULT_STACK) and not (name == "domain" and "dispatch" in given):
                    findings.add(self._not_taken(name, value))
                continue
            try:
                read[name] = _read(value, self.options[name], off=name in self.switched_off)
                _not_too_many(name, read[name])
            except ValueError as error:
                findings.add(f"{name}={value}: {error}")
        return read

    def _not_taken(self, name: str, value: object) -> str:
        if name == "stack":
            return f"stack={value} does not run it: give {DEFAULT_STACK}"
        if name == "dispatch":
            return f"it has no experts: leave the dispatch {value} out"
        near = get_close_matches(name, self.options, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        return f"it has no option {name!r}: {meant}it takes {', '.join(self.options) or 'none'}"


def _in_millions(count: int) -> str:
    """A number of parameters as papers give it.

    >>> _in_millions(124_439_808), _in_millions(6_738_415_616)
    ('124 M', '6.74 B')
    """
    value, unit = (count / 1e9, "B") if count >= 1e9 else (count / 1e6, "M")
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def _read(value: object, default: Option, *, off: bool = False) -> Option:
    """A value as the default's type: 12, true, fused, 512x256x128; 0 where it follows from the rest, or is `off`."""
    if isinstance(default, bool):
        return _flag(value)
    if isinstance(default, int):
        return _whole(value, 0 if default == 0 or off else 1)
    if isinstance(default, float):
        return _number(value)
    if isinstance(default, tuple):
        parts = value.split("x") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise ValueError("give sizes such as 512x256x128")
        return tuple(_whole(part, 1) for part in parts)
    return str(value)


def _not_too_many(name: str, value: Option) -> None:
    """Refuse sizes that nothing has, before anything is made of them."""
    if isinstance(value, tuple | str) and len(value) > MOST["layers"]:
        raise ValueError(f"it has {len(value)} entries: give {MOST['layers']} or fewer")
    if isinstance(value, int) and value > MOST.get(name, LARGEST):
        raise ValueError(f"give {MOST.get(name, LARGEST)} or less")


def _number(value: object) -> float:
    try:
        found = finite(str(value))
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError("give a number, 0 or more, such as 1.25")
    return found


def _flag(value: object) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError("give true or false")
    return words[str(value).lower()]


def _whole(value: object, least: int) -> int:
    text = str(value)
    if digits_alone(text) and not is_count(text):
        raise ValueError(f"give {LARGEST} or less")
    if isinstance(value, bool) or not is_count(text) or int(text) < least:
        raise ValueError(f"give a whole number, {least} or more")
    return int(text)
