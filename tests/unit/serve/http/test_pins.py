"""The dependency audit that needs no network: everything a service runs on is pinned by version and by hash.

Whether a pinned version has known holes is in databases elsewhere: `pip-audit -r requirements/dev.txt` asks them.
"""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[4]


def pinned():
    """name -> (version, hashes) of requirements/dev.txt."""
    found = {}
    text = (ROOT / "requirements" / "dev.txt").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(re.split(r"\s--hash", line)[0])
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", line)
            found[canonical(requirement.name)] = (str(requirement.specifier), hashes)
    return found


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def needed():
    """Everything that `ropewalk[serve]` brings with it, by what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [Requirement(text) for text in (*project["dependencies"], *project["optional-dependencies"]["serve"])]
    found = set()
    while waiting:
        one = waiting.pop()
        name = canonical(one.name)
        if (one.marker is not None and not one.marker.evaluate({"extra": ""})) or name in found:
            continue
        found.add(name)
        waiting += [Requirement(text) for text in distribution(name).requires or ()]
    return found


def test_every_package_that_a_service_runs_on_is_pinned_with_hashes():
    pins = pinned()
    wanted = needed()
    assert {"litestar", "uvicorn", "uvloop", "httptools", "sqlalchemy", "alembic", "prometheus-client"} <= wanted
    for name in sorted(wanted):
        assert name in pins, name
        version, hashes = pins[name]
        assert version.startswith("=="), name
        assert hashes, name


def test_requirements_name_no_index_and_no_address():
    for name in ("dev.txt", "constraints.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        assert "--trusted" not in text
