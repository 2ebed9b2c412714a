"""Bars of a timeline of a page as columns, spread as `timeline.js` does it."""

import json
from itertools import accumulate
from typing import Any


def spread(text: str) -> dict[str, Any]:
    """A timeline with its starts, and with a value per bar in every column."""
    data: dict[str, Any] = json.loads(text)
    for name, runs in data.pop("runs").items():
        data[name] = [value for value, many in zip(runs[::2], runs[1::2], strict=True) for _ in range(many)]
    data["start"] = list(accumulate(data.pop("steps")))
    return data
