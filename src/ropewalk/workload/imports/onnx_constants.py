"""Arithmetic on sizes in an ONNX file, done before the model runs.

Exporters compute the shape of a reshape from the shape of a tensor, node by node. Once the sizes of the inputs are
known, so is all of that: such nodes are replaced by their results, until shape inference knows every shape.
"""

from __future__ import annotations

from typing import Any

SMALL = 4096
"""Elements up to which a constant is worth computing: shapes and axes are small, weights are not."""
WHOLE_NUMBERS = (2, 3, 4, 5, 6, 7, 9, 12, 13)
"""Types of integers and truth values in ONNX: initializers of any other type are weights, which stay."""
ROUNDS = 12
"""Shapes of shapes: each round makes one more level of them known."""


def with_known_sizes(onnx: Any, model: Any) -> Any:
    """The model with shapes inferred and what is known before it runs already computed."""
    weights = {tensor.name for tensor in model.graph.initializer if tensor.data_type not in WHOLE_NUMBERS}
    inferred = _inferred(onnx, model)
    for _ in range(ROUNDS):
        if not _fold(onnx, inferred, weights):
            break
        inferred = _inferred(onnx, inferred)
    return inferred


def _inferred(onnx: Any, model: Any) -> Any:
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def _fold(onnx: Any, model: Any, weights: set[str]) -> bool:
    """Replace every node whose inputs are known by what it makes; True if there was one."""
    graph = model.graph
    known = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if tensor.name not in weights
        and tensor.data_location != onnx.TensorProto.EXTERNAL
        and _elements(tensor.dims) <= SMALL
    }
    shapes = {
        entry.name: [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
        for entry in [*graph.input, *graph.value_info]
        if all(dim.HasField("dim_value") for dim in entry.type.tensor_type.shape.dim)
        and entry.type.tensor_type.HasField("shape")
    }
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    left: list[Any] = []
    made: dict[str, Any] = {}
    for node in graph.node:
        results = _results(onnx, model, node, known, shapes)
        if results is None:
            left.append(node)
        else:
            made |= results
            known |= results
    if not made:
        return False
    del graph.node[:]
    graph.node.extend(left)
    graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in made.items())
    return True


def _results(onnx: Any, model: Any, node: Any, known: dict[str, Any], shapes: dict[str, list[int]]) -> Any:
    """What the node makes, by name; None if it is not known yet or not small."""
    import numpy as np

    if node.op_type == "Shape" and not node.attribute and node.input[0] in shapes:
        return {node.output[0]: np.array(shapes[node.input[0]], dtype=np.int64)}
    if not all(name in known for name in node.input if name) or any(
        entry.type == onnx.AttributeProto.GRAPH for entry in node.attribute
    ):
        return None
    if node.op_type in MADE_BY_CHANCE or any(_elements(shapes.get(name, [])) > SMALL for name in node.output):
        return None
    empty = onnx.helper.make_empty_tensor_value_info
    graph = onnx.helper.make_graph([node], "one", [empty(n) for n in node.input if n], [empty(n) for n in node.output])
    single = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    try:
        made = onnx.reference.ReferenceEvaluator(single).run(None, {name: known[name] for name in node.input if name})
    except Exception:  # an operation without a reference is simply not folded; the walk says what it thinks of it
        return None
    small = all(hasattr(array, "size") and array.size <= SMALL for array in made)
    return {name: np.asarray(array) for name, array in zip(node.output, made, strict=True)} if small else None


MADE_BY_CHANCE = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}


def _elements(dims: Any) -> int:
    count = 1
    for size in dims:
        count *= size
    return count
