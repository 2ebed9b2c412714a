"""Einstein sums of two factors as products of matrices."""

from __future__ import annotations

import math

from ropewalk.workload.imports import works
from ropewalk.workload.imports.graph import UsedOperator, Value


def contraction(equation: str, factors: tuple[Value, ...]) -> list[UsedOperator] | None:
    """The product that an equation such as `bhqd,bhkd->bhqk` stands for; None if it is not one product.

    >>> tokens, table = Value((2, 3, 8), gradient=True), Value((8, 5), gradient=True, data=False)
    >>> made = contraction("bsd,dv->bsv", (tokens, table))[0].operator
    >>> made.rows, made.inputs, made.outputs
    (6, 8, 5)
    """
    if len(factors) != 2:
        return None
    left, right, result = _letters(equation, factors)
    if any(len({*letters}) != len(letters) for letters in (left, right, result)):
        return None
    sizes = dict(zip(left + right, factors[0].shape + factors[1].shape, strict=True))
    batch = {*left} & {*right} & {*result}
    inner = ({*left} & {*right}) - batch
    rows, columns = {*left} - {*right}, {*right} - {*left}
    if not rows | columns <= {*result}:
        return None

    def size(letters: set[str]) -> int:
        return math.prod(sizes[letter] for letter in letters)

    if not batch and factors[1].weight and factors[0].data:
        return works.linear(factors[0], factors[1], size(columns))
    if not batch and factors[0].weight and factors[1].data:
        return works.linear(factors[1], factors[0], size(rows))
    if not inner:
        out = Value(tuple(sizes[letter] for letter in result), any(factor.gradient for factor in factors))
        return works.elementwise(factors, out, saves=factors, call="multiply")
    return works.product(*factors, size(batch), size(rows), size(columns), size(inner))


def _letters(equation: str, factors: tuple[Value, ...]) -> tuple[str, str, str]:
    """The letters of both factors and the result, with digits for the dimensions that dots stand for."""
    terms, arrow, result = equation.replace(" ", "").partition("->")
    left, right = terms.split(",")
    hidden = [
        len(factor.shape) - len(term.replace("...", "")) for term, factor in zip((left, right), factors, strict=True)
    ]
    dots = [_digits(count) if "..." in term else "" for term, count in zip((left, right), hidden, strict=True)]
    left, right = (term.replace("...", dot) for term, dot in zip((left, right), dots, strict=True))
    if not arrow:
        result = "".join(sorted(letter for letter in {*left, *right} if (left + right).count(letter) == 1))
    return left, right, result.replace("...", max(dots, key=len))


def _digits(count: int) -> str:
    """Dots align at the right, so the last dimension has the same sign in both factors."""
    return "9876543210"[:count][::-1]
