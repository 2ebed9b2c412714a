"""The page around every report: one HTML file with its style, scripts and data inside, which asks for nothing else.

A content security policy in the page forbids every request, so "works offline" is enforced by the browser.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ropewalk import __version__
from ropewalk.report import quantity
from ropewalk.report.chart import Chart, embedded
from ropewalk.report.colours import DARK_OF_LIGHT


def render(template: str, *, title: str, charts: Iterable[Chart] = (), **context: Any) -> str:
    """Fill a template; scripts that draw figures are in it where there are charts."""
    drawn = list(charts)
    return (
        _environment()
        .get_template(template)
        .render(
            title=title,
            version=__version__,
            charts={chart.key: chart for chart in drawn},
            dark_of_light=embedded(DARK_OF_LIGHT),
            **context,
        )
    )


def script(name: str) -> str:
    """A script with what it includes, for pages that load it."""
    return _environment().get_template(name).render()


def piece(name: str, *values: Any, **options: Any) -> str:
    """One component of `pieces.html` by itself, for pages that fetch it."""
    made = getattr(_environment().get_template("pieces.html").module, name)
    return str(made(*values, **options))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ropewalk.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=quantity.unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = quantity.count
    environment.filters["seconds"] = quantity.seconds
    environment.filters["bandwidth"] = quantity.bandwidth
    environment.filters["size"] = quantity.size
    environment.filters["percent"] = quantity.percent
    return environment
