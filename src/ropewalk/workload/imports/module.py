"""Your own PyTorch module as a workload, in five lines and without weights or a GPU.

    import torch
    from ropewalk.workload.imports import from_module

    with torch.device("meta"):
        workload = from_module(MyModel(), torch.zeros(8, 1024, dtype=torch.long))

The module is traced by torch.export, in training mode, with tensors that have shapes but no numbers. Every operation
becomes an operator; operations are gathered into layers along the module's own lists of blocks. Every parameter is
taken as trained, and every layer as whole: an import does not say how tensor parallelism would split it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ropewalk.errors import Findings, WorkloadError
from ropewalk.extras import how_to_install
from ropewalk.workload.imports.blocks import layer_kinds
from ropewalk.workload.imports.capture import Walk
from ropewalk.workload.imports.exporting import decomposed, export, parts_of
from ropewalk.workload.imports.inputs import Arguments, arguments_of, batch_of, beside, resized, sequence_of
from ropewalk.workload.imports.layering import layers_of
from ropewalk.workload.workload import Layer, Workload

Loss = Callable[[Any], Any]


def from_module(
    module: Any, example_inputs: Any, *, loss: Loss | None = None, name: str | None = None, batch_dim: int = 0,
    sequence: int | None = None, causal_masks: bool = False,
) -> Workload:  # fmt: skip
    """The workload of a training step of `module` on a micro-batch such as `example_inputs`.

    Example inputs are a tensor, a tuple of arguments, a mapping of keyword arguments, or (tuple, mapping); only their
    shapes and types matter. `loss` maps what the module returns to a scalar; without it the backward pass starts at
    what the module returns. The micro-batch is the size of dimension `batch_dim` of the first tensor; `at_batch` traces
    the module anew with all inputs of that size resized. `sequence` is the number of tokens in a sample; it is read
    from the inputs if the first of them is a matrix of token numbers. `causal_masks` says that the masks which the
    module hands to attention are causal: half of the work is then saved, which a mask alone does not show.
    """
    require_torch()
    name = name or type(module).__name__
    subject = f"module {name}"
    _check(module, subject)
    inputs = arguments_of(example_inputs, subject)
    batch = batch_of(inputs, batch_dim, subject)
    length = sequence_of(inputs) if sequence is None else sequence

    def resize(to: int) -> Workload:
        other = resized(inputs, batch, to, batch_dim)
        return from_module(
            module, other, loss=loss, name=name, batch_dim=batch_dim, sequence=length, causal_masks=causal_masks
        )

    layers = _layers(module, beside(module, inputs), loss, causal_masks, subject)
    return Workload(name, layers, batch, length, f"torch.export of {type(module).__name__}", resize)


def require_torch() -> None:
    """Refuse politely where PyTorch is missing."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise WorkloadError(
            f"PyTorch modules need PyTorch, which is not installed: {how_to_install('torch')}"
        ) from None


def _check(module: Any, subject: str) -> None:
    from torch import nn

    if not isinstance(module, nn.Module):
        raise WorkloadError(f"{subject} is a {type(module).__name__}, not a torch.nn.Module: give an instance of one")
    findings = Findings(WorkloadError, subject)
    for name, parameter in module.named_parameters():
        if nn.parameter.is_lazy(parameter):
            findings.add(f"parameter {name} has no shape yet: run the module once before you import it")
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    if frozen:
        listed = ", ".join(frozen[:3]) + (", …" if len(frozen) > 3 else "")
        findings.add(
            f"{len(frozen)} parameters are frozen ({listed}), but a step is timed with all of them trained: "
            f"call module.requires_grad_(True)"
        )
    findings.raise_if_any()


def _layers(module: Any, inputs: Arguments, loss: Loss | None, causal_masks: bool, subject: str) -> tuple[Layer, ...]:
    kinds = layer_kinds(module)
    traced, inside = (module, "") if loss is None else (_with_loss(module, loss), "module")
    program = export(traced, *inputs, subject)
    walk = Walk(program, _owners(traced), kinds, inside, causal_masks, subject)
    returned = walk.run()
    for _ in range(DECOMPOSITIONS):
        parts = parts_of(walk.unknown)
        if not parts:
            break
        program = decomposed(program, parts)
        walk = Walk(program, walk.owners, kinds, inside, causal_masks, subject)
        returned = walk.run()
    _refuse(walk.unknown, subject)
    sizes = {name: parameter.numel() for name, parameter in traced.named_parameters()}
    return layers_of(walk.events, sizes, returned, kinds)


DECOMPOSITIONS = 3
"""How often operations that are not known are replaced by what they are made of."""


def _with_loss(module: Any, loss: Loss) -> Any:
    from torch import nn

    class WithLoss(nn.Module):  # type: ignore[misc]
        """The module and its loss as one module, so that both are traced together."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return loss(self.module(*args, **kwargs))

    return WithLoss()


def _owners(module: Any) -> dict[str, str]:
    """Every name of a parameter with the first one: tied weights have several."""
    first = {id(parameter): name for name, parameter in module.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in module.named_parameters(remove_duplicate=False)}


def _refuse(unknown: dict[Any, str], subject: str) -> None:
    findings = Findings(WorkloadError, subject)
    for target, where in unknown.items():
        findings.add(
            f"operation {target} in {where} is not known and not element-wise: write it with known operations, or "
            f"import the model from ONNX or from a profile"
        )
    findings.raise_if_any()
