"""On a real network of namespaces with one slowed link, the guilty link is named in at least 9 of 10 cases."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from ropewalk.lab.needs import missing
from ropewalk.lab.process import needs_user_namespace

pytestmark = pytest.mark.extras
RECIPE = Path(__file__).parents[2] / "recipes" / "guilty_link.py"


@pytest.mark.skipif(needs_user_namespace(), reason="processes with threads enter namespaces of root only")
def test_the_guilty_link_of_a_real_network_is_named_in_nine_of_ten_cases():
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    spec = importlib.util.spec_from_file_location("guilty_link", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    sys.modules["guilty_link"] = recipe
    spec.loader.exec_module(recipe)
    found = list(recipe.one_slow_link_of_leaf_spine_4x1x2(cases=10, seed=3))
    assert sum(case.named for case in found) >= 9, "\n".join(case.said for case in found)
