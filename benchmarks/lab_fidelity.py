"""How far labs are from what is predicted of them: `python benchmarks/lab_fidelity.py [repeats] [fair|fifo]`.

Collectives of 4 MB on fabrics of 12 to 32 hosts, beside the flow level, the flow level with acknowledgements, and the
packet level with the kernel's TCP. A sign is measured over predicted.
"""

from __future__ import annotations

import sys
from statistics import median

from ropewalk.collectives.act import Act
from ropewalk.fabric.expression import fabric
from ropewalk.lab.collective import collective_work
from ropewalk.lab.lab import built
from ropewalk.lab.measure import measured
from ropewalk.lab.network import LabNetwork, LabSettings
from ropewalk.lab.predict import LEVELS
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import routes_by_name, tables_of

PAIRS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14))
CASES: tuple[tuple[str, float, str, Act, str, tuple[tuple[int, ...], ...]], ...] = (
    ("leaf-spine:4x4x4", 20e6, "ring", Act.ALL_REDUCE, "default", ()),
    ("leaf-spine:4x4x4", 20e6, "hips", Act.ALL_REDUCE, "default", ()),
    ("leaf-spine:4x4x4", 20e6, "mesh", Act.ALL_REDUCE, "default", ()),
    ("leaf-spine:4x4x4", 20e6, "direct", Act.ALL_TO_ALL, "default", ()),
    ("bcube:4,2", 20e6, "hips", Act.ALL_REDUCE, "default", ()),
    ("bcube:4,2", 20e6, "mesh", Act.ALL_REDUCE, "default", ()),
    ("torus:4x4", 20e6, "hips", Act.ALL_REDUCE, "default", ()),
    ("torus:4x4", 20e6, "mesh", Act.ALL_REDUCE, "default", ()),
    ("torus:4x4", 20e6, "forest", Act.ALL_REDUCE, "default", ()),
    ("circulant:12,1,2,3", 20e6, "mesh", Act.ALL_REDUCE, "default", ()),
    ("leaf-spine:8x4x4", 10e6, "ring", Act.ALL_REDUCE, "default", ()),
    ("leaf-spine:8x4x4", 10e6, "mesh", Act.ALL_REDUCE, "default", ()),
    ("leaf-spine:4x2x4", 20e6, "ring", Act.ALL_REDUCE, "hash", PAIRS),
    ("leaf-spine:4x4x4", 20e6, "hips", Act.ALL_REDUCE, "hash", ()),
    ("leaf-spine:4x2x4", 20e6, "mesh", Act.ALL_REDUCE, "hash", ()),
)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    settings = LabSettings(queue=sys.argv[2] if len(sys.argv) > 2 else "fair")
    missed: dict[str, list[float]] = {level: [] for level in LEVELS}
    for place, bits, collective, act, routing, groups in CASES:
        network = LabNetwork(fabric(place, bandwidth=bits / 8), settings=settings)
        router, routes = routes_by_name(network.fabric, routing)
        with built(network, tables_of(network.fabric, routes)) as lab:
            work = collective_work(network, routes, LabQuestion(collective, act, groups=groups))
            found = measured(lab, router, work, repeats, levels=LEVELS)
        errors = {one.level: found.measured_s / one.seconds - 1 for one in found.levels}
        for level, error in errors.items():
            missed[level].append(abs(error))
        said = ", ".join(f"{level} {100 * error:+.1f} %" for level, error in errors.items())
        print(f"{place} {collective} {act.key} ({routing}): {found.measured_s:.3f} s; {said}; "
              f"{len(found.trusted)} of {repeats} undisturbed", flush=True)  # fmt: skip
    for level, errors_of_level in missed.items():
        print(f"{level}: median {100 * median(errors_of_level):.1f} %, worst {100 * max(errors_of_level):.1f} %")


if __name__ == "__main__":
    main()
