"""The pages themselves: shells without data, scripts and styles that ship in the package."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ropewalk import __version__
from ropewalk.report.chart import embedded
from ropewalk.report.colours import DARK_OF_LIGHT
from ropewalk.report.page import script

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of the shells: scripts and requests of this service alone."""
FRAMED = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
"""Of a page that a command has written, in a frame: it may draw, and ask for nothing."""
ASSETS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "style.css": ("text/css", (("ropewalk.report", "style.css"), ("ropewalk.ui", "ui.css"))),
    "ui.js": ("text/javascript", (("ropewalk.ui", "ui.js"),)),
    "figures.js": (
        "text/javascript",
        tuple(
            ("ropewalk.report", name) for name in ("figure_scales.js", "figure_marks.js", "figure.js", "figure_plot.js")
        ),
    ),
    "points.js": ("text/javascript", (("ropewalk.report", "points.js"),)),
    "candidates.js": ("text/javascript", (("ropewalk.ui", "candidates.js"),)),
    "search.js": ("text/javascript", (("ropewalk.ui", "search.js"),)),
    "plan.js": ("text/javascript", (("ropewalk.ui", "plan.js"),)),
    "ask.js": ("text/javascript", (("ropewalk.ui", "ask.js"),)),
    "answer.js": ("text/javascript", (("ropewalk.ui", "answer.js"),)),
    "compare.js": ("text/javascript", (("ropewalk.ui", "compare.js"),)),
    "events.js": ("text/javascript", (("ropewalk.ui", "events.js"),)),
    "map.js": ("text/javascript", (("ropewalk.ui", "map.js"),)),
    "day.js": ("text/javascript", (("ropewalk.ui", "day.js"),)),
    "cluster.js": ("text/javascript", (("ropewalk.ui", "cluster.js"),)),
    "job.js": ("text/javascript", (("ropewalk.ui", "job.js"),)),
}
"""By name: its type, and the files of packages that it is made of."""


@dataclass(frozen=True)
class Asset:
    """A file that pages ask for, compressed once."""

    kind: str
    body: bytes
    compressed: bytes
    tag: str


@cache
def asset(name: str) -> Asset:
    """A script or a style by name; KeyError if it does not exist."""
    kind, parts = ASSETS[name]
    texts = [_text(package, file) for package, file in parts]
    body = "\n".join(texts).encode()
    return Asset(kind, body, gzip.compress(body, mtime=0), hashlib.sha256(body).hexdigest()[:16])


def _text(package: str, file: str) -> str:
    """A file of a package; scripts of reports include others."""
    if package == "ropewalk.report" and file.endswith(".js"):
        return script(file)
    return (files(package) / "templates" / file).read_text(encoding="utf-8")


def shell(template: str, **context: Any) -> str:
    """A page around what its script will fetch."""
    return (
        _environment()
        .get_template(template)
        .render(version=__version__, dark_of_light=embedded(DARK_OF_LIGHT), **context)
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("ropewalk.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
