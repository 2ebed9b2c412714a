"""Google's own reader of Protocol Buffers finds in our traces what we wrote, with a schema built here by hand."""

import pytest
from hypothesis import given, settings
from traceable_steps import traceable_steps

pytest.importorskip("google.protobuf", reason="needs protobuf, which the extras bring")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32

from ropewalk.export.chakra.schema import decode_metadata, decode_node
from ropewalk.export.chakra.wire import records
from ropewalk.export.chakra.write import encode_ranks

pytestmark = pytest.mark.extras

FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = [
    ("double", FIELD.TYPE_DOUBLE, 3), ("float", FIELD.TYPE_FLOAT, 5), ("int32", FIELD.TYPE_INT32, 7),
    ("int64", FIELD.TYPE_INT64, 9), ("uint32", FIELD.TYPE_UINT32, 11), ("uint64", FIELD.TYPE_UINT64, 13),
    ("sint32", FIELD.TYPE_SINT32, 15), ("sint64", FIELD.TYPE_SINT64, 17), ("fixed32", FIELD.TYPE_FIXED32, 19),
    ("fixed64", FIELD.TYPE_FIXED64, 21), ("sfixed32", FIELD.TYPE_SFIXED32, 23), ("sfixed64", FIELD.TYPE_SFIXED64, 25),
    ("bool", FIELD.TYPE_BOOL, 27), ("string", FIELD.TYPE_STRING, 29), ("bytes", FIELD.TYPE_BYTES, 31),
]  # fmt: skip


def _schema() -> tuple[type, type]:
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", package="hand", syntax="proto3")

    def field(message, name: str, number: int, kind: int, *, many: bool = False, of: str = "", one_of: bool = False):
        added = message.field.add(name=name, number=number, type=kind)
        added.label = FIELD.LABEL_REPEATED if many else FIELD.LABEL_OPTIONAL
        if of:
            added.type_name = f".hand.{of}"
        if one_of:
            added.oneof_index = 0

    attribute = file.message_type.add(name="Attribute")
    attribute.oneof_decl.add(name="value")
    field(attribute, "name", 1, FIELD.TYPE_STRING)
    field(attribute, "doc_string", 2, FIELD.TYPE_STRING)
    for name, kind, number in SCALARS:
        items = file.message_type.add(name=f"{name.title()}List")
        field(items, "values", 1, kind, many=True)
        field(attribute, f"{name}_val", number, kind, one_of=True)
        field(attribute, f"{name}_list", number + 1, FIELD.TYPE_MESSAGE, of=f"{name.title()}List", one_of=True)
    metadata = file.message_type.add(name="Metadata")
    field(metadata, "version", 1, FIELD.TYPE_STRING)
    field(metadata, "attr", 2, FIELD.TYPE_MESSAGE, many=True, of="Attribute")
    node = file.message_type.add(name="Node")
    field(node, "id", 1, FIELD.TYPE_UINT64)
    field(node, "name", 2, FIELD.TYPE_STRING)
    field(node, "type", 3, FIELD.TYPE_INT32)
    field(node, "ctrl_deps", 4, FIELD.TYPE_UINT64, many=True)
    field(node, "data_deps", 5, FIELD.TYPE_UINT64, many=True)
    field(node, "start_time_micros", 6, FIELD.TYPE_UINT64)
    field(node, "duration_micros", 7, FIELD.TYPE_UINT64)
    field(node, "attr", 10, FIELD.TYPE_MESSAGE, many=True, of="Attribute")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return tuple(message_factory.GetMessageClass(pool.FindMessageTypeByName(f"hand.{n}")) for n in ("Metadata", "Node"))


METADATA, NODE = _schema()


def _messages(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        length, at = _DecodeVarint32(data, at)
        found.append(data[at : at + length])
        at += length
    return found


def _attributes(message) -> dict[str, object]:
    found = {}
    for attribute in message.attr:
        value = getattr(attribute, attribute.WhichOneof("value"))
        found[attribute.name] = list(value.values) if hasattr(value, "values") else value
    return found


@settings(max_examples=50)
@given(traceable_steps())
def test_protobuf_reads_what_we_wrote_and_would_write_the_same_bytes(step):
    for data in encode_ranks(step):
        messages = _messages(data)
        assert messages == records(data)
        about = METADATA.FromString(messages[0])
        assert about.version == "0.0.4"
        assert _attributes(about) == decode_metadata(messages[0])
        assert about.SerializeToString() == messages[0]
        for message in messages[1:]:
            theirs, ours = NODE.FromString(message), decode_node(message)
            assert (theirs.id, theirs.name, theirs.type) == (ours.id, ours.name, ours.type)
            assert (list(theirs.data_deps), list(theirs.ctrl_deps)) == (ours.data_deps, ours.ctrl_deps)
            assert theirs.duration_micros == ours.duration_micros
            assert _attributes(theirs) == ours.attributes
            assert theirs.SerializeToString() == message


@pytest.mark.parametrize(("name", "kind", "number"), SCALARS, ids=[name for name, _, _ in SCALARS])
def test_we_read_every_type_of_attribute_that_protobuf_writes(name, kind, number):
    value = {"bool": True, "string": "ü", "bytes": b"\x00\xff", "double": -0.1, "float": 0.5}.get(name)
    if value is None:
        value = 5 if "uint" in name or name.startswith("fixed") else -5
    node = NODE(id=3)
    setattr(node.attr.add(name="one"), f"{name}_val", value)
    getattr(node.attr.add(name="many"), f"{name}_list").values.extend([value, value])
    assert decode_node(node.SerializeToString()).attributes == {"one": value, "many": [value, value]}
