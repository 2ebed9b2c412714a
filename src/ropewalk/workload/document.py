"""The schema of a workload file, and the way from a parsed document to layers.

Every kind of operator is read by a pydantic model made from its dataclass, so a new operator needs one entry in
`OPERATORS` and nothing else. Layers and operators are validated one by one: a mistake in one does not hide the others.
"""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
)  # fmt: skip

from ropewalk.documents.entries import sentence
from ropewalk.errors import Findings
from ropewalk.workload.adapted import Adapted, Weights
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Dropout, Normalise, Pointwise, Softmax
from ropewalk.workload.exchange import Exchange
from ropewalk.workload.experts import Experts, SortTokens, SumExperts
from ropewalk.workload.flat import FlatCopies
from ropewalk.workload.image import BatchNorm, Convolution, Pool
from ropewalk.workload.interaction import Interaction
from ropewalk.workload.kernel import convolved
from ropewalk.workload.lookup import SparseTable
from ropewalk.workload.loss import BinaryCrossEntropy, CrossEntropy
from ropewalk.workload.lstm import Lstm
from ropewalk.workload.opaque import Measured
from ropewalk.workload.operator import Operator
from ropewalk.workload.reduction import Broadcast, Reduction
from ropewalk.workload.scan import Scan
from ropewalk.workload.table import Embedding, EmbeddingBags
from ropewalk.workload.upsampling import TransposedConvolution
from ropewalk.workload.written import Written

OPERATORS: tuple[type[Operator], ...] = (
    Linear, Product, FusedAttention, Convolution, TransposedConvolution, Pool, BatchNorm, Normalise, Softmax, Pointwise,
    Reduction, Broadcast, Dropout, Embedding, EmbeddingBags, SparseTable, Lstm, Interaction, Scan, SortTokens, Experts,
    SumExperts, Written, CrossEntropy, BinaryCrossEntropy, Exchange, Measured, Adapted, Weights, FlatCopies,
)  # fmt: skip


def kind_of(operator: type[Operator]) -> str:
    """The name of an operator in files: `FusedAttention` is `fused_attention`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operator.__name__).lower()


KINDS: dict[str, type[Operator]] = {kind_of(operator): operator for operator in OPERATORS}

FORMS: dict[type[Any], tuple[str, ...]] = {
    Normalise: ("layer_norm", "rms_norm"),
    Softmax: ("softmax", "log_softmax"),
    Pool: ("max", "average"),
    Pointwise: ("map", "gelu", "gelu_backward", "transpose", "permute", "broadcast", "cat", "cast", "dropout"),
    Broadcast: ("column_sum", "row_mean"),
}
"""What the key `form` may say, where it is more than a label."""

MAY_BE_ZERO = {
    "padding", "reads", "backward_reads", "passes", "backward_passes", "weights", "tensors", "skips", "saved", "share",
    "forward_s", "backward_s", "saved_wide", "writes", "window", "kept_keys",
}  # fmt: skip


class WorkloadSheet(BaseModel):
    """The file itself."""

    model_config = ConfigDict(extra="forbid")
    name: StrictStr | None = None
    description: StrictStr | None = None
    source: StrictStr | None = None
    stack: StrictStr = ""
    batch: Annotated[StrictInt, Field(ge=1)]
    sequence: Annotated[StrictInt, Field(ge=0)] = 0
    layers: Annotated[list[Any], Field(min_length=1)]


class LayerSheet(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: StrictStr
    kind: StrictStr = "layer"
    output_elements: Annotated[StrictInt, Field(ge=0)]
    inputs: list[StrictInt | StrictStr] | None = None
    operators: list[Any]


def read_operator(value: object, where: str, findings: Findings) -> Operator | None:
    """The operator that a mapping describes; whatever does not fit is added to the findings."""
    if not isinstance(value, dict) or "kind" not in value:
        findings.add(f"{where}: is not an operator: write {{kind: linear, rows: 8, inputs: 4, outputs: 2}}")
        return None
    found = KINDS.get(value["kind"]) if isinstance(value["kind"], str) else None
    if found is None:
        findings.add(f"{where}: kind {value['kind']!r} is unknown: use one of {', '.join(KINDS)}")
        return None
    sheet = validated(sheet_of(found), {k: v for k, v in value.items() if k != "kind"}, where, findings)
    return None if sheet is None else _checked(_built(found, sheet), where, findings)


def validated(model: type[BaseModel], value: object, where: str, findings: Findings) -> Any:
    """The model of this value, or None and findings."""
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        for error in problem.errors():
            at = ".".join([where, *map(str, error["loc"])]).strip(".")
            findings.add(f"{at}{': ' if at else ''}{sentence(model, error)}")
        return None


@cache
def sheet_of(record: type[Any]) -> type[BaseModel]:
    """The model that validates the fields of a dataclass."""
    hints = get_type_hints(record)
    fields: dict[str, Any] = {
        field.name: (
            _type(hints[field.name], field.name, FORMS.get(record, ())),
            ... if field.default is dataclasses.MISSING else field.default,
        )
        for field in _fields(record)
    }
    return create_model(record.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _fields(record: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a record in the order in which people write them: its own before those of all operators."""
    return sorted(dataclasses.fields(record), key=lambda field: field.kw_only is True)


