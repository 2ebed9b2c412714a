"""Where two documents differ, when numbers may be off by rounding."""

import math
from itertools import zip_longest

ROUNDING = 1e-9


def differences(one, other, at=""):
    """Paths at which plain values differ, with both values.

    >>> differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-12, "y"]})
    [('/a/1', 'x', 'y')]
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return [gap for key in one | other for gap in differences(one.get(key), other.get(key), f"{at}/{key}")]
    if isinstance(one, list) and isinstance(other, list):
        pairs = enumerate(zip_longest(one, other))
        return [gap for place, pair in pairs for gap in differences(*pair, f"{at}/{place}")]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    same = math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING * 1e-6) if numbers else one == other
    return [] if same else [(at, one, other)]
