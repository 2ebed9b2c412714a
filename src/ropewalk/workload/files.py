"""Workload files: YAML or JSON in, YAML or JSON out, the same workload both ways.

    name: two layers          # what reports call it; the name of the file if left out
    batch: 8                  # samples in the micro-batch that the sizes below are for
    sequence: 0               # tokens in a sample; 0 or nothing where samples are not sequences
    layers:
    - name: hidden
      kind: block             # layers of one kind and equal operators cost the same; `layer` if left out
      output_elements: 4096   # what it hands to each layer that reads it
      operators:
      - {kind: linear, rows: 8, inputs: 784, outputs: 512, first: true}
      - {kind: pointwise, elements: 4096}
    - name: head
      output_elements: 80
      inputs: [hidden]        # names or numbers of layers; the one before if left out, [] for one that reads data
      operators:
      - {kind: linear, rows: 8, inputs: 512, outputs: 10}

The keys of an operator are the fields of its class in `ropewalk.workload`, with the same defaults; its kind is the name
of the class in small letters with underscores. A file with mistakes is refused with all of them in one message.

>>> from ropewalk.workload.dense import Linear
>>> from ropewalk.workload.workload import Layer, Workload
>>> print(to_yaml(Workload("net", (Layer("hidden", (Linear(8, 784, 512),), 4096),), 8)))
name: net
source: zoo
batch: 8
layers:
- name: hidden
  output_elements: 4096
  operators:
  - {kind: linear, rows: 8, inputs: 784, outputs: 512}
<BLANKLINE>
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropewalk.documents import Parser, parse_json, parse_yaml, read_text
from ropewalk.errors import Findings, WorkloadError
from ropewalk.files import write_whole
from ropewalk.workload.document import LayerSheet, WorkloadSheet, read_operator, validated, write_operator
from ropewalk.workload.workload import Layer, Workload


def read_workload(path: str | Path) -> Workload:
    """Read a .yaml, .yml or .json file."""
    file = Path(path)
    subject = f"workload file {path}"
    parse = PARSERS.get(file.suffix.lower())
    if parse is None:
        raise WorkloadError(f"{subject}: the extension {file.suffix!r} is unknown: use .yaml, .yml or .json")
    text = read_text(file, subject, WorkloadError)
    return parse_document(parse(text, subject, WorkloadError), subject, file.stem)


def write_workload(workload: Workload, path: str | Path) -> None:
    """Write a .yaml, .yml or .json file, whole or not at all."""
    write = WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise WorkloadError(
            f"workload file {path}: the extension {Path(path).suffix!r} is unknown: use .yaml, .yml or .json"
        )
    write_whole(path, write(workload))


def to_yaml(workload: Workload) -> str:
    """Write a workload as YAML, one operator a line."""
    import yaml

    return str(yaml.safe_dump(document_of(workload), sort_keys=False, default_flow_style=None, width=10**9,
                              allow_unicode=True))  # fmt: skip


def to_json(workload: Workload) -> str:
    """Write a workload as JSON."""
    return json.dumps(document_of(workload), indent=1, ensure_ascii=False) + "\n"


def document_of(workload: Workload) -> dict[str, Any]:
    """The workload as the plain lists and dictionaries that its file holds."""
    names = [layer.name for layer in workload.layers]
    head: dict[str, Any] = {"name": workload.name, "source": workload.source, "batch": workload.batch}
    if workload.stack:
        head["stack"] = workload.stack
    head |= {"sequence": workload.sequence} if workload.sequence else {}
    return head | {"layers": [_layer(layer, number, names) for number, layer in enumerate(workload.layers)]}


def _layer(layer: Layer, number: int, names: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": layer.name}
    row |= {"kind": layer.kind} if layer.kind != "layer" else {}
    row["output_elements"] = layer.output_elements
    if layer.inputs != _before(number):
        row["inputs"] = [names[at] if names.count(names[at]) == 1 else at for at in layer.inputs]
    return row | {"operators": [write_operator(operator) for operator in layer.operators]}


def _before(number: int) -> tuple[int, ...]:
    return (number - 1,) if number else ()


def parse_document(document: object, subject: str, name: str) -> Workload:
    """Turn what a YAML or JSON parser returned into a workload."""
    findings = Findings(WorkloadError, subject)
    sheet = validated(WorkloadSheet, document, "", findings)
    if sheet is None:  # which layers there are is not known
        findings.raise_if_any()
    rows = [validated(LayerSheet, row, f"layers[{at}]", findings) for at, row in enumerate(sheet.layers)]
    names = [row.get("name") if isinstance(row, dict) else None for row in sheet.layers]
    layers = [_read(row, number, names, findings) for number, row in enumerate(rows) if row is not None]
    findings.raise_if_any()
    return Workload(
        sheet.name or name, tuple(layers), sheet.batch, sheet.sequence, sheet.source or subject, stack=sheet.stack
    )


def _read(row: LayerSheet, number: int, names: list[str | None], findings: Findings) -> Layer:
    where = f"layers[{number}]"
    operators = [read_operator(value, f"{where}.operators[{at}]", findings) for at, value in enumerate(row.operators)]
    inputs = _before(number) if row.inputs is None else tuple(
        at for entry in row.inputs if (at := _input(entry, number, names, where, findings)) is not None
    )  # fmt: skip
    return Layer(row.name, tuple(op for op in operators if op is not None), row.output_elements, inputs, row.kind)


def _input(entry: int | str, number: int, names: list[str | None], where: str, findings: Findings) -> int | None:
    """The number of a layer that is given by number or by name."""
    if isinstance(entry, str) and names.count(entry) != 1:
        problem = "is the name of several layers: give its number" if entry in names else "is not a layer: name one"
        findings.add(f"{where}.inputs: {entry!r} {problem}")
        return None
    at = names.index(entry) if isinstance(entry, str) else entry
    if not 0 <= at < number:
        findings.add(
            f"{where}.inputs: {entry!r} does not come before {names[number]!r}: list layers after those they read"
        )
        return None
    return at


PARSERS: dict[str, Parser] = {".yaml": parse_yaml, ".yml": parse_yaml, ".json": parse_json}
WRITERS: dict[str, Callable[[Workload], str]] = {".yaml": to_yaml, ".yml": to_yaml, ".json": to_json}
