"""ONNX files, built node by node: shapes, parameters, layers, and what is said of files that do not fit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.adapted import Adapted
from ropewalk.workload.dense import Linear, Product
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.image import BatchNorm, Convolution, Pool
from ropewalk.workload.imports import from_onnx
from ropewalk.workload.operator import Operator
from ropewalk.workload.source import open_workload
from ropewalk.workload.table import Embedding
from ropewalk.workload.workload import Workload

onnx = pytest.importorskip("onnx", reason='needs onnx: pip install "ropewalk[onnx]"')
pytestmark = pytest.mark.extras

FLOAT, INT64 = 1, 7


def saved(
    folder: Path, nodes: list[Any], shape: Sequence[int | str], weights: dict[str, tuple[int, ...]], kind: int = FLOAT,
    constants: Sequence[Any] = (),
) -> Path:  # fmt: skip
    """A file with one input x and one output y; weights have shapes but no numbers."""
    tensors = [onnx.TensorProto(name=name, data_type=FLOAT, dims=dims) for name, dims in weights.items()]
    for tensor in tensors:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.bin")
    graph = onnx.helper.make_graph(
        nodes, "net", [onnx.helper.make_tensor_value_info("x", kind, shape)],
        [onnx.helper.make_tensor_value_info("y", FLOAT, None)], [*tensors, *constants],
    )  # fmt: skip
    path = folder / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return path


def node(kind: str, reads: str, writes: str, name: str = "", **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, reads.split(), writes.split(), name=name, **attributes)


def bare(workload: Workload) -> list[Operator]:
    """All operators, whoever keeps their tensors."""
    every = [op for layer in workload.layers for op in layer.operators]
    return [op.operator if isinstance(op, Adapted) else op for op in every]


def image_net(folder: Path, batch: int | str = "N") -> Path:
    nodes = [
        node("Conv", "x w0 b0", "c", "/stem/conv/Conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", "c g s mean var", "n", "/stem/bn/BatchNormalization"),
        node("Relu", "n", "r", "/stem/Relu"),
        node("MaxPool", "r", "m", "/pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "m w1", "c1", "/blocks/blocks.0/conv/Conv", pads=[1, 1, 1, 1]),
        node("Add", "c1 m", "a1", "/blocks/blocks.0/Add"),
        node("Conv", "a1 w2", "c2", "/blocks/blocks.1/conv/Conv", pads=[1, 1, 1, 1]),
        node("Add", "c2 a1", "a2", "/blocks/blocks.1/Add"),
        node("GlobalAveragePool", "a2", "p", "/avg/GlobalAveragePool"),
        node("Flatten", "p", "f", "/Flatten"),
        node("Gemm", "f w3 b3", "y", "/head/Gemm", transB=1),
    ]
    weights = {
        "w0": (8, 3, 3, 3), "b0": (8,), "g": (8,), "s": (8,), "mean": (8,), "var": (8,), "w1": (8, 8, 3, 3),
        "w2": (8, 8, 3, 3), "w3": (10, 8), "b3": (10,),
    }  # fmt: skip
    return saved(folder, nodes, (batch, 3, 32, 32), weights)


def test_an_image_network_has_its_operators_parameters_and_layers(tmp_path: Path) -> None:
    workload = from_onnx(image_net(tmp_path), batch=4)
    assert [(layer.name, layer.kind) for layer in workload.layers] == [
        ("stem", "layer"), ("blocks.0", "block"), ("blocks.1", "block"), ("head", "layer"),
    ]  # fmt: skip
    assert workload.is_chain
    assert workload.parameters() == 216 + 8 + 16 + 576 + 576 + 80 + 10
    assert workload.layers[0].operators[0] == Convolution(
        4, 3, 32, 32, 8, (3, 3), (2, 2), (1, 1), bias=True, first=True
    )
    assert workload.layers[0].operators[1] == BatchNorm(4, 8, 256)
    assert Pool("max", 4, 8, 16, 16, 2, 2) in bare(workload)
    assert workload.layers[3].operators == (Linear(4, 8, 10),)
    assert [layer.output_elements for layer in workload.layers] == [4 * 8 * 64, 4 * 8 * 64, 4 * 8, 40]


def test_equal_blocks_have_equal_operators(tmp_path: Path) -> None:
    workload = from_onnx(image_net(tmp_path), batch=4)
    assert workload.layers[1].operators == workload.layers[2].operators[: len(workload.layers[1].operators)]


def test_a_symbolic_batch_is_fixed_and_resized(tmp_path: Path) -> None:
    path = image_net(tmp_path)
    assert from_onnx(path, batch=4).at_batch(8) == from_onnx(path, batch=8)
    assert open_workload(str(path), batch=8) == from_onnx(path, batch=8)


def test_a_symbolic_batch_that_nobody_fixes_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"dimension 0 of input 'x' is symbolic \(N\): give batch \(--batch"):
        from_onnx(image_net(tmp_path))


def test_a_fixed_batch_stays(tmp_path: Path) -> None:
    workload = from_onnx(image_net(tmp_path, 2))
    assert workload.batch == 2
    with pytest.raises(WorkloadError, match="is fixed at micro-batches of 2"):
        workload.at_batch(4)


def test_another_symbolic_dimension_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, [node("Relu", "x", "y")], ("N", "S", "H"), {})
    with pytest.raises(WorkloadError) as caught:
        from_onnx(path, batch=2)
    assert "dimension 1 of input 'x' is symbolic (S): give sequence" in str(caught.value)
    assert "dimension 2 of input 'x' is symbolic (H): export the model with a fixed size" in str(caught.value)


def test_attention_that_is_written_out_stays_products_and_a_softmax(tmp_path: Path) -> None:
    nodes = [
        node("Gather", "table x", "e"),
        node("MatMul", "e wq", "q"),
        node("MatMul", "e wk", "k"),
        node("Transpose", "k", "kt", perm=[0, 2, 1]),
        node("MatMul", "q kt", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p e", "y"),
    ]
    weights = {"table": (100, 16), "wq": (16, 16), "wk": (16, 16)}
    workload = from_onnx(saved(tmp_path, nodes, ("N", "S"), weights, INT64), batch=2, sequence=8)
    operators = bare(workload)
    assert (workload.batch, workload.sequence) == (2, 8)
    assert Embedding(16, 100, 16) in operators
    products = [op for op in operators if isinstance(op, Product)]
    assert [(op.count, op.rows, op.columns, op.inner) for op in products] == [(2, 8, 8, 16), (2, 8, 16, 8)]
    assert [op.transposed for op in products] == [True, False]
    assert workload.parameters() == 1600 + 512


def test_heads_that_are_joined_again_are_copied(tmp_path: Path) -> None:
    shape = onnx.helper.make_tensor("shape", INT64, [2], [2, 32])
    nodes = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Reshape", "t shape", "r"), node("MatMul", "r w", "y")]
    workload = from_onnx(saved(tmp_path, nodes, (2, 4, 8), {"w": (32, 3)}, constants=[shape]))
    copy, product = bare(workload)
    assert isinstance(copy, Pointwise)
    assert (copy.elements, copy.form) == (64, "transpose")
    assert product == Linear(2, 32, 3, bias=False, first=True, turned=True)


def test_without_paths_in_names_every_operation_with_weights_begins_a_layer(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w0", "a", "first"), node("Relu", "a", "b"), node("MatMul", "b w1", "y")]
    workload = from_onnx(saved(tmp_path, nodes, (2, 4), {"w0": (4, 8), "w1": (8, 3)}))
    assert [layer.name for layer in workload.layers] == ["first", "MatMul_2"]
    assert [len(layer.operators) for layer in workload.layers] == [2, 1]


def test_arithmetic_on_sizes_costs_nothing(tmp_path: Path) -> None:
    axes = onnx.helper.make_tensor("rest", INT64, [1], [-1])
    first = onnx.helper.make_tensor("zero", INT64, [1], [0])
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n"),
        node("Concat", "n rest", "target", axis=0),
        node("Reshape", "x target", "flat"),
        node("MatMul", "flat w", "y"),
    ]
    workload = from_onnx(saved(tmp_path, nodes, (2, 4, 4), {"w": (16, 3)}, constants=[axes, first]))
    assert [op for layer in workload.layers for op in layer.operators] == [
        Linear(2, 16, 3, bias=False, first=True, turned=True)
    ]


def test_an_operation_that_is_not_known_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, [node("Det", "x", "y", "volume")], (2, 4, 4), {})
    with pytest.raises(WorkloadError, match=r"node volume \(Det\) is of a type or form that is not known"):
        from_onnx(path)


def test_a_shape_that_only_a_run_would_show_is_named(tmp_path: Path) -> None:
    nodes = [node("NonZero", "x", "where"), node("Cast", "where", "y", to=FLOAT)]
    with pytest.raises(WorkloadError, match=r"the shape of 'where' made by node 0 \(NonZero\) is not known"):
        from_onnx(saved(tmp_path, nodes, (2, 4), {}))


def test_shapes_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, [node("MatMul", "x w", "y")], (2, 4), {"w": (5, 3)})
    with pytest.raises(WorkloadError, match="shapes do not fit together"):
        from_onnx(path)


def test_a_file_without_operations_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(WorkloadError, match="has no operations: export the model again"):
        from_onnx(tmp_path / "empty.onnx")


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("hello")
    with pytest.raises(WorkloadError, match="is not an ONNX model"):
        from_onnx(tmp_path / "net.onnx")
    with pytest.raises(WorkloadError, match="does not exist: check the path"):
        from_onnx(tmp_path / "nowhere.onnx")
