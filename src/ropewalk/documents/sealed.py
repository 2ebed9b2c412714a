"""States that ropewalk writes for itself: with a checksum, so that a damaged one is refused and never half-read.

>>> from ropewalk.errors import InputError
>>> unsealed(sealed({"jobs": [1, 2]}), "state", InputError, "save it again")
{'jobs': [1, 2]}
>>> unsealed(sealed({"jobs": [1, 2]}) | {"jobs": [1, 3]}, "state", InputError, "save it again")
Traceback (most recent call last):
    ...
ropewalk.errors.InputError: state was changed after it was written (its checksum does not match): save it again
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from ropewalk.documents.from_json import read_json
from ropewalk.documents.limits import MOST_OF_A_TRACE
from ropewalk.documents.opening import Problem

CHECKSUM = "checksum"


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its checksum."""
    return {**_without(document), CHECKSUM: checksum(document)}


def checksum(document: dict[str, Any]) -> str:
    """Of everything in a document but its checksum, however it is spaced and ordered."""
    text = json.dumps(_without(document), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


def read_sealed(path: Path, subject: str, error: Problem, remedy: str) -> dict[str, Any]:
    """The document in a file that was written sealed."""
    return unsealed(read_json(path, subject, error, MOST_OF_A_TRACE), subject, error, remedy)


def unsealed(document: object, subject: str, error: Problem, remedy: str) -> dict[str, Any]:
    """The document without its checksum, which fits; everything else is refused."""
    if not isinstance(document, dict):
        raise error(f"{subject} is not an object: {remedy}")
    if CHECKSUM not in document:
        raise error(f"{subject} has no checksum, so it may be incomplete: {remedy}")
    if document[CHECKSUM] != checksum(document):
        raise error(f"{subject} was changed after it was written (its checksum does not match): {remedy}")
    return _without(document)


def _without(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != CHECKSUM}
