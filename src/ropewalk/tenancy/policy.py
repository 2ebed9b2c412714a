"""What an allocator is: a function from the state of a cluster and a request to an allocation or a reason."""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.tenancy.allocation import Allocation, Waiting
from ropewalk.tenancy.occupancy import Occupancy

Allocate = Callable[[Occupancy, str, int], Allocation | Waiting]
"""(state, name of the job, GPUs) -> what it would get, or why it waits. The state is not changed: `place` does that."""
