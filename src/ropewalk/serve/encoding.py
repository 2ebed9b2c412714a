"""Documents as bytes: JSON, encoded once for the store, the answer and whoever asks again."""

from __future__ import annotations

from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


def encode(document: Any) -> bytes:
    """A document as compact JSON."""
    return _ENCODER.encode(document)


def decode(content: bytes | str) -> Any:
    """The document in JSON that this service wrote."""
    return _DECODER.decode(content)
