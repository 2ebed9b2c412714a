"""A record of arrays behind one pointer: what compiled functions hand each other in place of hundreds of words.

Numba passes a named tuple of arrays to a function by value, some eight words an array, and counts a reference whenever
one of them is taken out. `point_at` puts the record on the stack of the caller and returns a pointer, on which the same
names work (`world.links`). The arrays it gives out have no owner, so nothing is counted: the caller holds them for as
long as the pointer lives. The record never changes while it is pointed at, and the compiler is told so: what was read
once, such as where the packets are, is not read again after every write to one of them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic
from numba.np.arrayobj import make_array

_OWNER = ("meminfo", "parent")
"""The fields of an array that lead to its owner."""


class RecordPointer(types.Type):
    """The type of a pointer to a named tuple of arrays."""

    def __init__(self, record: Any) -> None:
        self.record = record
        # The name of a type is part of the name of every function that takes it; that of the record has thousands
        # of letters.
        digest = blake2b(record.name.encode(), digest_size=8).hexdigest()
        super().__init__(name=f"RecordPointer({digest})")


@register_default(RecordPointer)
class _PointerModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, pointer: RecordPointer) -> None:
        value = manager.lookup(pointer.record).get_value_type()
        super().__init__(manager, pointer, value.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = RecordPointer

    def generic_resolve(self, pointer: RecordPointer, name: str) -> Any:
        if name in pointer.record.fields:
            return pointer.record.types[pointer.record.fields.index(name)]
        return None


def _read(builder: Any, place: Any) -> Any:
    """Load a value whose words never change, word by word."""
    kind = place.type.pointee
    if not isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
        word = builder.load(place)
        word.set_metadata("invariant.load", builder.module.add_metadata([]))
        return word
    value = ir.Constant(kind, ir.Undefined)
    for number in range(len(kind)):
        value = builder.insert_value(value, _read(builder, cgutils.gep_inbounds(builder, place, 0, number)), number)
    return value


@lower_getattr_generic(RecordPointer)
def _take_field(context: Any, builder: Any, pointer: RecordPointer, value: Any, name: str) -> Any:
    place = pointer.record.fields.index(name)
    model = context.data_model_manager[pointer.record.types[place]]
    array = _read(builder, cgutils.gep_inbounds(builder, value, 0, place))
    for field in _OWNER:
        # No owner: references to it are counted by nobody, and the compiler sees that.
        number = model.get_field_position(field)
        array = builder.insert_value(array, cgutils.get_null_value(array.type.elements[number]), number)
    return array


@intrinsic
def point_at(typing_context: Any, record: Any) -> Any:
    """A pointer to a named tuple of arrays, good until the calling function returns."""
    pointer = RecordPointer(record)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = cgutils.alloca_once_value(builder, arguments[0])
        # Behind this the compiler no longer knows that the record was written a moment ago, only that it is constant.
        kind = ir.FunctionType(place.type, [place.type])
        return builder.asm(kind, "", "=r,0,~{memory}", [place], side_effect=True)

    return pointer(record), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The number of the lowest set bit of a word of 64 bits; 64 where none is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, records: Any, number: Any) -> Any:
    """Ask the cache for a record that will be needed soon. Any number does: none is read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(records)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(ask, [place, flag(1), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(records, number), generate
