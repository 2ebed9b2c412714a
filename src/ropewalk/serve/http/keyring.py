"""Who holds a token: what the database says, read anew every second, with a memory of those who were let in.

The slow hash runs once for a token and process; after that a keyed digest of the whole text is looked up, which says
nothing about the secret to whoever measures times. A revoked token is gone with the next reading.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ropewalk.serve.http import tokens
from ropewalk.serve.http.rates import Rates
from ropewalk.serve.http.roles import ROLES, Principal
from ropewalk.serve.problems import Problem, too_many

V = TypeVar("V")
REFRESH_S = 1.0
MOST_KNOWN = 4096
HASHES_AT_ONCE = 2
FAILURES_IN_A_BURST = 20.0


class KeptToken(Protocol):
    """A row of the table of tokens."""

    @property
    def id(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def revoked(self) -> float | None: ...


Read = Callable[[], Sequence[KeptToken]]


class Keyring:
    """All tokens of the service."""

    def __init__(self, read: Read, failures_per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._tokens: dict[str, KeptToken] = {}
        self._read_at = -1e9
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, str] = OrderedDict()
        self._wrong: OrderedDict[bytes, None] = OrderedDict()
        self._failures = Rates(failures_per_s, FAILURES_IN_A_BURST)
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        self._reading = asyncio.Lock()

    async def principal(self, authorization: str | None, address: str) -> Principal:
        """Who presents this header; everybody else gets one and the same answer, whatever was wrong."""
        if authorization is None:
            raise _refused("a token is required")
        text = _presented(authorization)
        if not text:
            raise _refused("a token is required")
        digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), key=self._key, digest_size=32).digest()
        await self.refresh()
        known = self._known.get(digest)
        if known is not None and (token := self._tokens.get(known)) is not None and token.revoked is None:
            return Principal(f"{token.name}/{token.id}", token.role)
        wait_s = self._failures.is_empty(address, self._clock())
        if wait_s:
            raise too_many("too many wrong tokens came from this address", wait_s)
        found = None if digest in self._wrong else await self._verified(text)
        if found is None:
            _keep(self._wrong, digest, None)
            self._failures.wait_s(address, self._clock())
            raise _refused("this token is unknown, wrong or revoked")
        _keep(self._known, digest, found.id)
        return Principal(f"{found.name}/{found.id}", found.role)

    async def refresh(self, *, now: bool = False) -> None:
        """Read the table where the last time is long ago."""
        if not now and self._clock() - self._read_at < REFRESH_S:
            return
        async with self._reading:
            if not now and self._clock() - self._read_at < REFRESH_S:
                return
            rows = await asyncio.to_thread(self._read)
            before = self._tokens
            self._tokens = {row.id: row for row in rows if row.role in ROLES}
            self._read_at = self._clock()
            if self._tokens.keys() - before.keys():
                self._wrong.clear()  # somebody who was wrong may be right now

    async def _verified(self, text: str) -> KeptToken | None:
        """The slow comparison, also where the id is unknown: both take as long."""
        parts = tokens.parsed(text)
        if parts is None:
            return None
        number, secret = parts
        token = self._tokens.get(number)
        async with self._hashing:
            right = await asyncio.to_thread(tokens.matches, secret, tokens.nobody() if token is None else token.hash)
        return token if right and token is not None and token.revoked is None else None


def _keep(memory: OrderedDict[bytes, V], digest: bytes, value: V) -> None:
    memory[digest] = value
    memory.move_to_end(digest)
    if len(memory) > MOST_KNOWN:
        memory.popitem(last=False)


def _presented(authorization: str) -> str:
    """The token in a header: a bearer token, or the password of Basic, which is all that some schedulers can send.

    >>> _presented("Bearer rw_a_b"), _presented("Basic " + base64.b64encode(b"me:rw_a_b").decode()), _presented("x")
    ('rw_a_b', 'rw_a_b', '')
    """
    scheme, _, text = authorization.partition(" ")
    text = text.strip(" ")
    if scheme.lower() == "bearer":
        return text
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(text, validate=True).decode("latin-1").partition(":")[2]
    except ValueError:
        return ""


def _refused(message: str) -> Problem:
    return Problem(
        "unauthorized",
        message,
        "send the header `Authorization: Bearer rw_…` (commands take the token from ROPEWALK_TOKEN); "
        "`ropewalk serve token add` creates one",
        headers={"WWW-Authenticate": 'Bearer realm="ropewalk"'},
    )
