"""Without the optional packages an import says which one to install."""

import sys
from pathlib import Path

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.imports import from_module, from_onnx, module_from_path


def test_modules_without_pytorch_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(WorkloadError, match=r'pip install "ropewalk\[torch\]"'):
        from_module(object(), ())
    with pytest.raises(WorkloadError, match=r'pip install "ropewalk\[torch\]"'):
        module_from_path("net.py:Net")


def test_onnx_files_without_onnx_name_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(WorkloadError, match=r'pip install "ropewalk\[onnx\]"'):
        from_onnx(tmp_path / "net.onnx")
