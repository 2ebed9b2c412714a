"""Who asks, and what they may do: read < submit < operate."""

from __future__ import annotations

from dataclasses import dataclass

from ropewalk.errors import InputError

ROLES = ("read", "submit", "operate")
"""Each may do what those before it may."""


@dataclass(frozen=True)
class Principal:
    """Somebody who was let in."""

    actor: str
    """As it stands in logs and in the history: the name of the token and its id, never a secret."""
    role: str

    def may(self, needed: str) -> bool:
        """
        >>> Principal("ci/k3v9", "submit").may("read"), Principal("ci/k3v9", "submit").may("operate")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(needed)


def role_named(text: str) -> str:
    """
    >>> role_named("admin")
    Traceback (most recent call last):
        ...
    ropewalk.errors.InputError: there is no role 'admin': choose one of read, submit, operate
    """
    if text not in ROLES:
        raise InputError(f"there is no role {text!r}: choose one of {', '.join(ROLES)}")
    return text


ANYBODY = Principal("anonymous", "operate")
"""Under --no-auth, where only this machine can connect."""
READER = Principal("anonymous", "read")
"""Who reads metrics that are open."""
