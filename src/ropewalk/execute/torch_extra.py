"""PyTorch, which runs programs, is an extra: say so where it is missing."""

from __future__ import annotations

import importlib.util

from ropewalk.errors import ProgramError
from ropewalk.extras import how_to_install


def require_torch() -> None:
    """Refuse politely where PyTorch is missing; looks for it without loading it."""
    if importlib.util.find_spec("torch") is None:
        raise ProgramError(f"running a program needs PyTorch, which is not installed: {how_to_install('torch')}")
