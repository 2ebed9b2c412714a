"""What is needed to build a wiring: the patch list of its panels and the forwarding tables of its servers, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from ropewalk.codesign.forwarding import forwarding_of
from ropewalk.codesign.planes import one_panel, patch_list
from ropewalk.fabric.wiring import Wiring
from ropewalk.routing import Routes


def patch_csv(wiring: Wiring, *, single_panel: bool = False) -> str:
    """A line for every connection of a panel: which port of which server goes to which.

    >>> ring = Wiring(2, 1, True, 1e9, 0.0, (), ((0, 1, 1),), 1, 0)
    >>> print(patch_csv(ring), end="")
    panel,server,port,peer,peer_port,panel_port,peer_panel_port
    0,0,0,1,0,0,1
    """
    made = one_panel(wiring) if single_panel else patch_list(wiring)
    rows = [
        (one.plane, one.server, one.port, one.peer, one.peer_port, one.panel_port, one.peer_panel_port)
        for one in made.patches
    ]
    return _csv(("panel", "server", "port", "peer", "peer_port", "panel_port", "peer_panel_port"), rows)


def tables_csv(routes: Routes) -> str:
    """A line for every rule of a server: what came from whom (`-`: its own), goes to whom, and leaves for whom."""
    return _csv(("server", "from", "to", "next", "share"), forwarding_of(routes).rows())


def _csv(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
