"""A page in a real browser: what its scripts made of it, and what they wrote to the console."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr",
    "--virtual-time-budget=4000",
)  # fmt: skip

PATIENCE_S = 900.0
"""Before a browser, or what a page waits for, is taken for lost: the machine may be busy with other things."""

needs_browser = [
    pytest.mark.extras,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install the package chromium"),
]


def browse(html: str, folder: Path, *options: str) -> tuple[str, list[str]]:
    """The document after its scripts ran, and what they wrote to the console."""
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def plots(document: str) -> set[str]:
    """Ids of the charts in which something was drawn."""
    return set(re.findall(r'<div class="plot drawn" id="([^"]+)"[^>]*><svg', document))
