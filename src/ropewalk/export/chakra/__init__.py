"""Steps as Chakra execution traces, the files that ASTRA-sim and other simulators read, and such traces as steps."""

from ropewalk.export.chakra.read import read_chakra
from ropewalk.export.chakra.write import write_chakra

__all__ = ["read_chakra", "write_chakra"]
