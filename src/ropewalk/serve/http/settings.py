"""What an operator may set about the HTTP side, with limits that hold unless told otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import Findings, InputError

KIB = 1024


@dataclass(frozen=True)
class HttpSettings:
    """Limits and openness of the service; all of them are shown by `ropewalk serve --help`.

    >>> HttpSettings().body_bytes
    1048576
    >>> HttpSettings(body_bytes=0)
    Traceback (most recent call last):
        ...
    ropewalk.errors.InputError: settings of the service: body_bytes must be above 0, got 0: give a larger number
    """

    no_auth: bool = False
    """Everybody may do everything; only where no token exists and nobody else can connect."""
    socket_role: str | None = None
    """The role of whoever can open the Unix socket; without it tokens are asked for there, too."""
    metrics_open: bool = False
    """Metrics without a token."""
    body_bytes: int = 1024 * KIB
    header_bytes: int = 16 * KIB
    """Request line and headers together."""
    header_s: float = 10.0
    """Time for a connection to send a complete head of a request."""
    body_s: float = 10.0
    """Time for the body after that."""
    answer_s: float = 30.0
    """Time limit for a response to start."""
    stall_s: float = 20.0
    """A client that takes nothing of an answer for so long is cut off."""
    keep_alive_s: float = 75.0
    connections: int = 2000
    connections_per_address: int = 500
    rate: float = 2000.0
    """Maximum requests per second per token."""
    rate_per_address: float = 4000.0
    failures_per_address: float = 1.0
    """Wrong tokens per second of one address, after a burst of twenty."""
    streams: int = 256
    """Maximum concurrent clients of /v1/events."""
    streams_per_client: int = 16
    """Of one token."""
    stream_events: int = 1000
    """Events kept for a client that reads slowly; one that is further behind is cut off and may resume."""
    heartbeat_s: float = 15.0
    list_limit: int = 1000
    """Entries of one page of a list."""

    def __post_init__(self) -> None:
        findings = Findings(InputError, "settings of the service")
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if not value > 0:
                findings.add(f"{name} must be above 0, got {value:g}: give a larger number")
        findings.raise_if_any()
