"""One of the processes that `LocalRanks` starts: joins a Gloo group over loopback and does what it is told.

Told and answered through one connection, as pickles: first (rank, ranks, seconds), then, from rank 0, the port at which
all meet, then jobs (function, arguments) until None. What goes wrong is told with the moment of the clock that all
processes of a machine share. When the one that tells is gone, so is this process.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

from ropewalk.errors import RopewalkError


def main() -> None:
    told_through = Connection(int(sys.argv[1]))
    rank, ranks, timeout_s = told_through.recv()
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(told_through, told), daemon=True).start()
    try:
        _meet(rank, ranks, timedelta(seconds=timeout_s), told, told_through)
        while (job := told.get()) is not None:
            function, arguments = job
            told_through.send(("done", function(*arguments)))
    except RopewalkError as problem:
        told_through.send(("refused", (time.monotonic(), problem)))
    except Exception:  # a process that ends says why, whatever it was
        told_through.send(("failed", (time.monotonic(), traceback.format_exc(limit=-8))))
    # Without the goodbyes of PyTorch, which wait for peers that may be gone.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _listen(told_through: Connection, told: queue.SimpleQueue[Any]) -> None:
    """Pass on what is told; without anybody to tell something, end at once, whatever is under way."""
    while True:
        try:
            told.put(told_through.recv())
        except (EOFError, OSError):
            os._exit(1)


def _meet(rank: int, ranks: int, timeout: timedelta, told: queue.SimpleQueue[Any], told_through: Connection) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    host = "127.0.0.1"
    if rank == 0:  # port 0: the system picks a free one
        store = dist.TCPStore(host, 0, ranks, is_master=True, timeout=timeout, wait_for_workers=False)
        told_through.send(("done", store.port))
        told.get()
    else:
        told_through.send(("done", None))
        store = dist.TCPStore(host, told.get(), ranks, is_master=False, timeout=timeout)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timeout)
    told_through.send(("done", None))


if __name__ == "__main__":
    main()
