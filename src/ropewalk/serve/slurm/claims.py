"""What makes a job one of Slurm's, and who may say so: the bridge, Slurm's own routes, and the role `operate`.

A job that claims a number or a token of Slurm's would be ended, bound and cancelled with the job that has it there.
"""

from __future__ import annotations

from ropewalk.serve.operation import Bind, Operation, Submit
from ropewalk.serve.outcome import Refused
from ropewalk.serve.slurm.view import ARRAY, TOKEN

NUMBERED = "slurm:"
"""Begins the name that the bridge gives a job of Slurm's: slurm:123."""


def refuse_claim(operation: Operation) -> None:
    """Refuse what makes a job one of Slurm's, from somebody who may not.

    >>> refuse_claim(Bind("j4", "pbs:12"))
    >>> refuse_claim(Bind("j4", "slurm:12"))
    Traceback (most recent call last):
        ...
    ropewalk.serve.outcome.Refused: external slurm:12 makes it a job of Slurm's, which your role cannot: \
leave it out (the service binds Slurm's jobs itself), or ask somebody with the role operate
    """
    claim = _claim_of(operation)
    if claim is not None:
        raise Refused(
            "forbidden",
            f"{claim} makes it a job of Slurm's, which your role cannot",
            "leave it out (the service binds Slurm's jobs itself), or ask somebody with the role operate",
            {"needed": "operate"},
        )


def _claim_of(operation: Operation) -> str | None:
    if isinstance(operation, Submit | Bind) and (operation.external or "").startswith(NUMBERED):
        return f"external {operation.external}"
    labels = operation.labels if isinstance(operation, Submit) else {}
    return next((f"label {label}" for label in (TOKEN, ARRAY) if label in labels), None)
