"""The process behind `ropewalk ui` that runs commands: `python -m ropewalk.cli.ui_worker`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Import what most questions need, then answer."""
    from ropewalk.cli import run
    from ropewalk.ui.worker import work

    # Whatever prints by accident must not end up among the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import ropewalk.planner.estimate
    import ropewalk.planner.study  # noqa: F401

    work(run, sys.stdin, replies)


if __name__ == "__main__":
    main()
