"""One door to clusters that schedulers already know: the format is told, or recognised by the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ropewalk.documents import read_text
from ropewalk.errors import FabricError
from ropewalk.tenancy.imports.hints import NO_HINTS, Hints
from ropewalk.tenancy.imports.leaf_csv import leaf_csv
from ropewalk.tenancy.imports.leaf_map import AssumedCabling, LeafMap
from ropewalk.tenancy.imports.slurm_conf import slurm_conf
from ropewalk.tenancy.imports.slurm_yaml import slurm_yaml
from ropewalk.tenancy.imports.volcano import volcano
from ropewalk.tenancy.plant import Plant

Reader = Callable[[Path, Hints], LeafMap]
READERS: dict[str, Reader] = {
    "slurm-conf": slurm_conf,
    "slurm-yaml": slurm_yaml,
    "volcano": volcano,
    "leaf-csv": leaf_csv,
}


def read_leaf_map(path: str | Path, format_name: str | None = None, hints: Hints = NO_HINTS) -> LeafMap:
    """Which server hangs on which leaf, from a file of a scheduler."""
    file = Path(path)
    chosen = recognise(file) if format_name is None else format_name
    if chosen not in READERS:
        raise FabricError(f"the topology format {chosen!r} is unknown: use one of {', '.join(READERS)}")
    return READERS[chosen](file, hints)


def read_plant(
    path: str | Path, cabling: AssumedCabling | None = None, *, format_name: str | None = None, hints: Hints = NO_HINTS
) -> Plant:
    """The cluster that a file of a scheduler describes, with what only the operator knows."""
    return read_leaf_map(path, format_name, hints).plant(cabling)


def recognise(path: Path) -> str:
    """The format of a topology file, by its ending and, among YAML files, by what stands in it."""
    ending = path.suffix.lower()
    if ending in (".yaml", ".yml"):
        subject = f"topology file {path}"
        text = read_text(path, subject, FabricError)
        return "volcano" if "topology.volcano.sh/" in text else "slurm-yaml"
    if ending not in ENDINGS:
        raise FabricError(
            f"the extension {ending!r} of {path} is unknown: give a .conf, .yaml or .csv file, or name its format: "
            f"{', '.join(READERS)}"
        )
    return ENDINGS[ending]


ENDINGS = {".conf": "slurm-conf", ".csv": "leaf-csv"}
