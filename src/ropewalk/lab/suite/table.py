"""All testbeds by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ropewalk.choices import Choice, Choices
from ropewalk.errors import LabError

if TYPE_CHECKING:
    from ropewalk.lab.suite.testbed import Recipe


@dataclass(frozen=True)
class Testbed(Choice[Callable[[], "Recipe"]]):
    """A testbed by name: `make` gives its recipe."""

    paper: str = ""

    def facts(self) -> dict[str, str]:
        return {"paper": self.paper}


# A recipe is loaded when it is asked for: its module loads the engines that make its runs.


def _hips() -> Recipe:
    from ropewalk.lab.suite import hips

    return hips.RECIPE


def _vclos() -> Recipe:
    from ropewalk.lab.suite import vclos

    return vclos.RECIPE


def _topoopt() -> Recipe:
    from ropewalk.lab.suite import topoopt

    return topoopt.RECIPE


def _forests() -> Recipe:
    from ropewalk.lab.suite import forests

    return forests.RECIPE


def _dapple() -> Recipe:
    from ropewalk.lab.suite import dapple

    return dapple.RECIPE


def _orders() -> Recipe:
    from ropewalk.lab.suite import orders

    return orders.RECIPE


TESTBEDS = Choices(
    "testbed",
    (
        Testbed("hips", _hips, "HiPS, ring, mesh and parameter server on a fat-tree, BCube and a torus",
                paper="HiPS (NetAI 2018), ToN 2021"),
        Testbed("topoopt", _topoopt, "12 servers with four ports, wired for three models, compared with switches and "
            "a tree",
                paper="TopoOpt (NSDI 2023)"),
        Testbed("vclos", _vclos, "jobs alone, under ECMP, source-routed, isolated; circuits reconfigured",
                paper="vClos and OCS-vClos (arXiv 2308.05692)"),
        Testbed("forests", _forests, "trees against rings on links of unequal bandwidth",
                paper="TopoAdopt (INFOCOM 2021), ForestColl (arXiv 2402.06787)"),
        Testbed("dapple", _dapple, "early backward against GPipe, BERT-48 in two stages", paper="DAPPLE (PPoPP 2021)"),
        Testbed("orders", _orders, "FIFO against priorities, fused and streamed all-reduce of VGG16",
                paper="ByteScheduler (SOSP 2019), PACE (INFOCOM 2020)"),
    ),
    error=LabError,
)  # fmt: skip
"""Adding one is a file with its recipe, a function that loads it and a line here."""
