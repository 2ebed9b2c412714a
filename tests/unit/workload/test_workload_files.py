"""Workload files: the same workload both ways, and every mistake in one message."""

import importlib
import pkgutil
from pathlib import Path

import pytest
from written_out import workload_of_json, workload_of_yaml

import ropewalk.workload
from ropewalk.errors import WorkloadError
from ropewalk.workload.adapted import Adapted
from ropewalk.workload.dense import Linear
from ropewalk.workload.document import OPERATORS
from ropewalk.workload.files import read_workload, to_json, to_yaml, write_workload
from ropewalk.workload.flat import FlatCopies
from ropewalk.workload.image import Convolution
from ropewalk.workload.imports import from_profile
from ropewalk.workload.operator import Operator
from ropewalk.workload.upsampling import TransposedConvolution
from ropewalk.workload.workload import Layer, Workload
from ropewalk.workload.zoo import build

PROFILE = Path(__file__).parents[2] / "data" / "profiles" / "tiny-pbs-4.txt"
MODELS = ("gpt2", "resnet50", "llama-7b", "mixtral-8x7b", "dlrm", "gnmt-16")


def every_operator() -> set[type[Operator]]:
    """All operators that any module of the package defines."""
    for module in pkgutil.walk_packages(ropewalk.workload.__path__, "ropewalk.workload."):
        importlib.import_module(module.name)

    def below(kind: type[Operator]) -> set[type[Operator]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    return {kind for kind in below(Operator) if kind.__module__.startswith("ropewalk.")} - {Operator}


def test_files_know_every_operator_there_is() -> None:
    """But copies around collectives, which a strategy puts into layers."""
    assert every_operator() == {*OPERATORS, FlatCopies}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_zoo_comes_back_from_yaml_as_it_was(name: str) -> None:
    workload = build(name, batch=2)
    assert workload_of_yaml(to_yaml(workload)) == workload


def test_branches_and_measured_layers_come_back_from_json_as_they_were() -> None:
    workload = from_profile(PROFILE)
    assert workload_of_json(to_json(workload)) == workload


def test_operators_inside_operators_come_back_as_they_were(tmp_path: Path) -> None:
    mirror = Convolution(2, 4, 16, 16, 16, (2, 2), (2, 2))
    operators = (TransposedConvolution(mirror, bias=True), Adapted(Linear(8, 4, 2), 8, 1, 0.0, (0, 2)))
    workload = Workload("nested: yes", (Layer("up # 1", operators, 64),), 2, source="test")
    for ending in ("yaml", "json"):
        write_workload(workload, tmp_path / f"net.{ending}")
        assert read_workload(tmp_path / f"net.{ending}") == workload


def test_layers_of_one_name_are_read_by_number() -> None:
    rows = tuple(Layer("twin", (), 1, inputs) for inputs in ((), (), (0, 1)))
    workload = Workload("twins", rows, 1)
    assert workload_of_yaml(to_yaml(workload)) == workload


def test_what_is_left_out_has_its_default() -> None:
    text = """
    batch: 8
    layers:
    - {name: hidden, output_elements: 16, operators: [{kind: linear, rows: 8, inputs: 4, outputs: 2}]}
    - {name: head, output_elements: 8, operators: []}
    """
    workload = workload_of_yaml(text, "net.yaml")
    assert workload.name == "net.yaml"
    assert workload.layers[0].operators == (Linear(8, 4, 2),)
    assert [layer.inputs for layer in workload.layers] == [(), (0,)]


def test_an_unknown_kind_is_told_the_known_ones() -> None:
    text = "{batch: 1, layers: [{name: a, output_elements: 1, operators: [{kind: liner, rows: 3}]}]}"
    with pytest.raises(WorkloadError, match=r"layers\[0\].operators\[0\]: kind 'liner' is unknown: use one of linear,"):
        workload_of_yaml(text)


def test_all_mistakes_are_found_at_once() -> None:
    text = """
    batch: 1
    layers:
    - name: a
      output_elements: 3
      operators:
      - {kind: linear, rows: 3, inputs: 0, outputs: true, size: 3}
      - {kind: pool, form: biggest, batch: 1, channels: 1, height: 2, width: 2, kernel: 3, stride: 1}
      - {kind: pool, form: max, batch: 1, channels: 1, height: 2, width: 2, kernel: 5, stride: 1}
      - {kind: adapted, operator: {kind: linear, rows: 1}, weights: 0, tensors: 0, saved: 1.0}
      - {kind: transposed_convolution, mirror: {kind: weights, count: 3}}
      - {kind: exchange, meeting: lunch, elements: 3}
      - seven
    - {name: b, output_elements: 3, operators: [], inputs: [b, c, 7]}
    - {name: c, operators: []}
    """
    with pytest.raises(WorkloadError) as caught:
        workload_of_yaml(text, "net.yaml")
    message = str(caught.value)
    for finding in (
        "layers[0].operators[0].inputs: is 0: give 1 or more",
        "layers[0].operators[0].outputs: is True: give a whole number",
        "layers[0].operators[0].size: unknown key: use rows, inputs, outputs",
        "layers[0].operators[1].form: 'biggest' is unknown: use max, average",
        "layers[0].operators[2]: the sizes of this pool do not fit together",
        "layers[0].operators[3].operator: inputs: is missing: add it; outputs: is missing: add it",
        "layers[0].operators[4].mirror: is a weights: write a convolution",
        "layers[0].operators[5].meeting: is 'lunch': write 'enter', 'leave'",
        "layers[0].operators[6]: is not an operator: write {kind: linear",
        "layers[1].inputs: 'b' does not come before 'b'",
        "layers[1].inputs: 'c' does not come before 'b'",
        "layers[1].inputs: 7 does not come before 'b'",
        "layers[2].output_elements: is missing: add it",
    ):
        assert finding in message, finding


@pytest.mark.parametrize("text", ["", "[]", "3", "batch: 8", "{batch: 0, layers: []}"])
def test_what_is_no_workload_is_refused(text: str) -> None:
    with pytest.raises(WorkloadError, match=r"net.yaml"):
        workload_of_yaml(text, "net.yaml")


def test_what_is_no_mapping_is_said_so() -> None:
    with pytest.raises(WorkloadError, match=r"net.yaml: is not a mapping: write the keys name, "):
        workload_of_yaml("just words", "net.yaml")


def test_an_ending_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"extension '.toml' is unknown: use .yaml, .yml or .json"):
        read_workload(tmp_path / "net.toml")
    with pytest.raises(WorkloadError, match=r"extension '.toml' is unknown"):
        write_workload(from_profile(PROFILE), tmp_path / "net.toml")
