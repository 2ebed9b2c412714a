"""Options of the cluster itself, added to every command that is about one, so that each is written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

from ropewalk.cli import cluster_plant
from ropewalk.cli.cluster_plant import PlantOptions

OPTIONS = {field.name: getattr(cluster_plant, field.name.upper()) for field in fields(PlantOptions)}
"""Every field of `PlantOptions` is the option whose constant has its name."""


def about_a_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose argument `cluster: PlantOptions` is typed as options of their own."""
    types = get_type_hints(PlantOptions)
    written = inspect.signature(command, eval_str=True)
    own = [one.replace(kind=one.KEYWORD_ONLY) for one in written.parameters.values() if one.name != "cluster"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=types[name])
        for name, option in OPTIONS.items()
    ]

    def run(**given: Any) -> None:
        cluster = PlantOptions(**{name: given.pop(name) for name in OPTIONS})
        command(cluster=cluster, **given)

    # Typer reads options from the signature and their types from the annotations.
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run
