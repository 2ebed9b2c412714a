"""Say that kernels are being compiled, once, where that takes long: a command that compiles is not hung."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

PATIENCE_S = 2.0
NOTICE = "compiling kernels, once: a minute or two (`ropewalk warm` compiles all kernels ahead of time, on all cores)"


@contextmanager
def compiling_is_said(say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Say so as soon as the kernels that are compiled meanwhile take more than two seconds together."""
    with install_listener("numba:compile", _Stopwatch(say, clock)):
        yield


class _Stopwatch(Listener):  # type: ignore[misc]
    """Hears of every kernel whose compilation begins or ends; a kernel compiles those that it calls in between."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self.say, self.clock = say, clock
        self.open, self.since, self.spent, self.said = 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        if not self.open:
            self.since = self.clock()
        self.open += 1
        self._look()

    def on_end(self, event: Any) -> None:
        self._look()
        self.open -= 1
        if not self.open:
            self.spent += self.clock() - self.since

    def _look(self) -> None:
        if not self.said and self.spent + self.clock() - self.since > PATIENCE_S:
            self.said = True
            self.say(NOTICE)
