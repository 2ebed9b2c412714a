"""What people choose from by name: collectives, schedules, transports, policies, routers, fabric families, devices.

A choice is a record: its name, how to make it, one sentence about it, where it applies, its colour. Each kind of choice
is one table of such records. Commands, help texts, `ropewalk list`, charts and checks derive from the table, so adding
a choice takes a file that makes it and one line in the table.

>>> def on_rings(shape): return None if shape == "ring" else f"needs a ring, and this is a {shape}"
>>> GREETINGS = Choices("greeting", (
...     Choice("hello", lambda: "Hello!", "say it aloud"),
...     Choice("wave", lambda: "*waves*", "pass it on to the neighbour", applies=on_rings, where="rings"),
... ))
>>> GREETINGS["hello"].make()
'Hello!'
>>> GREETINGS.names_for("star")
('hello',)
>>> GREETINGS.fitting("wave", "star")
Traceback (most recent call last):
    ...
ropewalk.errors.InputError: greeting wave needs a ring, and this is a star: use hello
>>> GREETINGS.named("helo")
Traceback (most recent call last):
    ...
ropewalk.errors.InputError: there is no greeting 'helo': did you mean hello? use one of hello, wave
>>> print(GREETINGS.described())
hello (say it aloud), wave (pass it on to the neighbour)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

from ropewalk.errors import InputError
from ropewalk.palette import GREY, SERIES, Colour

T = TypeVar("T")


def anywhere(*_: object, **__: object) -> str | None:
    """No refusal: the choice applies to everything of its kind."""
    return None


def nearest(name: str, names: Sequence[str]) -> str:
    """A question that names what a mistyped name comes close to; empty where nothing does.

    >>> nearest("fifoo", ["fifo", "edf"]), nearest("x", ["fifo"])
    ('did you mean fifo? ', '')
    """
    near = get_close_matches(name.lower().replace("_", "-"), names, n=2)
    return f"did you mean {' or '.join(near)}? " if near else ""


@dataclass(frozen=True)
class Choice(Generic[T]):
    """One thing that people can choose by name. Kinds that need to say more about theirs derive from it."""

    name: str
    """What people type."""
    make: T
    """What the choice stands for, mostly a function that makes it. Tables are read for help texts, so a `make` imports
    Numba and SciPy when it is called, not before."""
    about: str
    """What it is, in a sentence without a full stop."""
    applies: Callable[..., str | None] = anywhere
    """Why it cannot be used for what its kind is chosen for, None where it applies; read after its name: "needs a ring,
    and this is a star"."""
    where: str = "everywhere"
    """Where it applies, in words: what `applies` checks."""
    title: str = ""
    """What charts and tables call it; its name unless given."""
    colour: Colour | None = None
    """What charts draw it in; a free colour of the palette unless given."""

    @property
    def label(self) -> str:
        """What charts and tables call it."""
        return self.title or self.name

    def facts(self) -> dict[str, str]:
        """What `ropewalk list` shows besides name and sentence: headings and what stands under them."""
        return {"where it applies": self.where}

    def as_json(self) -> dict[str, Any]:
        """The record for programs."""
        return {"name": self.name, "about": self.about} | self.facts()


C = TypeVar("C", bound=Choice[Any])


class Choices(Mapping[str, C]):
    """All choices of one kind, by name, in the order in which they are shown."""

    def __init__(
        self, kind: str, records: Iterable[C], *, error: type[InputError] = InputError, plural: str | None = None
    ) -> None:
        """`kind` is what people call one of them; `error` is what a name that does not exist is refused with."""
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self.error = error
        self._records: dict[str, C] = {}
        for record in records:
            if record.name in self._records:
                raise ValueError(f"{kind} {record.name} is in its table twice")
            self._records[record.name] = record

    def __getitem__(self, name: str) -> C:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"Choices({self.kind}: {', '.join(self)})"

    @contextmanager
    def including(self, *records: C) -> Iterator[None]:
        """While the block runs, the table has these records too, in the place of those of the same name: what if?"""
        before = self._records
        self._records = before | {record.name: record for record in records}
        try:
            yield
        finally:
            self._records = before

    def named(self, name: str) -> C:
        """The choice of this name; a name that does not exist is refused with the names that do."""
        if name not in self:
            raise self.error(self.unknown(name))
        return self[name]

    def unknown(self, name: str, *, also: Sequence[str] = ()) -> str:
        """Why a name is refused, for checks that collect their findings; `also` are names that a command adds."""
        names = (*also, *self)
        return f"there is no {self.kind} {name!r}: {self.hint(name, also=also)}use one of {', '.join(names)}"

    def hint(self, name: str, *, also: Sequence[str] = ()) -> str:
        """A question that names what a mistyped name comes close to; empty where nothing does."""
        return nearest(name, (*also, *self))

    def names_for(self, *asked: object, **more: object) -> tuple[str, ...]:
        """Names of the choices that apply to what is asked, in the order of the table."""
        return tuple(name for name, choice in self.items() if choice.applies(*asked, **more) is None)

    def refusal(self, name: str, *asked: object, **more: object) -> str | None:
        """Why the choice does not apply to what is asked, with those that do; None where it applies."""
        reason = self.named(name).applies(*asked, **more)
        if reason is None:
            return None
        fitting = self.names_for(*asked, **more)
        remedy = f"use one of {', '.join(fitting)}" if len(fitting) > 1 else f"use {''.join(fitting)}"
        return f"{self.kind} {name} {reason}: {remedy if fitting else f'no {self.kind} applies here'}"

    def fitting(self, name: str, *asked: object, **more: object) -> C:
        """The choice of this name, refused where it does not apply to what is asked."""
        refusal = self.refusal(name, *asked, **more)
        if refusal is not None:
            raise self.error(refusal)
        return self[name]

    def described(self, names: Iterable[str] | None = None) -> str:
        """Names and sentences in one line, as help texts show them; of all choices unless named."""
        return ", ".join(f"{name} ({self[name].about})" for name in (self if names is None else names))

    def colours(self) -> dict[str, Colour]:
        """A colour for every choice: its own, or else the first of the palette that no choice has."""
        own = {name: choice.colour for name, choice in self.items() if choice.colour is not None}
        free = [colour for colour in SERIES if colour not in own.values()]
        others = [name for name in self if name not in own]
        own |= {name: free[number] if number < len(free) else GREY for number, name in enumerate(others)}
        return {name: own[name] for name in self}
