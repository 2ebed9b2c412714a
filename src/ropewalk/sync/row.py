"""One row of the study: a logical topology on a physical one, timed at one level."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ropewalk.sim.level import PacketFacts


@dataclass(frozen=True, eq=False)
class SyncRow:
    """One combination at one level."""

    logical: str
    physical: str
    fabric: str
    hosts: int
    size_bytes: int
    bandwidth: float
    start_up_s: float
    level: str
    routing: str
    sync_time_s: float
    closed_form_s: float | None
    closed_form_edition: str | None
    closed_form: str | None
    """The formula as people write it."""
    closed_form_is_bound: bool
    paper_form_s: float | None
    """The published form, where it differs from the exact one."""
    max_link_share: float | None
    """Bytes over the busiest link in units of the size, at the speed of a host link: the bandwidth term of the sync
    time in units of P/B. None where the program is too large to count (a mesh of 16,384 ranks, closed form only)."""
    lower_bound_s: float
    """No all-reduce on these hosts can be faster."""
    rounds: int
    transfers: int | None
    classes: int | None
    link_load: NDArray[np.float64] = field(repr=False)
    """Load of each link that is used, in units of the size over a host link (see `max_link_share`)."""
    transport: str | None = None
    """Whose packets were simulated, or counted as headers; None for levels that know no packets."""
    chosen_because: str | None = None
    """Where the level was chosen by `auto`: why."""
    packet: PacketFacts | None = field(default=None, repr=False)
    """What a packet-level run did to the network."""
    axes: int | None = None
    """k: levels of a BCube, axes of a torus or a mesh; None of other fabrics."""

    def as_json(self) -> dict[str, object]:
        return {
            "logical": self.logical,
            "physical": self.physical,
            "fabric": self.fabric,
            "hosts": self.hosts,
            "axes": self.axes,
            "size_bytes": self.size_bytes,
            "bandwidth_bytes_per_s": self.bandwidth,
            "latency_s": self.start_up_s,
            "level": self.level,
            "routing": self.routing,
            "transport": self.transport,
            "sync_time_s": self.sync_time_s,
            "closed_form_s": self.closed_form_s,
            "closed_form_edition": self.closed_form_edition,
            "closed_form": self.closed_form,
            "closed_form_is_bound": self.closed_form_is_bound,
            "paper_form_s": self.paper_form_s,
            "max_link_share": self.max_link_share,
            "lower_bound_s": self.lower_bound_s,
            "rounds": self.rounds,
            "transfers": self.transfers,
            "classes": self.classes,
            "chosen_because": self.chosen_because,
            "packet": None if self.packet is None else self.packet.as_json(),
        }
