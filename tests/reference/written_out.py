"""Fabrics and workloads from the text of a file, without the file."""

from __future__ import annotations

from ropewalk.documents import parse_json, parse_yaml
from ropewalk.errors import FabricError, WorkloadError
from ropewalk.fabric import Fabric, files
from ropewalk.workload import files as workload_files
from ropewalk.workload.workload import Workload


def fabric_of_yaml(text: str, name: str = "fabric") -> Fabric:
    return files.parse_document(parse_yaml(text, name, FabricError), name, name)


def fabric_of_json(text: str, name: str = "fabric") -> Fabric:
    return files.parse_document(parse_json(text, name, FabricError), name, name)


def workload_of_yaml(text: str, name: str = "workload") -> Workload:
    return workload_files.parse_document(parse_yaml(text, name, WorkloadError), name, name)


def workload_of_json(text: str, name: str = "workload") -> Workload:
    return workload_files.parse_document(parse_json(text, name, WorkloadError), name, name)
