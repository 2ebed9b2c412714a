"""Forests against rings on links of unequal speeds: what TopoAdopt and ForestColl pack trees for.

The rates of the closed forms are the optima of linear programs; a tree reaches them with ever smaller pieces.
"""

from __future__ import annotations

from ropewalk.lab.suite.claim import Claim, Sure
from ropewalk.lab.suite.collectives import CollectiveSetup
from ropewalk.lab.suite.testbed import Case, Recipe, TimeRatio

QUARTER = 0.25
SWITCH, RING = {"h3-switch": QUARTER}, {"h0-h1": QUARTER}
PROGRAM = "linear program of all-reduce trees (TopoAdopt, ForestColl), solved exactly"

RECIPE = Recipe(
    (
        Case("ring, slow NIC", CollectiveSetup("switch:4", "ring", "20Mbps", slowed=SWITCH), short=True),
        Case("forest, slow NIC", CollectiveSetup("switch:4", "forest", "20Mbps", segments=64, slowed=SWITCH),
             short=True),
        Case("two rings, slow link", CollectiveSetup("ring:8", "double-ring", "20Mbps", slowed=RING)),
        Case("searched rings, slow link", CollectiveSetup("ring:8", "best-ring", "20Mbps", slowed=RING)),
        Case("forest, slow link", CollectiveSetup("ring:8", "forest", "20Mbps", slowed=RING, segments=8)),
    ),
    (
        TimeRatio(
            "ring, slow NIC",
            "forest, slow NIC",
            Claim("four hosts, one NIC at a quarter: trees reach 0.25 and rings 0.167 of NIC bandwidth", PROGRAM,
                  Sure.DERIVED, 1.5),
        ),
        TimeRatio(
            "two rings, slow link",
            "forest, slow link",
            Claim("a ring of eight with one link at a quarter: 1.036 of a link against 0.286, in the limit of small "
                "pieces",
                  PROGRAM, Sure.DERIVED, least=1.5, most=3.63),
        ),
        TimeRatio(
            "two rings, slow link",
            "searched rings, slow link",
            Claim("schedules built for a network are up to 52 % faster than those of libraries",
                  "ForestColl (arXiv 2402.06787), abstract", Sure.ABSTRACT, least=1.0),
        ),
        TimeRatio(
            "ring, slow NIC",
            "forest, slow NIC",
            Claim("trees adapted to the bandwidth between workers are up to 18.3 times as fast",
                  "TopoAdopt (INFOCOM 2021), abstract", Sure.ABSTRACT, least=1.0, most=18.3),
        ),
    ),
    ("The networks of TopoAdopt's evaluation are not known; these are small ones whose optimum is known exactly.",),
)  # fmt: skip
