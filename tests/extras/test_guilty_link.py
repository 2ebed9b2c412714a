"""On a real network of namespaces with one slowed link, the guilty link is named in at least 9 of 10 cases."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.extras
RECIPE = Path(__file__).parents[2] / "recipes" / "guilty_link.py"


def can_slow_links() -> bool:
    """Whether the kernel lets us make a network namespace and a token bucket in it."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc", "unshare"))):
        return False
    bucket = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "64kb", "latency", "50ms"]
    return subprocess.run(["unshare", "--net", *bucket], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_slow_links(), reason="needs root and a kernel with network namespaces and token buckets")
def test_the_guilty_link_of_a_real_network_is_named_in_nine_of_ten_cases():
    spec = importlib.util.spec_from_file_location("guilty_link", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    sys.modules["guilty_link"] = recipe
    spec.loader.exec_module(recipe)
    found = list(recipe.one_slow_link_of_leaf_spine_4x1x2(cases=10, seed=3))
    assert sum(case.named for case in found) >= 9, "\n".join(case.said for case in found)
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert f"rw{os.getpid()}n" not in left
