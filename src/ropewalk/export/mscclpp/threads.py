"""Threads of one block go through its operations each at its own pace, unless something synchronises them.

The machine takes an operation of a thread block for one act. That is true only if the threads are synchronised where
one operation relies on another; this is the check.
"""

from __future__ import annotations


class Threads:
    """What the threads of a block have done since they were last synchronised."""

    def __init__(self) -> None:
        self.waited = False
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.busy = False

    def synchronise(self) -> None:
        self.waited = self.busy = False
        self.read.clear()
        self.written.clear()

    def wait(self) -> None:
        """Some threads wait, the others go on."""
        self.waited = True

    def copy(self, reads: list[int], writes: list[int]) -> str | None:
        """All threads copy a part; says what is wrong with doing so now."""
        problem = None
        if self.waited:
            problem = "copies while only some threads have waited"
        elif self.written.intersection(reads) or self._clash(writes):
            problem = "touches chunks that other threads may still be copying"
        self.read.update(reads)
        self.written.update(writes)
        self.busy = True
        return problem

    def announce(self) -> str | None:
        """One thread tells others what all threads have done; says what is wrong with doing so now."""
        if self.waited:
            return "signals while only some threads have waited"
        if self.busy:
            return "signals chunks that other threads may still be copying"
        return None

    def _clash(self, writes: list[int]) -> bool:
        return bool(self.written.intersection(writes) or self.read.intersection(writes))
