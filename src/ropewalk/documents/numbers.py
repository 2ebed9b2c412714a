"""Numbers in text: the digits 0 to 9 and nothing else.

Python's `int` and `float` also read `1_000`, Arabic and full-width digits and spaces around them, and fail on more than
4,300 digits; files and options mean none of these.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from ropewalk.documents.limits import LARGEST_WHOLE

_DIGITS = re.compile("[0-9]{1,18}")
_WHOLE = re.compile("[-+]?[0-9]{1,20}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_RATIO = re.compile(r"[-+]?[0-9]{1,30}(?:\.[0-9]{1,30}|/[0-9]{1,30})?")
_LONGEST = 400
"""Characters of a number with a fraction: some programs write all digits of the largest."""


def is_count(text: str) -> bool:
    """Is this a number of things: digits alone, few enough for 64 bits?

    >>> is_count("007"), is_count("-1"), is_count("٣"), is_count("1_000"), is_count("9" * 19)
    (True, False, False, False, False)
    """
    return _DIGITS.fullmatch(text) is not None


def digits_alone(text: str) -> bool:
    """Is this a number of things, of whatever size?

    >>> digits_alone("9" * 30), digits_alone("٣"), digits_alone("")
    (True, False, False)
    """
    return text.isascii() and text.isdigit()


def whole(text: str) -> int:
    """A whole number of 64 bits, with or without a sign; ValueError for everything else.

    >>> whole("-12")
    -12
    """
    if _WHOLE.fullmatch(text) is None or abs(int(text)) > LARGEST_WHOLE:
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(text)


def finite(text: str) -> float:
    """A finite number, with a fraction and an exponent where needed; ValueError for everything else.

    >>> finite("1.5e3")
    1500.0
    """
    if len(text) > _LONGEST or _NUMBER.fullmatch(text) is None or not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]!r} is not a number")
    return value


def ratio(text: str) -> Fraction:
    """An exact number, with a fraction or as one; ValueError for everything else.

    >>> ratio("25/2"), ratio("0.1")
    (Fraction(25, 2), Fraction(1, 10))
    """
    if _RATIO.fullmatch(text) is None or text.lstrip("+-0123456789").strip("0") == "/":
        raise ValueError(f"{text[:40]!r} is not a number or a fraction")
    return Fraction(text)
