"""Places inside operations at which a test may have this process killed; nothing happens unless a test asks for it.

`ROPEWALK_FAILPOINT=before-commit:17` kills the process with SIGKILL the 17th time it comes to that place.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "ROPEWALK_FAILPOINT"
PLACES = ("mid-batch", "mid-commit", "before-commit", "after-commit", "mid-answer", "torn-answer", "checkpoint")
"""Between two operations of a batch; between two statements of its transaction; before and after its commit; between
two acknowledgements; in the middle of the bytes of one; when SQLite's log was copied into the database, beside commits
or by the writer."""


def _asked() -> tuple[str, int]:
    place, _, times = os.environ.get(VARIABLE, "").partition(":")
    return place, int(times or 1)


_place, _left = _asked()


def reach(place: str) -> None:
    """This is the place; whoever was asked to die here dies."""
    if place == _place:
        _die_the_last_time()


def _die_the_last_time() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
