"""`ropewalk` for a machine that is busy with other things: limits that protect a service from its clients are far off.

A browser writes every answer that came too late to its console, where tests look for mistakes of pages.
"""

from __future__ import annotations

from functools import partial

from ropewalk.cli import main
from ropewalk.serve.http import own_routes, settings
from ropewalk.ui import desk
from ropewalk.ui.process import Limits

PATIENCE_S = 900.0

settings.HttpSettings = partial(  # type: ignore[assignment,misc]
    settings.HttpSettings, header_s=PATIENCE_S, body_s=PATIENCE_S, answer_s=PATIENCE_S, stall_s=PATIENCE_S
)
own_routes.READY_S = PATIENCE_S
desk.ESTIMATE_LIMITS = Limits(PATIENCE_S, desk.ESTIMATE_LIMITS.memory_bytes)

if __name__ == "__main__":
    main()
