"""How flows of jobs that share a network find their paths, and how jobs that meet there slow each other down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError
from ropewalk.palette import AMBER, BROWN, INK, PINK, PURPLE, RED, RUST, SKY, STEEL
from ropewalk.tenancy.leaf_links import leaf_links, leaf_widths, over_leafs
from ropewalk.tenancy.pacing.pace import Company, JobPace, Pacing
from ropewalk.tenancy.paths import Choose, balanced, ecmp, ideal, links_of, polarised_ecmp, source
from ropewalk.tenancy.plant import Plant

Width = Callable[[Plant, NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64] | None]
"""(plant, cables and core cables that are alive) -> cables that each link stands for; None where each is one."""


def _by_chance(company: Company) -> list[JobPace]:
    from ropewalk.tenancy.pacing.moments import at_random_moments  # loads Numba

    return at_random_moments(company)


def _adapting(company: Company) -> list[JobPace]:
    from ropewalk.tenancy.pacing.adaptive import round_by_round

    return round_by_round(company)


def _by_intensity(company: Company) -> list[JobPace]:
    from ropewalk.tenancy.pacing.priority import by_intensity

    return by_intensity(company)


def _in_turns(company: Company) -> list[JobPace]:
    from ropewalk.tenancy.pacing.in_turns import in_turns

    return in_turns(company)


def _single_cables(
    plant: Plant, cables: NDArray[np.int32], core_cables: NDArray[np.int32]
) -> NDArray[np.float64] | None:
    return None


@dataclass(frozen=True)
class Routing(Choice[Choose]):
    """How flows find a path; `make` chooses it when a job starts."""

    where: str = "two and three tiers, rails"
    links: Callable[[Plant], int] = links_of
    """How many links there are that flows may meet on."""
    width: Width = _single_cables
    paces: Pacing = _by_chance
    """How jobs that share links get on."""
    ranks: bool = False
    """Are paths chosen with an eye on those jobs alone that go first?"""
    compared: bool = False
    """Is it replayed beside others unless asked otherwise?"""
    buildable: bool = True
    """Can anybody have it?"""
    paper: str = ""
    """Where it was published."""
    held_to: str = ""
    """What its answers are compared with in tests."""
    simulated: bool = True
    """Do flows keep to one path with equal rights, so that a moment can be simulated flow by flow?"""


MOMENTS = "the flow simulation, two to four jobs"
ROUND_BY_ROUND = "the least loaded of all paths, round by round"

ROUTINGS = Choices(
    "routing",
    (
        Routing("ecmp-polarised", polarised_ecmp, "shared links, the same hash at every switch", colour=RUST,
                paper="RFC 2992", held_to=MOMENTS),
        Routing("ecmp", ecmp, "shared links, the spine of a flow is hashed", colour=RED, compared=True,
                paper="RFC 2992", held_to=MOMENTS),
        Routing("balanced", balanced, "shared links, every flow on the least loaded path when its job starts",
                colour=BROWN, paper="the balanced baseline of vClos (arXiv 2308.05692)",
                held_to="all paths, one by one; " + MOMENTS),
        Routing("adaptive", over_leafs, "shared links, every flow on the least loaded path when its round begins",
                colour=STEEL, links=leaf_links, width=leaf_widths, paces=_adapting, simulated=False,
                paper="adaptive routing of switches (DLB, NVIDIA AR)", held_to=ROUND_BY_ROUND),
        Routing("spray", over_leafs, "shared links, packets sprayed over all paths", colour=SKY,
                links=leaf_links, width=leaf_widths, simulated=False, paper="packet spraying (INFOCOM 2013)",
                held_to="the sum of all cables of a leaf"),
        Routing("cassini", ecmp, "shared links, hashed paths, jobs shifted in time to take turns (CASSINI)",
                colour=PURPLE, paces=_in_turns, simulated=False, paper="CASSINI (NSDI 2024)",
                held_to="all shifts of small sets of jobs; jobs in turns run event by event"),
        Routing("crux", balanced, "shared links, priority to jobs with more compute per second on a link (Crux)",
                colour=PINK, paces=_by_intensity, ranks=True, simulated=False, paper="Crux (SIGCOMM 2024)",
                held_to="two jobs on a link exactly; all cuts of small sets of priorities"),
        Routing("source", source, "shared links, the spine of a flow is given by its sender's position on the leaf",
                colour=AMBER, compared=True, paper="the static routing of vClos (arXiv 2308.05692)",
                held_to="a proof for leafs with equally many ranks; " + MOMENTS),
        Routing("ideal", ideal, "shared links with unlimited bandwidth", colour=INK, compared=True,
                buildable=False, paper="a bound, not a system", held_to="the closed forms of collectives"),
    ),
    error=ClusterError,
)  # fmt: skip
"""From the least orderly to the most. Adding one is a file that chooses paths or paces jobs, and a line here."""


def routing_named(name: str) -> Routing:
    """How flows find a path, by name."""
    return ROUTINGS.named(name)
