"""Lists as people write them: names in a sentence, numbers in ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_NAMED = 4


def listed(names: Sequence[str], most: int | None = MOST_NAMED) -> str:
    """`a, b and c`; of more than `most` (None: any number), the first and how many more.

    >>> listed(["a", "b", "c"]), listed("abcdefg")
    ('a, b and c', 'a, b, c, d and 3 more')
    """
    if most is not None and len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def in_ranges(numbers: Iterable[int]) -> str:
    """Numbers that follow each other as ranges.

    >>> in_ranges((0, 1, 2, 3, 8))
    '0-3,8'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
