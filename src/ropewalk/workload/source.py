"""One door to every model: a name of the zoo, a module in a file, ONNX, a profile, a workload file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropewalk.errors import WorkloadError
from ropewalk.files import is_file as names_a_file
from ropewalk.workload.files import read_workload
from ropewalk.workload.imports import from_onnx, from_profile, module_from_path
from ropewalk.workload.imports.profile import BATCH_IN_NAME
from ropewalk.workload.workload import Workload

Opener = Callable[[str, int | None, int | None], Workload]


def open_workload(text: str, batch: int | None = None, sequence: int | None = None, **options: Any) -> Workload:
    """The workload that `text` names, for micro-batches of `batch` samples of `sequence` tokens.

    `text` is a name of the zoo (`llama-7b`), a module in a file (`net.py:Net`), or a file: .onnx, .txt (a profile of
    DAPPLE or PipeDream), .yaml, .yml or .json (a workload file). Without `batch` a file keeps the batch it was written
    for, and a model of the zoo gets one sample. `options` are those of the zoo's builder.
    """
    for name, size in (("batch", batch), ("sequence", sequence)):
        if size is not None and size < 1:
            raise WorkloadError(f"a {name} of {size} is invalid: give 1 or more")
    opener = _opener(text)
    if opener is None:
        return _from_zoo(text, batch, sequence, options)
    if options:
        raise WorkloadError(
            f"{text} does not take {', '.join(sorted(options))}: these are options of models of the zoo"
        )
    return opener(text, batch, sequence)


def is_file(text: str) -> bool:
    """Does this name a file, or a module in one, and not a model of the zoo?

    >>> is_file("nets/net.py:Net"), is_file("profile.txt"), is_file("llama-3.1-8b")
    (True, True, False)
    """
    path, _, name = text.rpartition(":")
    return bool(name and path.endswith(".py")) or Path(text).suffix.lower() in FILES


def written_for(text: str) -> int | None:
    """The only micro-batch of a file that cannot be resized; None for everything else.

    >>> written_for("llama-7b") is None
    True
    """
    if Path(text).suffix.lower() not in FILES:
        return None
    workload = open_workload(text)
    return workload.batch if workload.resize is None else None


def under_stack(text: str, stack: str | None) -> str:
    """A model of the zoo as a stack runs it, by the name that says so.

    >>> under_stack("llama-7b", "megatron"), under_stack("llama-7b:layers=4", "compiled"), under_stack("net.onnx", None)
    ('llama-7b:stack=megatron', 'llama-7b:layers=4,stack=compiled', 'net.onnx')
    """
    if stack is None:
        return text
    if is_file(text):
        raise WorkloadError(f"{text} has the kernels that it was traced or measured with: leave --stack {stack} out")
    return f"{text}{',' if ':' in text else ':'}stack={stack}"


def dispatched(text: str, dispatch: str | None, domain: int) -> str:
    """A mixture of the zoo whose tokens find their experts in this way, where NVLink joins `domain` GPUs.

    >>> dispatched("deepseek-v3", "deepep", 8), dispatched("llama-7b", None, 8)
    ('deepseek-v3:dispatch=deepep,domain=8', 'llama-7b')
    """
    if dispatch is None:
        return text
    if is_file(text):
        raise WorkloadError(f"{text} fixes its own token exchange: leave --dispatch {dispatch} out")
    return f"{text}{',' if ':' in text else ':'}dispatch={dispatch},domain={domain}"


def _opener(text: str) -> Opener | None:
    path, _, name = text.rpartition(":")
    if name and path.endswith(".py"):
        return module_from_path
    if text.endswith((".py", ".py:")):
        file = text.removesuffix(":")
        raise WorkloadError(f"{file} may hold several models: name one, like {file}:Net")
    suffix = Path(text).suffix.lower()
    if suffix in FILES:
        return FILES[suffix]
    if names_a_file(text):
        raise WorkloadError(
            f"the extension {suffix!r} of {text} is unknown: give a file.py:Name, .onnx, .txt, .yaml, .yml or .json "
            "file"
        )
    return None


def _onnx(text: str, batch: int | None, sequence: int | None) -> Workload:
    workload = from_onnx(text, batch=batch, sequence=sequence)
    return workload if batch is None else workload.at_batch(batch)


def _profile(text: str, batch: int | None, sequence: int | None) -> Workload:
    """A profile whose name does not say its batch was measured with the one that is asked for."""
    _no_sequence(text, sequence)
    told = BATCH_IN_NAME.search(Path(text).stem)
    workload = from_profile(text, batch=None if told else batch)
    return workload if batch is None else workload.at_batch(batch)


def _file(text: str, batch: int | None, sequence: int | None) -> Workload:
    workload = read_workload(text)
    if sequence is not None and sequence != workload.sequence:
        _no_sequence(text, sequence)
    return workload if batch is None else workload.at_batch(batch)


def _no_sequence(text: str, sequence: int | None) -> None:
    if sequence is not None:
        raise WorkloadError(f"{text} has sequences of a fixed length: leave {sequence} out, or import the model for it")


def _from_zoo(text: str, batch: int | None, sequence: int | None, options: dict[str, Any]) -> Workload:
    from ropewalk.workload.zoo import build  # the zoo is large; files do not need it

    return build(text, batch=batch or 1, sequence=sequence, **options)


FILES: dict[str, Opener] = {".onnx": _onnx, ".txt": _profile, ".yaml": _file, ".yml": _file, ".json": _file}
