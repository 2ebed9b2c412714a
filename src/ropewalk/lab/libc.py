"""Calls of the operating system from compiled code: sockets, waiting, the clock, memory. Addresses are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic

from ropewalk.sim.flow.kernel import kernel

_INT, _WORD = types.intc, types.uintp
epoll_wait: Any = types.ExternalFunction("epoll_wait", _INT(_INT, _WORD, _INT, _INT))
epoll_ctl: Any = types.ExternalFunction("epoll_ctl", _INT(_INT, _INT, _INT, _WORD))
ppoll: Any = types.ExternalFunction("ppoll", _INT(_WORD, _WORD, _WORD, _WORD))
send: Any = types.ExternalFunction("send", types.intp(_INT, _WORD, _WORD, _INT))
recv: Any = types.ExternalFunction("recv", types.intp(_INT, _WORD, _WORD, _INT))
clock_gettime: Any = types.ExternalFunction("clock_gettime", _INT(_INT, _WORD))
malloc: Any = types.ExternalFunction("malloc", _WORD(_WORD))
free: Any = types.ExternalFunction("free", types.void(_WORD))

DO_NOT_WAIT, MORE_FOLLOWS, NO_SIGNAL = 0x40, 0x8000, 0x4000
"""Flags of `send` and `recv`."""
MONOTONIC = 1
"""The clock of `time.perf_counter`."""


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.uintp), generate


@kernel
def numbers_at(address: int, count: int) -> Any:
    """The whole numbers of 32 bits that stand at an address."""
    return carray(_pointer(np.uintp(address)), count, np.int32)


@kernel
def seconds(words: Any) -> float:
    """The clock now; `words` is room for what the kernel answers."""
    clock_gettime(MONOTONIC, words.ctypes.data)
    return float(words[0]) + 1e-9 * float(words[1])
