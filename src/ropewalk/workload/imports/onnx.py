"""ONNX files as workloads: shapes are inferred, weights are never loaded.

A file describes the forward pass; the backward pass is that of its operators. Floating-point initializers of at least
one dimension are parameters, save the running statistics of batch normalisation. Layers follow the module paths that
exporters keep in the names of nodes; without them every operation with weights begins a layer. Attention that is
written as products and a softmax stays that.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ropewalk.documents import read_bytes
from ropewalk.errors import Findings, WorkloadError
from ropewalk.extras import how_to_install
from ropewalk.workload.imports import works
from ropewalk.workload.imports.graph import GraphEvent, UsedOperator, Value, result, view
from ropewalk.workload.imports.layering import layers_of
from ropewalk.workload.imports.onnx_constants import with_known_sizes
from ropewalk.workload.imports.onnx_works import ELEMENTWISE, ONCE, VIEWS, WORKS, OnnxNode
from ropewalk.workload.imports.pointwise import elementwise
from ropewalk.workload.imports.scopes import Scope, is_element, layer_scopes
from ropewalk.workload.workload import Workload

MOST_OF_ONNX = 2**31
"""Protocol Buffers end at 2 GiB; larger weights stand beside the file."""


def from_onnx(
    path: str | Path, *, batch: int | None = None, sequence: int | None = None, name: str | None = None
) -> Workload:
    """The workload of an ONNX file.

    `batch` fixes a symbolic first dimension of the inputs, `sequence` a symbolic second one. A file whose first
    dimension is a number keeps that micro-batch.
    """
    onnx = _onnx()
    subject = f"ONNX file {path}"
    model = _read(onnx, Path(path), subject)
    if not model.graph.node:
        raise WorkloadError(f"{subject} has no operations: export the model again")
    symbolic = _fix(onnx, model, batch, sequence, subject)
    weights = {tensor.name for tensor in model.graph.initializer}
    graph = Reading(onnx, _inferred(onnx, model, subject), weights, subject)
    results = graph.run()
    layers = layers_of(graph.events, graph.parameters, results, graph.kinds)

    def resize(to: int) -> Workload:
        return from_onnx(path, batch=to, sequence=sequence, name=name)

    size, length = graph.samples()
    return Workload(
        name or Path(path).stem, layers, size, length, f"ONNX file {Path(path).name}", resize if symbolic else None
    )


def _onnx() -> Any:
    try:
        import onnx
        import onnx.reference
        import onnx.shape_inference
    except ImportError:
        raise WorkloadError(
            f"ONNX files need the package onnx, which is not installed: {how_to_install('onnx')}"
        ) from None
    return onnx


def _read(onnx: Any, path: Path, subject: str) -> Any:
    content = read_bytes(path, subject, WorkloadError, MOST_OF_ONNX)
    try:
        return onnx.load_model_from_string(content)
    except Exception as problem:  # the parser has exceptions of its own
        raise WorkloadError(f"{subject} is not an ONNX model ({problem}): export the model again") from None


def _fix(onnx: Any, model: Any, batch: int | None, sequence: int | None, subject: str) -> bool:
    """Give symbolic dimensions of the inputs their sizes; True if the first one was symbolic."""
    findings = Findings(WorkloadError, subject)
    given = {0: ("batch", batch), 1: ("sequence", sequence)}
    weights = {tensor.name for tensor in model.graph.initializer}
    symbolic = False
    for entry in model.graph.input:
        if entry.name in weights:
            continue
        for at, dim in enumerate(entry.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value > 0:
                continue
            symbol = dim.dim_param or "unnamed"
            word, size = given.get(at, ("", None))
            symbolic = symbolic or at == 0
            if size is not None:
                dim.dim_value = size
            else:
                remedy = f"give {word} (--{word} on the command line)" if word else "export the model with a fixed size"
                findings.add(f"dimension {at} of input {entry.name!r} is symbolic ({symbol}): {remedy}")
    findings.raise_if_any()
    if symbolic:  # shapes inferred for the symbol are no longer true
        del model.graph.value_info[:]
        for entry in model.graph.output:
            entry.type.tensor_type.ClearField("shape")
    return symbolic


def _inferred(onnx: Any, model: Any, subject: str) -> Any:
    try:
        return with_known_sizes(onnx, model)
    except onnx.shape_inference.InferenceError as problem:
        reason = " ".join(str(problem).split())[:300]
        raise WorkloadError(
            f"{subject}: shapes do not fit together ({reason}): export the model for this size"
        ) from None


class Reading:
    """Goes through the nodes of a graph, which ONNX keeps in an order in which they can run."""

    def __init__(self, onnx: Any, model: Any, weights: set[str], subject: str) -> None:
        self.weights = weights
        """Names of the initializers of the file; others are constants that were computed from sizes."""
        self.onnx = onnx
        self.graph = model.graph
        self.subject = subject
        self.findings = Findings(WorkloadError, subject)
        self.events: list[GraphEvent] = []
        self.parameters: dict[str, int] = {}
        self.kinds: dict[str, str] = {}
        entries = [*self.graph.input, *self.graph.value_info, *self.graph.output]
        self.types = {entry.name: entry.type.tensor_type for entry in entries}
        self.values: dict[str, Value] = {}
        self.places = self._places()

    def run(self) -> tuple[Value, ...]:
        """Write down every node as an event; the values that the model returns."""
        self._weights()
        for entry in self.graph.input:
            if entry.name not in self.values:
                self.values[entry.name] = Value(self._shape(entry.name, "the inputs") or ())
        for number, node in enumerate(self.graph.node):
            self._node(node, number)
        self.findings.raise_if_any()
        return tuple(self.values[entry.name] for entry in self.graph.output if entry.name in self.values)

    def samples(self) -> tuple[int, int]:
        """Samples in the micro-batch, and tokens in a sample where the first input is a matrix of token numbers."""
        inputs = [e for e in self.graph.input if e.name not in {i.name for i in self.graph.initializer}]
        shape = self.values[inputs[0].name].shape if inputs else ()
        whole = (self.onnx.TensorProto.INT64, self.onnx.TensorProto.INT32)
        tokens = len(shape) == 2 and self.types[inputs[0].name].elem_type in whole
        return (shape[0] if shape else 1), (shape[1] if tokens else 0)

    def _weights(self) -> None:
        statistics = {
            name for node in self.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:]
        }
        for tensor in self.graph.initializer:
            shape = tuple(tensor.dims)
            trained = self._is_weight(tensor) and tensor.name not in statistics
            value = Value(shape, trained, (tensor.name,) if trained else (), data=False)
            self.values[tensor.name] = value
            if trained:
                self.parameters[tensor.name] = value.elements

    def _is_weight(self, tensor: Any) -> bool:
        return tensor.name in self.weights and self._is_float(tensor.data_type) and len(tensor.dims) > 0

    def _is_float(self, kind: int) -> bool:
        types = self.onnx.TensorProto
        return kind in (types.FLOAT, types.FLOAT16, types.BFLOAT16, types.DOUBLE)

    def _shape(self, name: str, where: str) -> tuple[int, ...] | None:
        kind = self.types.get(name)
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim] if kind else [None]
        if any(size is None for size in dims) or (kind is not None and not kind.HasField("shape")):
            self.findings.add(
                f"the shape of {name!r} made by {where} is not known before the model runs: export it with fixed "
                f"sizes, or simplify the file first"
            )
            return None
        return tuple(size for size in dims if size is not None)

    def _node(self, node: Any, number: int) -> None:
        where = f"node {node.name or number} ({node.op_type})"
        if any(name and name not in self.values for name in node.input):
            return  # what it reads has been refused already
        inputs = tuple(self.values[name] if name else None for name in node.input)
        reads = tuple(value for value in inputs if value is not None)
        shapes = [(name, self._shape(name, where)) for name in node.output if name and self._is_wanted(name)]
        if any(shape is None for _, shape in shapes):
            return
        outs = tuple(self._value(node, name, shape or (), reads) for name, shape in shapes)
        self.values.update(zip((name for name, _ in shapes), outs, strict=True))
        event = GraphEvent(where, self.places.get(number), reads, outs)
        self.events.append(event)
        if not any(out.data for out in outs) and not any(out.gradient for out in outs):
            return  # computed from sizes and constants: known before the first step
        attributes = {entry.name: self.onnx.helper.get_attribute_value(entry) for entry in node.attribute}
        event.works = self._works(node.op_type, OnnxNode(inputs, outs, attributes), reads, where)

    def _is_wanted(self, name: str) -> bool:
        """Optional outputs that nothing reads have no shape, and need none."""
        return name in self.types

    def _value(self, node: Any, name: str, shape: tuple[int, ...], reads: tuple[Value, ...]) -> Value:
        copied = node.op_type in ("Reshape", "Flatten") and reads[0].strided
        value = view(shape, reads[0]) if node.op_type in VIEWS and not copied else result(shape, reads)
        value.gradient = value.gradient and self._is_float(self.types[name].elem_type)
        value.data = value.data and node.op_type not in ONCE
        if node.op_type == "Transpose":
            order = next((entry.ints for entry in node.attribute if entry.name == "perm"), [*range(len(shape))][::-1])
            value.strided = [*order] != [*range(len(shape))]
            value.swapped = [*order][-2:] == [len(shape) - 1, len(shape) - 2]
        return value

    def _works(self, kind: str, node: OnnxNode, reads: tuple[Value, ...], where: str) -> list[UsedOperator]:
        made: list[UsedOperator] | None = None
        if kind in ONCE:
            return []
        if kind in VIEWS:
            made = works.copy(node.x, node.out) if node.out.base is None else []
        elif kind in WORKS:
            made = WORKS[kind](node)
        elif kind in ELEMENTWISE:
            made = elementwise(ELEMENTWISE[kind], reads, node.out)
        if made is None:
            self.findings.add(
                f"{where} is of a type or form that is not known: export the model with standard operations"
            )
            return []
        if any(out.gradient for out in node.outs):
            return made
        return [works.forward_only(work) for work in made if work.operator.forward()]

    def _places(self) -> dict[int, str]:
        """The layer of every node that has one."""
        weights = {tensor.name for tensor in self.graph.initializer if self._is_weight(tensor)}
        bearing = [number for number, node in enumerate(self.graph.node) if weights & {*node.input}]
        scopes = [_scope(node) for node in self.graph.node]
        if not any(scopes):
            return {
                number: self.graph.node[number].name or f"{self.graph.node[number].op_type}_{number}"
                for number in bearing
            }
        layers = layer_scopes(scopes)
        trained = {layers[scopes[number]] for number in bearing if scopes[number] in layers}
        self.kinds.update((layer, "block") for layer in trained if is_element(layer))
        return {
            number: layers[scope] for number, scope in enumerate(scopes) if scope in layers and layers[scope] in trained
        }


def _scope(node: Any) -> Scope:
    """The path of the module a node comes from, without the node itself."""
    for entry in node.metadata_props:
        if entry.key == "pkg.torch.onnx.name_scopes":
            names = [name for name in ast.literal_eval(entry.value) if name]
            return tuple(_steps(names[:-1]))
    return tuple(part for part in node.name.split("/")[:-1] if part)


def _steps(names: list[str]) -> list[str]:
    """Full paths (`layer1`, `layer1.0`, `layer1.0.conv1`) as the step each one takes from the one before."""
    steps, before = [], ""
    for name in names:
        steps.append(name.removeprefix(f"{before}.") if before else name)
        before = name
    return steps
