"""Which parts of a PyTorch module are layers: the elements of its lists of blocks, and what stands beside them."""

from __future__ import annotations

from typing import Any


def layer_kinds(module: Any) -> dict[str, str]:
    """The path of every submodule that is a layer of its own, with the kind of layer it is.

    A list (`Sequential`, `ModuleList`, `ModuleDict`) is taken apart into its elements, and a module that holds a list
    of equal blocks somewhere inside is taken apart until that list is reached; blocks themselves stay whole. A module
    that merely wraps one other is looked through. Modules without parameters (activations, pools, dropout) are not
    layers: they stay with the layer before them.
    """
    kinds: dict[str, str] = {}
    if is_list(module):
        _elements(module, "", kinds)
    else:
        _children(module, "", kinds)
    return kinds or {"": "layer"}


def is_list(module: Any) -> bool:
    """Is it a plain container, not a class of somebody's own that happens to derive from one?"""
    from torch import nn

    return type(module) in (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def _children(module: Any, path: str, kinds: dict[str, str]) -> None:
    trained = [(name, child) for name, child in module.named_children() if _has_parameters(child)]
    for name, child in trained:
        at = f"{path}.{name}" if path else name
        if is_list(child):
            _elements(child, at, kinds)
        elif _holds_blocks(child) or (len(trained) == 1 and any(True for _ in child.children())):
            _children(child, at, kinds)
        else:
            kinds[at] = _kind(child)


def _elements(container: Any, path: str, kinds: dict[str, str]) -> None:
    repeated = _repeated(container)
    for name, element in container.named_children():
        at = f"{path}.{name}" if path else name
        if not _has_parameters(element):
            continue
        if is_list(element):
            _elements(element, at, kinds)
        else:
            kinds[at] = "block" if type(element) in repeated else _kind(element)


def _holds_blocks(module: Any) -> bool:
    return any(is_list(inner) and _repeated(inner) for inner in module.modules())


def _repeated(container: Any) -> set[type]:
    """Classes of which a list has several elements, each made of parts."""
    made_of_parts = [type(child) for child in container.children() if any(True for _ in child.children())]
    return {
        kind
        for kind in made_of_parts
        if made_of_parts.count(kind) > 1 and kind.__module__ != "torch.nn.modules.container"
    }


def _kind(module: Any) -> str:
    from torch import nn

    return "embedding" if any(isinstance(inner, nn.Embedding) for inner in module.modules()) else "layer"


def _has_parameters(module: Any) -> bool:
    return any(True for _ in module.parameters())