def _type(hint: Any, name: str, forms: tuple[str, ...]) -> Any:
    """How pydantic shall read a field: strictly, and within what makes sense."""
    least = 0 if name in MAY_BE_ZERO else 1
    if hint is bool:
        return StrictBool
    if hint is int:
        return Annotated[StrictInt, Field(ge=least)]
    if hint is float:
        return Annotated[StrictFloat | StrictInt, Field(ge=0, allow_inf_nan=False)]
    if hint is str:
        return (
            Annotated[StrictStr, PlainValidator(lambda value: _form(value, forms))]
            if name == "form" and forms
            else StrictStr
        )
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if isinstance(hint, type) and issubclass(hint, Operator):
        return Annotated[Any, PlainValidator(lambda value: _nested(value, hint))]
    if get_origin(hint) is tuple:
        inner = tuple(_type(part, name, ()) if part is not ... else ... for part in get_args(hint))
        return tuple.__class_getitem__(inner)
    return sheet_of(hint)


def _form(value: object, forms: tuple[str, ...]) -> object:
    if value not in forms:
        raise ValueError(f"{value!r} is unknown: use {', '.join(forms)}")
    return value


def _nested(value: object, wanted: type[Operator]) -> Operator:
    """An operator inside an operator."""
    findings = Findings(ValueError, "")  # type: ignore[arg-type]
    found = read_operator(value, "", findings)
    if found is None:
        raise ValueError("; ".join(message.removeprefix(": ") for message in findings.messages))
    if not isinstance(found, wanted):
        raise ValueError(f"is a {kind_of(type(found))}: write a {kind_of(wanted)}")
    return found


def _built(record: type[Any], sheet: BaseModel) -> Any:
    """The dataclass with the values of its model."""
    hints = get_type_hints(record)
    return record(**{name: _value(hints[name], getattr(sheet, name)) for name in type(sheet).model_fields})


def _value(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple and isinstance(value, tuple):
        return tuple(_value(get_args(hint)[0], item) for item in value)
    return _built(hint, value) if isinstance(value, BaseModel) else value


def _checked(operator: Operator, where: str, findings: Findings) -> Operator | None:
    """Sizes that are fine one by one may not fit together, such as a window larger than its image."""
    try:
        kernels = [*operator.forward(), *operator.backward()]
        fits = _has_stops(operator) and all(min(k.flops, k.elements_read, k.elements_written) >= 0 for k in kernels)
    except (ArithmeticError, LookupError, ValueError):
        fits = False
    if not fits:
        findings.add(f"{where}: the sizes of this {kind_of(type(operator))} do not fit together: check them")
        return None
    return operator


def _has_stops(operator: Operator) -> bool:
    """Does the window of a convolution or a pool fit into its image?"""
    if isinstance(operator, Convolution):
        return min(operator.result_side) > 0 and operator.channels % operator.groups == 0
    if isinstance(operator, Pool):
        sides = (operator.height, operator.width)
        return all(convolved(side, operator.kernel, operator.stride, operator.padding) > 0 for side in sides)
    return True


def write_operator(operator: Any) -> dict[str, Any]:
    """The mapping that a file holds for an operator: what it must say, and what differs from the default."""
    head = {"kind": kind_of(type(operator))} if isinstance(operator, Operator) else {}
    return head | {
        field.name: _plain(getattr(operator, field.name))
        for field in _fields(operator)
        if field.default is dataclasses.MISSING or getattr(operator, field.name) != field.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return write_operator(value) if dataclasses.is_dataclass(value) else value
