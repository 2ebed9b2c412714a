"""What a request says, wherever it comes from: the job in its path, its query and its body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ropewalk.documents.numbers import is_count
from ropewalk.errors import ClusterError

USUAL_LIMIT, MOST = 100, 1000


@dataclass(frozen=True)
class ReceivedRequest:
    """A request; its parts are checked when they are read.

    >>> ReceivedRequest(query={"limit": "7"}).limit()
    7
    """

    job: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def check_query(self, known: Iterable[str]) -> None:
        unknown = sorted(set(self.query) - set(known))
        if unknown:
            there = ", ".join(known) or "none"
            raise ClusterError(f"there is no parameter {unknown[0]!r} here: use one of {there}")

    def text(self, name: str) -> str | None:
        return self.query.get(name)

    def number(self, name: str) -> int | None:
        """A whole number of the query."""
        given = self.query.get(name)
        if given is None:
            return None
        if not is_count(given):
            raise ClusterError(f"{name} is {given[:40]!r}: give a whole number")
        return int(given)

    def flag(self, name: str) -> bool:
        given = self.query.get(name, "false")
        if given not in ("true", "false"):
            raise ClusterError(f"{name} is {given[:40]!r}: give true or false")
        return given == "true"

    def limit(self, usual: int = USUAL_LIMIT, most: int = MOST) -> int:
        """Entries of one page."""
        found = self.number("limit")
        if found is None:
            return usual
        if not 1 <= found <= most:
            raise ClusterError(f"limit is {found}: give 1 to {most}")
        return found
