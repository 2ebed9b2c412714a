"""The records of a Chakra execution trace: one `GlobalMetadata`, then one `Node` for each thing that a rank does.

This is the schema that MLCommons publishes as `et_def.proto` (package ChakraProtoMsg), written by hand: field numbers
are what counts. Attributes carry what the schema has no field for; readers of this format take numbers of any type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache, partial

from ropewalk.export.chakra.wire import (
    BYTES,
    VARINT,
    Raw,
    WireError,
    bytes_field,
    double_field,
    fields,
    number_field,
    packed,
    signed,
    unpacked,
)

VERSION = "0.0.4"
"""The version of the schema that is written."""


class NodeType(IntEnum):
    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class CollectiveType(IntEnum):
    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


Scalar = bool | int | float | str | bytes
Value = Scalar | list[bool] | list[int] | list[float] | list[str] | list[bytes]
Attributes = Mapping[str, Value]


@dataclass
class Node:
    id: int = 0
    name: str = ""
    type: int = NodeType.INVALID
    ctrl_deps: list[int] = field(default_factory=list)
    data_deps: list[int] = field(default_factory=list)
    duration_micros: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)

    def number(self, name: str, default: float = 0.0) -> float:
        """An attribute as a number, whatever its type: writers differ in the types they use."""
        value = self.attributes.get(name, default)
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                raise WireError(f"attribute {name} of node {self.id} is {value!r}, not a number") from None
        if isinstance(value, bool | int | float):
            return float(value)
        raise WireError(f"attribute {name} of node {self.id} is a list, not a number")

    def whole(self, name: str, default: int = 0) -> int:
        value = self.number(name, default)
        if value != int(value):
            raise WireError(f"attribute {name} of node {self.id} is {value}, not a whole number")
        return int(value)

    def encoded(self) -> bytes:
        """The message, fields in ascending order and defaults left out, as other writers do it."""
        parts = [
            number_field(1, self.id) if self.id else b"",
            bytes_field(2, self.name.encode()) if self.name else b"",
            number_field(3, self.type) if self.type else b"",
            bytes_field(4, packed(self.ctrl_deps)) if self.ctrl_deps else b"",
            bytes_field(5, packed(self.data_deps)) if self.data_deps else b"",
            number_field(7, self.duration_micros) if self.duration_micros else b"",
            *(encoded_attribute(10, name, value) for name, value in self.attributes.items()),
        ]
        return b"".join(parts)


def decode_node(message: bytes) -> Node:
    node = Node()
    for number, kind, value in fields(message):
        if number == 1:
            node.id = _number(kind, value, "id")
        elif number == 2:
            node.name = _bytes(kind, value, "name").decode(errors="replace")
        elif number == 3:
            node.type = _number(kind, value, "type")
        elif number in (4, 5):
            deps = node.ctrl_deps if number == 4 else node.data_deps
            deps.extend([value] if isinstance(value, int) else unpacked(value))
        elif number == 7:
            node.duration_micros = _number(kind, value, "duration_micros")
        elif number == 10:
            name, content = decode_attribute(_bytes(kind, value, "attr"))
            node.attributes[name] = content
    return node


def encode_metadata(attributes: Attributes) -> bytes:
    return bytes_field(1, VERSION.encode()) + b"".join(encoded_attribute(2, *item) for item in attributes.items())


def decode_metadata(message: bytes) -> dict[str, Value]:
    """The attributes of the file; a first record that is no metadata is an error."""
    found: dict[str, Value] = {}
    for number, kind, value in fields(message):
        if number not in (1, 2) or kind != BYTES:
            raise WireError("the first record is not GlobalMetadata")
        if number == 2:
            name, content = decode_attribute(_bytes(kind, value, "attr"))
            found[name] = content
    return found


def encoded_attribute(field_number: int, name: str, value: Value) -> bytes:
    """An attribute; whole numbers are int64, lists are of text."""
    if isinstance(value, list):
        texts = b"".join(bytes_field(1, str(text).encode()) for text in value)
        return bytes_field(field_number, bytes_field(1, name.encode()) + bytes_field(30, texts))
    return _encoded_scalar(field_number, name, value)


# Typed, because equal numbers of different type, such as 1 and True, are different attributes.
@lru_cache(maxsize=1 << 16, typed=True)
def _encoded_scalar(field_number: int, name: str, value: Scalar) -> bytes:
    encode = _narrow if name in _INT32 else _ENCODERS[type(value)]
    return bytes_field(field_number, bytes_field(1, name.encode()) + encode(value))


_INT32 = frozenset({"comm_src", "comm_dst", "comm_tag"})
"""Attributes that strict readers expect as int32 instead of int64."""

_narrow: Callable[..., bytes] = partial(number_field, 7)

_ENCODERS: dict[type, Callable[..., bytes]] = {
    bool: lambda value: number_field(27, int(value)),
    int: lambda value: number_field(9, value),
    float: lambda value: double_field(3, value),
    str: lambda value: bytes_field(29, value.encode()),
    bytes: lambda value: bytes_field(31, value),
}


def decode_attribute(message: bytes) -> tuple[str, Value]:
    name = ""
    content: Value = False
    for number, kind, value in fields(message):
        if number == 1:
            name = _bytes(kind, value, "name").decode(errors="replace")
        elif number > 2:
            content = _decoded_value(number, kind, value)
    return name, content


def _decoded_value(number: int, kind: int, value: Raw) -> Value:
    """Odd numbers are single values, the even number behind each a list of such values."""
    decode = _DECODERS.get(number - (number % 2 == 0))
    if decode is None:
        raise WireError(f"an attribute has a value in field {number}, which the schema does not know")
    if number % 2:
        return decode(value)
    items: list[Scalar] = []
    for inner, inner_kind, item in fields(_bytes(kind, value, "list")):
        if inner != 1:
            continue
        items.extend(decode(one) for one in _list_items(number - 1, inner_kind, item))
    return items  # type: ignore[return-value]


def _list_items(number: int, kind: int, value: Raw) -> Iterable[Raw]:
    if isinstance(value, int) or number >= 29 or kind != BYTES:
        return [value]
    width = _WIDTH.get(number, 0)
    return [value[at : at + width] for at in range(0, len(value), width)] if width else unpacked(value)


def _unpack(layout: str) -> Callable[[Raw], Scalar]:
    def unpack(value: Raw) -> Scalar:
        if isinstance(value, int) or len(value) != struct.calcsize(layout):
            raise WireError("an attribute of fixed width has a value of another width")
        return struct.unpack(layout, value)[0]  # type: ignore[no-any-return]

    return unpack


def _integer(convert: Callable[[int], Scalar]) -> Callable[[Raw], Scalar]:
    return lambda value: convert(_number(VARINT if isinstance(value, int) else BYTES, value, "value"))


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


_DECODERS: dict[int, Callable[[Raw], Scalar]] = {
    3: _unpack("<d"),
    5: _unpack("<f"),
    7: _integer(signed),
    9: _integer(signed),
    11: _integer(int),
    13: _integer(int),
    15: _integer(_zigzag),
    17: _integer(_zigzag),
    19: _unpack("<I"),
    21: _unpack("<Q"),
    23: _unpack("<i"),
    25: _unpack("<q"),
    27: _integer(bool),
    29: lambda value: _bytes(BYTES, value, "text").decode(errors="replace"),
    31: lambda value: _bytes(BYTES, value, "bytes"),
}
_WIDTH = {3: 8, 5: 4, 19: 4, 21: 8, 23: 4, 25: 8}


def _number(kind: int, value: Raw, what: str) -> int:
    if kind != VARINT or not isinstance(value, int):
        raise WireError(f"{what} is not a number")
    return value


def _bytes(kind: int, value: Raw, what: str) -> bytes:
    if kind != BYTES or isinstance(value, int):
        raise WireError(f"{what} is not text, a list or a message")
    return value
