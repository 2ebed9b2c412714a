"""A page as a reader sees it: elements, visible text, and the figures inside."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest
from timeline_bars import spread

from ropewalk import sync
from ropewalk.sync import SyncQuestion, SyncStudy


@dataclass
class Page(HTMLParser):
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scripts: dict[str, str] = field(default_factory=dict)
    open: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ("", {})
        if inside[0] == "script":
            name = inside[1].get("id") or f"script {len(self.scripts)}"
            self.scripts[name] = self.scripts.get(name, "") + data
        elif inside[0] != "style" and data.strip():
            self.texts.append(data.strip())

    @property
    def text(self) -> str:
        return self.as_text(" ".join(self.texts))

    @staticmethod
    def as_text(words: str) -> str:
        """Words with plain spaces in the place of narrow ones and of those that do not break."""
        return words.replace("\u00a0", " ").replace("\u202f", " ")

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def figures(self, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.scripts[f"{key}-figures"])
        return found

    def bars(self, key: str = "timeline") -> dict[str, Any]:
        """The columns of a timeline, spread as `timeline.js` does it."""
        return spread(self.scripts[f"{key}-bars"])

    def traces(self, key: str, name: str, view: int = 0) -> list[dict[str, Any]]:
        return [trace for trace in self.figures(key)[view]["data"] if trace.get("name") == name]

    @property
    def figure_keys(self) -> list[str]:
        return [name.removesuffix("-figures") for name in self.scripts if name.endswith("-figures")]


def _read(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


@pytest.fixture(scope="session")
def read_page():
    return _read


@pytest.fixture(scope="session")
def strings_in():
    """Every string in a figure, however deep."""
    return _strings


@pytest.fixture(scope="session")
def small_study() -> SyncStudy:
    """Ring, mesh and HiPS on a torus and a switch of 16 hosts."""
    return sync.answer(SyncQuestion(logical=("ring", "mesh", "hips"), physical=("switch", "torus"), hosts=(16,)))
