"""Bearer tokens `rw_<id>_<secret>`: made once, kept as a salted slow hash, compared in constant time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from functools import cache

from ropewalk.errors import InputError
from ropewalk.serve.http.roles import role_named

COST, BLOCK, PARALLEL = 2**14, 8, 1
"""Of scrypt: 16 MiB and some tens of milliseconds for every guess."""
MEMORY = 64 * 2**20
ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
PATTERN = re.compile(r"rw_([a-z2-9]{8})_([A-Za-z0-9_-]{43})")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True)
class NewToken:
    """A token as it is made: its text is shown once and kept nowhere."""

    id: str
    text: str
    hash: str
    role: str
    name: str


def new_token(name: str, role: str) -> NewToken:
    """Make a token.

    >>> made = new_token("ci", "submit")
    >>> matches(made.text.split("_", 2)[2], made.hash), matches("guess", made.hash)
    (True, False)
    """
    role_named(role)
    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid token name: use up to 64 letters, digits, dots, dashes, underscores and @, "
            "such as ci"
        )
    number = "".join(secrets.choice(ID_LETTERS) for _ in range(8))
    secret = secrets.token_urlsafe(32)
    return NewToken(number, f"rw_{number}_{secret}", hashed(secret), role, name)


def parsed(text: str) -> tuple[str, str] | None:
    """(id, secret) of what somebody presents; None where it has not the form of a token."""
    found = PATTERN.fullmatch(text)
    return None if found is None else (found[1], found[2])


def hashed(secret: str, salt: bytes | None = None) -> str:
    """The hash as it is kept: its parameters, its salt, and itself."""
    salt = secrets.token_bytes(16) if salt is None else salt
    digest = hashlib.scrypt(secret.encode(), salt=salt, n=COST, r=BLOCK, p=PARALLEL, maxmem=MEMORY, dklen=32)
    return f"scrypt${COST}${BLOCK}${PARALLEL}${_text(salt)}${_text(digest)}"


def matches(secret: str, kept: str) -> bool:
    """Is this the secret of a kept hash? It takes as long whatever the answer is."""
    try:
        kind, cost, block, parallel, salt, digest = kept.split("$")
        if kind != "scrypt":
            return False
        wanted = base64.urlsafe_b64decode(digest)
        found = hashlib.scrypt(
            secret.encode(), salt=base64.urlsafe_b64decode(salt), n=int(cost), r=int(block), p=int(parallel),
            maxmem=MEMORY, dklen=len(wanted),
        )  # fmt: skip
    except ValueError:
        return False
    return hmac.compare_digest(wanted, found)


@cache
def nobody() -> str:
    """What the secret of an unknown id is compared with, so that the answer takes as long as for a known one."""
    return hashed("", b"nobody has this.")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
