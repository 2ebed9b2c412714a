"""Against ForestColl and TACOS: the same all-gathers on the same fabrics, time to a schedule and how good it is.

ForestColl (github.com/liangyuRain/ForestColl, Apache-2.0, Python) and TACOS (github.com/astra-sim/tacos, MIT, C++) are
on no package registry: clone them and give their folders. TACOS is compiled with g++ into a temporary folder; it knows
direct connections only. Both run one after the other with ours on the same machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from measure import best_cpu, machine, options, short, summary, table
from ropewalk.collectives.forest import Forest, all_gather_forest, fixed_forest
from ropewalk.collectives.optimum import Network, all_gather, network_of
from ropewalk.fabric.expression import fabric

FORESTCOLL = (
    ("dgx-a100:1", None), ("torus:4x4", None), ("dgx-a100:2", None), ("dgx-a100:2", 1), ("dgx-a100:4", 1),
)  # fmt: skip
"""Fabric and trees of each root (None: as many as the optimum takes)."""
FORESTCOLL_VALUE = ("dgx-a100:2", "dgx-a100:4")
TACOS = ("mesh:8x8", "torus:8x8", "torus:16x16", "torus:8x8x8")
TACOS_CHUNKS = 4
"""Chunks that every GPU begins with."""

DRIVER = """
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <tacos/collective/all_gather.h>
#include <tacos/synthesizer/synthesizer.h>
#include <tacos/topology/mesh_2d.h>
#include <tacos/topology/torus_2d.h>
#include <tacos/topology/torus_3d.h>
using namespace tacos;
static void solve(const Topology& topology, int chunks) {
    const auto collective = AllGather(topology.npusCount(), chunks);
    const double size = double(1 << 20);
    const auto begin = std::clock();
    auto synthesizer = Synthesizer();
    const double us = synthesizer.solve(topology, collective, size);
    const double cpu = double(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("{\\"cpu_s\\": %.6f, \\"us\\": %.6f}\\n", cpu, us);
}
int main(int count, char** words) {
    const int chunks = std::atoi(words[1]), x = std::atoi(words[3]), y = std::atoi(words[4]);
    if (words[2][0] == 'm') solve(Mesh2D(x, y, 50, 0), chunks);
    else if (count == 5) solve(Torus2D(x, y, 50, 0), chunks);
    else solve(Torus3D(x, y, std::atoi(words[5]), 50, 0), chunks);
}
"""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--forestcoll", type=Path, default=None, help="the folder of a ForestColl checkout")
    parser.add_argument("--tacos", type=Path, default=None, help="the folder of a TACOS checkout")
    chosen = parser.parse_args()
    print(f"against ForestColl and TACOS: CPU seconds. {machine()}")
    all_gather_forest(network_of(fabric("dgx-a100:2")))  # loads the kernel
    if chosen.forestcoll is not None:
        _against_forestcoll(chosen.forestcoll, chosen.quick)
    if chosen.tacos is not None:
        _against_tacos(chosen.tacos, chosen.quick)
    if chosen.forestcoll is None and chosen.tacos is None:
        print("both are missing: give --forestcoll FOLDER, --tacos FOLDER")


def _plain(expression: str) -> Network:
    """The network without the help of symmetry, which the others have none of."""
    return replace(network_of(fabric(expression)), symmetry=None)


def _against_forestcoll(folder: Path, quick: bool) -> None:
    rows, ratios = [], []
    for expression in FORESTCOLL_VALUE[: 1 if quick else None]:
        network = _plain(expression)
        theirs = _forestcoll(folder, network, trees=False)
        optimum, seconds = best_cpu(lambda network=network: all_gather(network), 3)  # type: ignore[misc]
        ratios.append(theirs["cpu_s"] / seconds)
        rows.append(_row(expression, "optimum", network, float(optimum.algbw) / 1e9, 0, seconds, theirs))
    for expression, per_root in FORESTCOLL[: 2 if quick else None]:
        network = _plain(expression)
        theirs = _forestcoll(folder, network, trees=True, trees_per_root=per_root)

        def grow(network: Network = network, per_root: int | None = per_root) -> Forest:
            found = all_gather_forest(network) if per_root is None else fixed_forest(network, per_root, "allgather")
            assert isinstance(found, Forest)
            return found

        forest, seconds = best_cpu(grow, 3)
        ratios.append(theirs["cpu_s"] / seconds)
        what = "trees" if per_root is None else f"{per_root} tree a root"
        rows.append(_row(expression, what, network, float(forest.algbw) / 1e9, forest.depth, seconds, theirs))
    head = ["fabric", "what", "GPUs", "GB/s", "depth", "CPU s", "its GB/s", "its depth", "its CPU s", "ratio"]
    table("ForestColl", head, rows)
    summary(f"against ForestColl: {min(ratios):.0f} to {max(ratios):.0f} times faster, same bandwidth")


def _row(
    expression: str, what: str, network: Network, algbw: float, depth: int, seconds: float, theirs: dict[str, Any]
) -> list[str]:
    return [
        expression, what, str(len(network.members)), f"{algbw:.6g}", str(depth or "–"), short(seconds),
        f"{theirs['algbw']:.6g}", str(theirs["depth"] or "–"), short(theirs["cpu_s"]),
        f"{theirs['cpu_s'] / seconds:.0f}",
    ]  # fmt: skip


def _forestcoll(folder: Path, network: Network, *, trees: bool, trees_per_root: int | None = None) -> dict[str, Any]:
    gigabytes = [float(network.bandwidth(capacity)) / 1e9 for capacity in network.capacity]
    problem = {
        "compute": network.members.tolist(),
        "links": [
            [u, v, int(speed) if speed.is_integer() else speed]
            for u, v, speed in zip(network.tail.tolist(), network.head.tolist(), gigabytes, strict=True)
        ],
        "trees": trees,
        "trees_per_root": trees_per_root,
    }
    script = Path(__file__).with_name("forestcoll_side.py")
    finished = subprocess.run(
        [sys.executable, str(script), str(folder)],
        input=json.dumps(problem),
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


def _against_tacos(folder: Path, quick: bool) -> None:
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as scratch:
        program = _compiled(folder, Path(scratch))
        for expression in TACOS[: 1 if quick else None]:
            network = network_of(fabric(expression, bandwidth=50 * 2**30))
            kind, _, shape = expression.partition(":")
            answer = subprocess.run(
                [str(program), str(TACOS_CHUNKS), kind, *shape.split("x")], capture_output=True, text=True, check=True
            )
            theirs = json.loads(answer.stdout)
            size = len(network.members) * TACOS_CHUNKS * 2**20
            forest, seconds = best_cpu(lambda network=network: all_gather_forest(network), 3)  # type: ignore[misc]
            plain = replace(network, symmetry=None)
            small = len(network.members) <= 64
            plain_s = best_cpu(lambda plain=plain: all_gather_forest(plain), 2)[1] if small else None  # type: ignore[misc]
            reached = size / (theirs["us"] / 1e6) / float(forest.algbw)
            ratios.append(theirs["cpu_s"] / seconds)
            rows.append([
                expression, str(len(network.members)), short(seconds), "–" if plain_s is None else short(plain_s),
                "100 %", short(theirs["cpu_s"]), f"{100 * reached:.1f} %", f"{ratios[-1]:.1f}",
            ])  # fmt: skip
    head = ["fabric", "GPUs", "CPU s", "no symmetry", "of optimum", "its CPU s", "of optimum", "ratio"]
    table(f"TACOS ({TACOS_CHUNKS} chunks a GPU)", head, rows)
    summary(f"against TACOS: {min(ratios):.1f} to {max(ratios):.0f} times faster, always at the optimum")


def _compiled(folder: Path, scratch: Path) -> Path:
    driver, program = scratch / "driver.cpp", scratch / "driver"
    driver.write_text(DRIVER)
    sources = [str(path) for path in sorted((folder / "src").rglob("*.cpp")) if path.name != "main.cpp"]
    include = [f"-I{folder / 'include'}", f"-I{folder / 'include' / 'tacos'}"]
    subprocess.run(["g++", "-O3", "-std=c++17", *include, str(driver), *sources, "-o", str(program)], check=True)
    return program


if __name__ == "__main__":
    main()
