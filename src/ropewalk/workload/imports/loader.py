"""A PyTorch module out of a user's own file, named on the command line as `file.py:name`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropewalk.errors import WorkloadError
from ropewalk.files import is_file, real_path
from ropewalk.workload.imports.module import from_module, require_torch
from ropewalk.workload.workload import Workload

SIZES = ("batch", "sequence")
OPTIONS = ("loss", "batch_dim", "causal_masks")


def module_from_path(text: str, batch: int | None = None, sequence: int | None = None) -> Workload:
    """The workload of the module that `file.py:name` stands for, built without memory for its weights.

    `name` is one of three things. A function that returns the module and its example inputs:

        # net.py
        import torch
        from torch import nn

        def net(batch=32):
            return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), torch.zeros(batch, 784)

    so that `module_from_path("net.py:net", batch=64)` is a workload of 64 samples. Or a class that derives from
    nn.Module and needs no arguments, or an instance of one; the file then has a function `example_inputs`:

        def example_inputs(batch=8, sequence=1024):
            return torch.zeros(batch, sequence, dtype=torch.long)

    Either function is given `batch` and `sequence` if it has parameters of these names; what it returns as inputs is
    what `from_module` takes. A batch it does not know is reached by resizing the inputs. If the file has a function
    `loss`, it maps the module's output to a scalar; `batch_dim` and `causal_masks` are read from the file likewise.

    The file runs with `meta` as PyTorch's default device. Code that needs numbers, not only shapes, to build the
    module says `with torch.device("cpu"):` around itself.
    """
    require_torch()
    file, name = _parts(text)
    held = _run(file, text)
    found = held.get(name)
    if found is None:
        offered = [key for key, value in held.items() if _is_module(value) or inspect.isfunction(value)]
        raise WorkloadError(
            f"{text}: {file} has no {name!r}: name one of {', '.join(sorted(offered)) or 'its modules'}"
        )
    module, inputs, told = _made(found, held, text, {"batch": batch, "sequence": sequence})
    if sequence is not None and "sequence" not in told:
        raise WorkloadError(
            f"{text}: a sequence of {sequence} was requested, but the module does not take one: give the function that "
            f"makes the example inputs a parameter named sequence"
        )
    options = {key: held[key] for key in OPTIONS if key in held}
    workload = from_module(module, inputs, name=name, sequence=sequence, **options)
    return workload if batch is None else workload.at_batch(batch)


def _parts(text: str) -> tuple[Path, str]:
    path, _, name = text.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise WorkloadError(f"{text} is not a module in a file: write it like net.py:Net")
    return Path(path), name


def _run(file: Path, text: str) -> dict[str, Any]:
    """Everything that the file defines."""
    if not is_file(file):
        raise WorkloadError(f"{text}: the file {file} does not exist: check the path")
    spec = importlib.util.spec_from_file_location(f"ropewalk_user_{file.stem}", file)
    assert spec is not None, "a path that ends in .py has a loader"
    loader = spec.loader
    assert loader is not None, "a path that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look their module up there
    folder = str(real_path(file).parent)
    sys.path.insert(0, folder)  # a user's file imports its neighbours
    try:
        _on_meta(lambda: loader.exec_module(module), f"{text}: the file {file}")
    finally:
        sys.path.remove(folder)
    return vars(module)


def _on_meta(call: Callable[[], Any], subject: str) -> Any:
    """Run the user's code where tensors have shapes but no numbers."""
    import torch

    try:
        with torch.device("meta"):
            return call()
    except (Exception, SystemExit) as problem:  # whatever a user's code may raise
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
        remedy = (
            "put \"with torch.device('cpu'):\" around the part that needs numbers"
            if "meta" in reason
            else "fix it there"
        )
        raise WorkloadError(f"{subject} failed with {reason}: {remedy}") from problem


def _made(found: Any, held: dict[str, Any], text: str, sizes: dict[str, int | None]) -> tuple[Any, Any, set[str]]:
    """Module, example inputs, and which of the sizes were told to what made them."""
    if inspect.isfunction(found):
        made, told = _called(found, sizes, text)
        if not isinstance(made, tuple) or len(made) != 2 or not _is_module(made[0]):
            raise WorkloadError(
                f"{text} returns a {type(made).__name__}: return a pair of the module and its example inputs"
            )
        return made[0], made[1], told
    if not _is_module(found):
        raise WorkloadError(
            f"{text} is a {type(found).__name__}: name a function that returns (module, example inputs), a class that "
            f"derives from nn.Module, or an instance of one"
        )
    make = held.get("example_inputs")
    if not inspect.isfunction(make):
        raise WorkloadError(
            f"{text}: the file has no function example_inputs: add def example_inputs(batch=8): return torch.zeros(…)"
        )
    module = _called(found, {}, text)[0] if inspect.isclass(found) else found
    inputs, told = _called(make, sizes, f"{text}: example_inputs")
    return module, inputs, told


def _called(call: Callable[..., Any], sizes: dict[str, int | None], subject: str) -> tuple[Any, set[str]]:
    """What a function of the user returns when it is given the sizes it has parameters for."""
    parameters = inspect.signature(call).parameters
    known = {key: size for key, size in sizes.items() if key in parameters and size is not None}
    lacking = [
        key
        for key, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY, parameter.POSITIONAL_ONLY)
        and key not in known
    ]
    if lacking:
        options = " and ".join(f"--{key}" for key in lacking if key in SIZES)
        remedy = f"give {options}, or a default" if options else "give it a default"
        raise WorkloadError(f"{subject} needs an argument {lacking[0]!r}: {remedy}")
    return _on_meta(lambda: call(**known), subject), {*known}


def _is_module(value: Any) -> bool:
    from torch import nn

    return isinstance(value, nn.Module) or (inspect.isclass(value) and issubclass(value, nn.Module))
