"""Layers of a model of which only the names of its operations are known.

Exporters keep the path of the module an operation comes from in its name: `/model/layers.0/mlp/down_proj/MatMul`. The
element of the outermost list on that path (`layers.0`) is a layer, and so is what stands beside the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ELEMENT = re.compile(r"(.*\.)?[0-9]+")
Scope = tuple[str, ...]


def layer_scopes(scopes: Iterable[Scope]) -> dict[Scope, str]:
    """For every scope the layer it belongs to; a scope without a path belongs to none.

    >>> layer_scopes([("model", "embed"), ("model", "layers.0", "mlp"), ("head",), ()])
    {('model', 'embed'): 'model.embed', ('model', 'layers.0', 'mlp'): 'model.layers.0', ('head',): 'head'}
    """
    every = list(scopes)
    lists = {scope[:depth] for scope in every for depth, name in enumerate(scope) if ELEMENT.fullmatch(name)}
    above = {prefix[:depth] for prefix in lists for depth in range(len(prefix) + 1)}
    return {scope: _name(scope[: _depth(scope, above)]) for scope in every if scope}


def is_element(layer: str) -> bool:
    """Is this layer an element of a list?

    >>> is_element("model.layers.0"), is_element("head")
    (True, False)
    """
    return ELEMENT.fullmatch(layer) is not None


def _depth(scope: Scope, above: set[Scope]) -> int:
    """How many names of the path lead to the layer: down to the first element, or to where no list is below."""
    for depth, name in enumerate(scope):
        if ELEMENT.fullmatch(name) or scope[: depth + 1] not in above:
            return depth + 1
    return len(scope)


def _name(scope: Scope) -> str:
    """Names on the path often repeat the one before: `layer1`, `layer1.0`."""
    kept = [name for at, name in enumerate(scope) if at + 1 == len(scope) or not scope[at + 1].startswith(f"{name}.")]
    return ".".join(kept)
