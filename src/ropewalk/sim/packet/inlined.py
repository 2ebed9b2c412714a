"""How the small kernels are compiled that every packet meets on every hop: into whoever calls them.

A call between kernels hands over a status and reads the world anew; where the callee is a few lines long, that costs
more than the lines do. On longer kernels it only costs compile time.
"""

from __future__ import annotations

from ropewalk.compiled import compiled

inlined = compiled(error_model="numpy", forceinline=True)
