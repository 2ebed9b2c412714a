"""From floating point back to the fraction that was meant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

DENOMINATORS = (48, 1_000, 50_000, 2_000_000)
"""Sizes of denominators that are tried where a solution in floating point stands for fractions, smallest first."""


def meant(value: float) -> Fraction:
    """The first fraction, in the order of its continued fraction, that is this very number in floating point.

    A third of 100 GB/s reaches a fabric as 33333333333.333332; computing with that as written would be exact about the
    rounding, not about the link.

    >>> meant(100e9 / 3)
    Fraction(100000000000, 3)
    >>> meant(12.5e9)
    Fraction(12500000000, 1)
    """
    rest = Fraction(value)
    before, last = (0, 1), (1, 0)
    while True:
        whole = math.floor(rest)
        before, last = last, (whole * last[0] + before[0], whole * last[1] + before[1])
        convergent = Fraction(*last)
        # Dividing two whole numbers rounds once, so this asks exactly whether the convergent reads as the same number.
        if convergent.numerator / convergent.denominator == value:
            return convergent
        rest = 1 / (rest - whole)


def common_unit(values: Iterable[Fraction]) -> Fraction:
    """The largest fraction of which all values are whole multiples.

    >>> common_unit([Fraction(3, 4), Fraction(5, 2)])
    Fraction(1, 4)
    """
    numerator, denominator = 0, 1
    for value in values:
        both = math.lcm(denominator, value.denominator)
        numerator = math.gcd(numerator * (both // denominator), value.numerator * (both // value.denominator))
        denominator = both
    return Fraction(numerator, denominator)


def nearby(values: NDArray[np.float64], denominator: int) -> list[Fraction]:
    """The nearest fractions with denominators up to a size.

    >>> nearby(np.array([0.333333333333, 1.6]), 48)
    [Fraction(1, 3), Fraction(8, 5)]
    """
    listed = values.tolist()
    known = {value: Fraction(value).limit_denominator(denominator) for value in set(listed)}
    return [known[value] for value in listed]
