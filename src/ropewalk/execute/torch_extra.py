"""PyTorch, which runs programs, is an extra: say so where it is missing."""

from __future__ import annotations

import importlib.util

from ropewalk.errors import ProgramError

REMEDY = "running a program needs PyTorch, which is not installed: pip install 'ropewalk[torch]'"


def require_torch() -> None:
    """Refuse politely where PyTorch is missing; looks for it without loading it."""
    if importlib.util.find_spec("torch") is None:
        raise ProgramError(REMEDY)
