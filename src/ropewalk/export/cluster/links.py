"""The leaf-spine cables that belong to a job, as CSV and JSON, by name; both directions of each are reserved."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from ropewalk.documents import parse_json, read_text
from ropewalk.documents.from_csv import table_records
from ropewalk.documents.numbers import whole
from ropewalk.errors import ClusterError
from ropewalk.export.cluster.names import Names
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant

COLUMNS = ("leaf", "spine", "cable")
Link = tuple[int, int, int]


def reserved_links(allocation: Allocation) -> list[Link]:
    """(leaf, spine, cable), sorted. Of optical circuits the cable is the optical switch that they pass."""
    cables = allocation.cables or (0,) * len(allocation.links)
    return sorted((leaf, spine, cable) for (leaf, spine), cable in zip(allocation.links, cables, strict=True))


def links_csv(plant: Plant, allocation: Allocation) -> str:
    """A line a cable; nothing but the header for a job that stays on one leaf."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for leaf, spine, cable in reserved_links(allocation):
        writer.writerow((plant.leaf_names[leaf], plant.spine_names[spine], cable))
    return text.getvalue()


def links_json(plant: Plant, allocation: Allocation) -> str:
    """The same with the job, how it was placed and what that promises."""
    document = {
        "job": allocation.job,
        "plant": plant.name,
        "stage": allocation.stage,
        "guarantee": allocation.guarantee,
        "directions": ["up", "down"],
        "links": [
            {"leaf": plant.leaf_names[leaf], "spine": plant.spine_names[spine], "cable": cable}
            for leaf, spine, cable in reserved_links(allocation)
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def read_links(path: str | Path, plant: Plant) -> list[Link]:
    """Reserved cables from a file of either kind, by its ending."""
    subject = f"links {path}"
    text = read_text(Path(path), subject, ClusterError)
    if Path(path).suffix == ".json":
        document: Any = parse_json(text, subject, ClusterError)
        rows = document.get("links") if isinstance(document, dict) else None
    else:
        rows = [row for _, row in table_records(text.splitlines(keepends=True), COLUMNS, subject, ClusterError)]
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(row) == set(COLUMNS) for row in rows):
        raise ClusterError(f"{subject}: it is not a list of {', '.join(COLUMNS)}: give a file written by ropewalk")
    names = Names(plant)
    try:
        return [(names.leaf[row["leaf"]], names.spine[row["spine"]], whole(str(row["cable"]))) for row in rows]
    except (KeyError, TypeError, ValueError) as problem:
        raise ClusterError(f"{subject}: it does not fit {plant.name} ({problem!r}): give links of this plant") from None
