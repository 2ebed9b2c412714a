"""Arrays by what is in them, for annotations.

The values behind an index or a count are 64 bits wide unless memory decides otherwise; `Words` are bit sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
