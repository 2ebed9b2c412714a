"""vClos: jobs alone, under ECMP, source-routed and isolated, and circuits that an optical switch sets anew for a job.

Two jobs of six GPUs exchange all-to-all on four leafs of four hosts, so leafs must be shared. Two jobs of eight GPUs
run halving-doubling on leafs of their own, where source routing alone keeps flows apart.
"""

from __future__ import annotations

from ropewalk.lab.suite.claim import Claim, Sure
from ropewalk.lab.suite.jobs import JobsSetup
from ropewalk.lab.suite.testbed import Case, Recipe, TimeRatio

PLANT = "leaf-spine:4x4x4"
ALL_TO_ALL, HALVING = ("shift", (6, 6)), ("halving-doubling", (8, 8))
THEOREM = "vClos (arXiv 2308.05692), contention theorem, derived independently and checked"
SECOND_HAND = "vClos (arXiv 2308.05692), as another reader reports it"


def _jobs(policy: str, work: tuple[str, tuple[int, ...]], *, one_by_one: bool = False) -> JobsSetup:
    return JobsSetup(PLANT, policy, *work, one_by_one=one_by_one)


RECIPE = Recipe(
    (
        Case("all-to-all, alone", _jobs("vclos", ALL_TO_ALL, one_by_one=True), short=True),
        Case("all-to-all, isolated", _jobs("vclos", ALL_TO_ALL), short=True),
        Case("all-to-all, source-routed", _jobs("source", ALL_TO_ALL)),
        Case("all-to-all, ECMP", _jobs("ecmp", ALL_TO_ALL), short=True),
        Case("halving-doubling, alone", _jobs("source", HALVING, one_by_one=True)),
        Case("halving-doubling, source-routed", _jobs("source", HALVING)),
        Case("halving-doubling, ECMP", _jobs("ecmp", HALVING)),
        Case("first job on its circuits", _jobs("ocs-vclos", ("ring", (8,)))),
        Case("second job after rewiring", _jobs("ocs-vclos", ("shift", (16,))), rewires=True),
        Case("second job on an ideal switch", _jobs("ideal", ("shift", (16,)))),
    ),
    (
        TimeRatio(
            "all-to-all, isolated",
            "all-to-all, alone",
            Claim("isolated jobs take as long as alone", THEOREM, Sure.DERIVED, 1.0),
        ),
        TimeRatio(
            "halving-doubling, source-routed",
            "halving-doubling, alone",
            Claim("source routing keeps halving-doubling on equal leafs free of contention", THEOREM, Sure.DERIVED,
                  1.0),
        ),
        TimeRatio(
            "all-to-all, ECMP",
            "all-to-all, alone",
            Claim("contention costs up to 60 % of the throughput of an all-to-all", SECOND_HAND, Sure.SECOND_HAND,
                  2.5, least=1.0, most=2.5),
        ),
        TimeRatio(
            "all-to-all, source-routed",
            "all-to-all, isolated",
            Claim("without dedicated links, jobs on shared leafs collide on downlinks", THEOREM, Sure.DERIVED,
                  least=1.1),
        ),
        TimeRatio(
            "halving-doubling, ECMP",
            "halving-doubling, source-routed",
            Claim("vClos lowers the mean completion time by up to 67.6 % against ECMP, waiting included",
                  "vClos (Computer Networks 268), abstract", Sure.ABSTRACT, least=1.0),
        ),
        TimeRatio(
            "second job after rewiring",
            "second job on an ideal switch",
            Claim("jobs on OCS-vClos take 3.38 % longer than on an ideal network, waiting included", SECOND_HAND,
                  Sure.SECOND_HAND, 1.0338),
        ),
    ),
    (
        "Times are those of one exchange without computing and without a queue of jobs; the paper reports "
        "completion times of traces.",
        "The hash of the kernel has a secret key, so which flows collide under ECMP differs from lab to lab.",
    ),
)  # fmt: skip
