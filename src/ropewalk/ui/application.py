"""The pages by themselves, without a cluster to control: for one person on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from litestar import Litestar
from litestar.datastructures import State as Shared
from litestar.logging.config import LoggingConfig

from ropewalk.serve.http.application import LOCAL_NAMES
from ropewalk.serve.http.gate import Gate
from ropewalk.serve.http.keyring import Keyring
from ropewalk.serve.http.roles import Principal
from ropewalk.serve.http.routes import HANDLERS, may_ask
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.ui.desk import Desk
from ropewalk.ui.routes import UI_ROUTES

BODY_BYTES = 8 * 1024 * 1024
"""Of a question with its files."""


def while_open(desk: Desk, *, ahead: bool = True) -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
    """Workers run while the application does, from its start or from the first question on."""

    @asynccontextmanager
    async def running(_: Litestar) -> AsyncIterator[None]:
        if ahead:
            await desk.start()
        try:
            yield
        finally:
            await desk.stop()

    return running


def pages_alone(desk: Desk, settings: HttpSettings) -> Gate:
    """The application of `ropewalk ui`."""
    app = Litestar(
        list(UI_ROUTES),
        guards=[may_ask],
        exception_handlers=HANDLERS,
        openapi_config=None,
        lifespan=[while_open(desk)],
        state=Shared({"desk": desk}),
        logging_config=LoggingConfig(configure_root_logger=False, log_exceptions="never"),
        debug=False,
    )
    return Gate(app, settings, Keyring(lambda: [], settings.failures_per_address), LOCAL_NAMES, _unwatched)


def _unwatched(scope: Any, principal: Principal | None, status: int, seconds: float, sent: int) -> None:
    """Nobody counts the requests of one person."""
