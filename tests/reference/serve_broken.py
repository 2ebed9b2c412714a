"""`ropewalk serve` with a mistake put in on purpose: it acknowledges a batch before it is committed.

The test that kills the service must find out; a test that does not would prove nothing.
"""

from __future__ import annotations

import time

from ropewalk.cli import main
from ropewalk.serve import writer
from ropewalk.serve.core import PendingOperation


def _write_too_early(self: writer.Writer, batch: list[PendingOperation]) -> None:
    with self.store.transaction() as transaction:
        known = transaction.answers({one.key for one in batch if one.key is not None})
        changes, results = self._core.carry_out(batch, known, self._clock())
        writer._acknowledge(batch, results)
        time.sleep(0.05)  # answers leave before the commit, as they would under load
        transaction.write(changes)
    self._publish(changes, batch)


writer.Writer._write = _write_too_early  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
