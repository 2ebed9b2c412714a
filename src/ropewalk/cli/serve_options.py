"""Options of `ropewalk serve`: where it keeps its state, where it listens, how much it lets through."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ropewalk import units
from ropewalk.errors import InputError
from ropewalk.files import is_there

if TYPE_CHECKING:
    from ropewalk.serve.http.server import Listening
    from ropewalk.serve.http.settings import HttpSettings
    from ropewalk.serve.settings import Settings
    from ropewalk.serve.store.retention import Retention

KEEPING, RUNNING, LISTENING, LIMITS = "The database", "Scheduling", "Where it listens", "Limits"
USUAL_NAME = "serve.db"

DATABASE = typer.Option(
    None, metavar="URL", envvar="ROPEWALK_DATABASE", show_envvar=False, rich_help_panel=KEEPING,
    help="sqlite:///FILE, a path, or postgresql://HOST/NAME.  [default: $ROPEWALK_DATABASE, otherwise "
        "ropewalk/serve.db "
    "in $XDG_STATE_HOME]",
)  # fmt: skip
UPGRADE = typer.Option(
    False, "--upgrade", help="Migrate a database of an older version; make a backup first.",
    rich_help_panel=KEEPING,
)  # fmt: skip
KEEP_HISTORY = typer.Option("2160h", help="Retention of events and ended jobs (90 days).", rich_help_panel=KEEPING)
REPLACE_PLANT = typer.Option(
    False, "--replace-plant", help="Replace the stored cluster by the one described here; only if no job waits or "
        "runs.",
    rich_help_panel=KEEPING,
)  # fmt: skip
POLICY = typer.Option(
    None, help="Isolation policy: {policies}.  [default: vclos, or as stored]", rich_help_panel=RUNNING
)
QUEUE = typer.Option(
    None, help="fifo, smallest, edf (deadlines) or shortest.  [default: fifo, or as stored]", rich_help_panel=RUNNING
)
BACKFILL = typer.Option(
    None, "--backfill/--no-backfill", help="Let other jobs overtake a head that cannot start.", rich_help_panel=RUNNING
)
BACKFILL_RULE = typer.Option(
    "easy", help="easy (does not delay the head) or conservative (delays no job).", rich_help_panel=RUNNING
)
HOST = typer.Option("127.0.0.1", help="Listening address; `none` for the socket only.", rich_help_panel=LISTENING)
PORT = typer.Option(8787, min=0, max=65535, help="Listening port; 0 picks a free one.", rich_help_panel=LISTENING)
SOCKET = typer.Option(None, metavar="PATH", help="Also listen on this Unix socket.", rich_help_panel=LISTENING)
SOCKET_MODE = typer.Option("660", help="Mode of the socket, as for chmod.", rich_help_panel=LISTENING)
SOCKET_ROLE = typer.Option(
    None, help="Role of clients that connect to the socket without a token: read, submit or operate. Without it the "
    "socket requires tokens as well.", rich_help_panel=LISTENING,
)  # fmt: skip
TLS_CERT = typer.Option(None, metavar="FILE", help="Certificate (PEM), with its chain.", rich_help_panel=LISTENING)
TLS_KEY = typer.Option(None, metavar="FILE", help="Its key (PEM).", rich_help_panel=LISTENING)
NO_AUTH = typer.Option(
    False, "--no-auth", help="No authentication: every local user may do everything. Refused on addresses that "
    "others can reach, and once tokens exist.", rich_help_panel=LISTENING,
)  # fmt: skip
PAGES = typer.Option(
    True, "--pages/--no-pages", help="Serve the pages of the planner and of the live cluster, under /ui/.",
    rich_help_panel=LISTENING,
)  # fmt: skip
METRICS_OPEN = typer.Option(False, "--metrics-open", help="Serve /metrics without a token.", rich_help_panel=LISTENING)
MAX_BODY = typer.Option("1MiB", help="Maximum size of a request body.", rich_help_panel=LIMITS)
RATE = typer.Option(2000.0, help="Maximum requests per second per token.", rich_help_panel=LIMITS)
RATE_PER_ADDRESS = typer.Option(4000.0, help="Maximum requests per second per address.", rich_help_panel=LIMITS)
MAX_CONNECTIONS = typer.Option(2000, help="Maximum open connections.", rich_help_panel=LIMITS)
MAX_STREAMS = typer.Option(256, help="Maximum concurrent clients of /v1/events.", rich_help_panel=LIMITS)
TIMEOUT = typer.Option("30s", help="Time limit for a response to start.", rich_help_panel=LIMITS)
QUIET = typer.Option(False, "--quiet", help="Log warnings and errors only.", rich_help_panel=LIMITS)


@dataclass(frozen=True)
class StoreOptions:
    """Where the state is kept."""

    database: str | None

    def url(self) -> str:
        """The database that is meant; the usual one is a file in the user's state folder."""
        if self.database is not None:
            return self.database
        home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        return f"sqlite:///{Path(home).resolve() / 'ropewalk' / USUAL_NAME}"

    def is_new(self) -> bool:
        """Is it a file that does not exist yet?"""
        from ropewalk.serve.store.engine import engine_of, sqlite_file

        path = sqlite_file(engine_of(self.url()))
        return path is not None and not is_there(path)


