"""Makes the plain-Python references and the recipes importable from every test; time never decides a test."""

import os
import sys
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "reference"), str(HERE.parent / "recipes")]

# At home every run tries other examples; in CI all runs try the same ones.
settings.register_profile("ropewalk", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("ropewalk")
