"""Quantities as people write them (`100Gbps`, `575MB`, `64MiB`, `10us`), read strictly and exactly.

1 MB is 10^6 bytes, 1 MiB is 2^20 bytes, 1 Gbps is 10^9 bits per second, 1 GB/s is 10^9 bytes per second. A number
without a unit is refused: a slip between bits and bytes is a factor of eight that no later check can see.

>>> bandwidth("100Gbps")
12500000000.0
>>> size("64MiB")
67108864
>>> seconds("10us")
1e-05
"""

from __future__ import annotations

import re
from fractions import Fraction

from ropewalk.errors import UnitError

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

SIZE_UNITS = {f"{prefix}B": Fraction(factor) for prefix, factor in (_DECIMAL | _BINARY).items()}
BANDWIDTH_UNITS = (
    {f"{prefix}bps": Fraction(factor, 8) for prefix, factor in _DECIMAL.items()}
    | {f"{prefix}bit/s": Fraction(factor, 8) for prefix, factor in _DECIMAL.items()}
    | {f"{prefix}b/s": Fraction(factor, 8) for prefix, factor in _DECIMAL.items()}
    | {f"{prefix}B/s": Fraction(factor) for prefix, factor in (_DECIMAL | _BINARY).items()}
)
POWER_UNITS = {"W": Fraction(1), "kW": Fraction(1000)}
TIME_UNITS = {
    "ps": Fraction(1, 10**12),
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "day": Fraction(86400),
    "days": Fraction(86400),
}
TOKEN_UNITS = {f"{prefix}tokens": Fraction(factor) for prefix, factor in (_DECIMAL | {"B": 10**9}).items()}
"""A billion tokens are written as people say it, 15Btokens, too."""

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9][^\s]*)?\s*")
MOST_DIGITS = 30
"""Longer numbers and exponents are slips of the keyboard."""

_EXAMPLES = {"size": "575MB or 64MiB", "bandwidth": "100Gbps or 12.5GB/s", "time": "10us or 1.5ms"} | {
    "token count": "1e12tokens or 300Btokens",
    "power": "700W",
}


def size(text: str) -> int:
    """Read a number of bytes; it must come out whole."""
    exact = _read(text, "size", SIZE_UNITS)
    if exact.denominator != 1:
        raise UnitError(f"size {text!r} is {float(exact)} bytes: write a size that is a whole number of bytes")
    return int(exact)


def bandwidth(text: str) -> float:
    """Read a bandwidth as bytes per second."""
    exact = _read(text, "bandwidth", BANDWIDTH_UNITS)
    if exact == 0:
        raise UnitError(f"bandwidth {text!r} is zero: nothing would ever arrive; leave the link out instead")
    return float(exact)


def seconds(text: str) -> float:
    """Read a duration as seconds."""
    return float(_read(text, "time", TIME_UNITS))


def watts(text: str) -> float:
    """Read a power as watts.

    >>> watts("1.2kW")
    1200.0
    """
    return float(_read(text, "power", POWER_UNITS))


def token_rate(text: str) -> float:
    """Read a number of tokens in a time as tokens per second.

    >>> round(token_rate("1e12tokens/30days"))
    385802
    >>> token_rate("2Mtokens/s")
    2000000.0
    """
    tokens, slash, time = (part.strip() for part in text.partition("/"))
    if not slash:
        raise UnitError(f"token rate {text!r} has no time: write it like 1e12tokens/30days or 2e6tokens/s")
    count = _read(tokens, "token count", TOKEN_UNITS)
    duration = _read(time if "0" <= time[:1] <= "9" else f"1{time}", "time", TIME_UNITS)
    if count == 0 or duration == 0:
        raise UnitError(f"token rate {text!r} has zero tokens or zero time: write it like 1e12tokens/30days")
    return float(count / duration)


def _read(text: str, what: str, units: dict[str, Fraction]) -> Fraction:
    example = _EXAMPLES[what]
    if text.strip().startswith("-"):
        raise UnitError(f"{what} {text!r} is negative: write a positive {what} such as {example}")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(f"{what} {text!r} is not a number with a unit: write it like {example}")
    number, unit = match.groups()
    if len(number) > MOST_DIGITS or abs(int(number.lower().partition("e")[2] or 0)) > MOST_DIGITS:
        raise UnitError(f"{what} {text[: 2 * MOST_DIGITS]!r} is out of any reasonable range: write it like {example}")
    if unit is None and Fraction(number) == 0:
        return Fraction(0)
    if unit is None:
        raise UnitError(f"{what} {text!r} has no unit: write it like {example}")
    if unit not in units:
        raise UnitError(f"{what} {text!r} has the unknown unit {unit!r}: use one of {', '.join(units)}")
    return Fraction(number) * units[unit]


def show_size(value: float) -> str:
    """Write bytes the way people read them: 575 MB."""
    return _show(value, [(10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B")])


def show_bandwidth(bytes_per_s: float) -> str:
    """Write bytes per second as bits per second: 100 Gbps."""
    return _show(bytes_per_s * 8, [(10**12, "Tbps"), (10**9, "Gbps"), (10**6, "Mbps"), (10**3, "kbps"), (1, "bps")])


def show_seconds(value: float) -> str:
    """Write a duration with a readable unit: 12.8 ms."""
    return _show(value, [(1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")])


def show_buffer(value: float) -> str:
    """Write the size of a buffer: a power of two in MiB and their like, as benchmarks of collectives take it.

    >>> show_buffer(1 << 20), show_buffer(48 << 10), show_buffer(256e3), show_buffer(1e10), show_buffer(8)
    ('1 MiB', '48 KiB', '256 kB', '10 GB', '8 B')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        count, rest = divmod(value, 1 << power)
        if 0 < count < 1024 and not rest and value % 1000:
            return f"{count:,.0f} {unit}"
    return show_size(value)


def show_percent(part: float, places: int = 1, *, signed: bool = False) -> str:
    """Write a part of one as percent; what rounds to zero has no minus sign.

    >>> show_percent(0.1264), show_percent(0.02, 0, signed=True), show_percent(-0.0001)
    ('12.6 %', '+2 %', '0.0 %')
    """
    value = round(part * 100, places) + 0.0
    return f"{value:{'+' if signed else ''}.{places}f} %"


def show_roughly(seconds: float) -> str:
    """Write a duration that nobody knows yet, as people say it.

    >>> show_roughly(34.0), show_roughly(200.0), show_roughly(9000.0)
    ('30 s', '3 minutes', '2.5 hours')
    """
    if seconds < 95:
        return f"{max(10, round(seconds, -1)):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _show(value: float, scale: list[tuple[float, str]]) -> str:
    for factor, unit in scale:
        if abs(float(f"{value / factor:.4g}")) >= 1:  # 999.98 ms are written as 1 s
            return f"{value / factor:.4g} {unit}"
    return f"{value:g} {scale[-1][1]}" if value == 0 else f"{value / scale[-1][0]:.4g} {scale[-1][1]}"
