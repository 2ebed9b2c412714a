"""Makes the plain-Python references and the recipes importable from every test."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "reference"), str(HERE.parent / "recipes")]
