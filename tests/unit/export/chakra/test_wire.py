"""The wire format, byte by byte."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.export.chakra.schema import Node, NodeType, decode_node
from ropewalk.export.chakra.wire import (
    WireError,
    bytes_field,
    double_field,
    fields,
    number_field,
    record,
    records,
    signed,
    varint,
)


@pytest.mark.parametrize(
    ("number", "data"), [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (-1, "ff" * 9 + "01")]
)
def test_varints_have_seven_bits_a_byte(number, data):
    assert varint(number).hex() == data


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_number_comes_back(number):
    ((field, kind, value),) = fields(number_field(9, number))
    assert (field, kind) == (9, 0)
    assert isinstance(value, int)
    assert signed(value) == number


def test_fields_of_every_wire_type_come_back():
    message = number_field(1, 5) + bytes_field(2, b"abc") + double_field(3, 1.0) + bytes.fromhex("25 01000000")
    assert fields(message) == [
        (1, 0, 5), (2, 2, b"abc"), (3, 1, bytes.fromhex("000000000000f03f")), (4, 5, bytes.fromhex("01000000")),
    ]  # fmt: skip


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_records_come_back(messages):
    assert records(b"".join(map(record, messages))) == messages


@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=3), st.data())
def test_a_cut_anywhere_inside_the_last_record_is_noticed(messages, data):
    whole = b"".join(map(record, messages))
    begin = len(whole) - len(record(messages[-1]))
    cut = data.draw(st.integers(begin + 1, len(whole) - 1))
    with pytest.raises(WireError, match="truncated"):
        records(whole[:cut])


@given(st.binary(max_size=60))
def test_noise_is_read_or_refused_but_never_crashes(noise):
    with suppress(WireError):
        decode_node(noise)


@pytest.mark.parametrize(
    ("message", "text"),
    [("0b", "wire type 3"), ("1205", "5 bytes beyond the end"), ("ff" * 11, "has no end"), ("80", "truncated")],
)
def test_bytes_that_are_no_message_say_why(message, text):
    with pytest.raises(WireError, match=text):
        fields(bytes.fromhex(message))


def test_a_node_comes_back_with_every_type_of_attribute():
    attributes = {"a": True, "b": 1, "c": -2, "d": 0.5, "e": "text", "f": b"\x00", "g": ["x", "y"], "h": False}
    node = Node(7, "n", NodeType.COMP, [1], [2, 300], 12, attributes)
    assert decode_node(node.encoded()) == node
    assert [type(value) for value in decode_node(node.encoded()).attributes.values()] == [
        bool, int, int, float, str, bytes, list, bool,
    ]  # fmt: skip


def test_attributes_of_other_writers_are_read_whatever_their_type():
    def attribute(value: str) -> bytes:
        return bytes_field(10, bytes_field(1, b"v") + bytes.fromhex(value))

    # float 0.5, int32 -1, uint32 5, uint64 6, sint32 -3, fixed32 7, sfixed64 -8, lists of double, bool, fixed32, sint64
    for data, value in (
        ("2d 0000003f", 0.5), ("38 ffffffffffffffffff01", -1), ("58 05", 5), ("68 06", 6), ("78 05", -3),
        ("9d01 07000000", 7), ("c901 f8ffffffffffffff", -8),
        ("22 0a 0a08 000000000000f03f", [1.0]), ("e201 04 0a02 0100", [True, False]),
        ("e201 04 0801 0800", [True, False]), ("a201 0a 0a08 0100000002000000", [1, 2]), ("9201 04 0a02 0102", [-1, 1]),
    ):  # fmt: skip
        assert decode_node(attribute(data.replace(" ", ""))).attributes == {"v": value}


def test_repeated_numbers_are_read_packed_and_one_by_one():
    assert decode_node(number_field(5, 3) + number_field(5, 4)).data_deps == [3, 4]
    assert decode_node(bytes_field(5, b"\x03\x04")).data_deps == [3, 4]
