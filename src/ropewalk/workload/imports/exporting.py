"""A PyTorch module as an exported program: a graph of operations, traced without running a single kernel."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import Any

from ropewalk.errors import WorkloadError
from ropewalk.workload.imports.inputs import device_of

STATIC = (
    "write the forward pass so that shapes do not depend on values: no .item(), no masks as indices, no nonzero, no if "
    "on a tensor; use a fixed capacity instead of a varying number"
)
DATA_DEPENDENT = re.compile(r"data.dependent|unbacked|\.item\(\)|symbolic|Unsupported.*nonzero|GuardOnData", re.I)


def export(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], subject: str) -> Any:
    """The exported program of a module in training mode."""
    import torch

    try:
        with warnings.catch_warnings(), _training(module), device_of(module):
            warnings.simplefilter("ignore")
            return torch.export.export(module, args, kwargs, strict=False)
    except WorkloadError:
        raise
    except Exception as problem:  # whatever a user's forward may raise
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
        if DATA_DEPENDENT.search(f"{type(problem).__name__} {problem}"):
            raise WorkloadError(
                f"{subject} has shapes or branches that depend on data ({reason}): {STATIC}"
            ) from problem
        raise WorkloadError(
            f"{subject} cannot be traced ({reason}): check that torch.export.export(module, args, kwargs) accepts it "
            f"with these inputs"
        ) from problem


@contextlib.contextmanager
def _training(module: Any) -> Iterator[None]:
    """Every part of the module in training mode, for as long as this lasts."""
    before = {part: part.training for part in module.modules()}
    module.train()
    try:
        yield
    finally:
        for part, mode in before.items():
            part.training = mode


def parts_of(unknown: dict[Any, str]) -> dict[Any, Any]:
    """How PyTorch itself writes these operations in terms of simpler ones, as far as it does."""
    import torch

    if not unknown:
        return {}
    table = torch.export.default_decompositions().materialize()
    return {target: table[target] for target in unknown if target in table}


def decomposed(program: Any, parts: dict[Any, Any]) -> Any:
    """The program with these operations replaced by what they are made of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.run_decompositions(parts)