@dataclass(frozen=True)
class ServeRunOptions(StoreOptions):
    """How the cluster is run."""

    upgrade: bool
    keep_history: str
    replace_plant: bool
    policy: str | None
    queue: str | None
    backfill: bool | None
    backfill_rule: str

    def changes(self) -> dict[str, Any]:
        """Settings that were typed; all others stay as they are."""
        found: dict[str, Any] = {}
        if self.policy is not None:
            found["policy"] = self.policy
        if self.queue is not None:
            found["queue"] = self.queue
        if self.backfill is not None:
            found["backfill"] = self.backfill_rule if self.backfill else "none"
        return found

    def retention(self) -> Retention:
        from ropewalk.serve.store.retention import Retention

        kept = units.seconds(self.keep_history)
        return Retention(events_s=kept, ended_jobs_s=kept)

    def settings(self) -> Settings:
        from ropewalk.serve.settings import Settings

        return Settings(**self.changes())


@dataclass(frozen=True)
class ListenOptions:
    """Where it listens and how much it lets through."""

    host: str
    port: int
    socket: Path | None
    socket_mode: str
    socket_role: str | None
    tls_cert: Path | None
    tls_key: Path | None
    no_auth: bool
    pages: bool
    metrics_open: bool
    max_body: str
    rate: float
    rate_per_address: float
    max_connections: int
    max_streams: int
    timeout: str
    quiet: bool

    def listening(self) -> Listening:
        from ropewalk.serve.http.server import Listening

        try:
            mode = int(self.socket_mode, 8)
        except ValueError:
            mode = -1
        if not 0 <= mode <= 0o777:
            raise InputError(f"--socket-mode {self.socket_mode} is not a file mode: write it as for chmod, such as 660")
        host = None if self.host == "none" else self.host
        return Listening(host, self.port, self.socket, mode, self.tls_cert, self.tls_key)

    def settings(self) -> HttpSettings:
        from ropewalk.serve.http.roles import role_named
        from ropewalk.serve.http.settings import HttpSettings

        if self.socket_role is not None:
            role_named(self.socket_role)
        return HttpSettings(
            no_auth=self.no_auth,
            socket_role=self.socket_role,
            metrics_open=self.metrics_open,
            body_bytes=int(units.size(self.max_body)),
            rate=self.rate,
            rate_per_address=self.rate_per_address,
            connections=self.max_connections,
            streams=self.max_streams,
            answer_s=units.seconds(self.timeout),
        )
