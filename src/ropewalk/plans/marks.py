"""How a plan file is known, without reading the whole of it."""

from __future__ import annotations

import re

FORMAT = "ropewalk plan 2"
EARLIER = "ropewalk plan 1"

_BEGINNING = re.compile(r'\s*\{\s*"format"\s*:\s*"ropewalk plan')


def is_plan(text: str) -> bool:
    """Does a JSON document begin as plans do? Plans of any version count, so that old ones are refused as such.

    >>> is_plan('{"format": "ropewalk plan 1", "model": "dlrm"}'), is_plan('{"tasks": []}')
    (True, False)
    """
    return _BEGINNING.match(text) is not None
