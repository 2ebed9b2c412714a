"""TopoOpt: 12 servers with four ports of 25 Gbps each, wired for three models, against switches and a thin tree.

The wiring, its routes through servers and the seats of layers are those that `ropewalk plan` finds for the models of
the testbed. The other networks run the same strategy.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from ropewalk import units
from ropewalk.codesign import study
from ropewalk.codesign.planned import plan_of
from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.hardware import Given, read_cluster
from ropewalk.lab.suite.claim import Claim, Sure
from ropewalk.lab.suite.steps import LONGER, StepSetup
from ropewalk.lab.suite.testbed import Case, Recipe, TimeRatio
from ropewalk.plans import Plan
from ropewalk.routing import DEFAULT
from ropewalk.training import TrainingAnswer, answer
from ropewalk.training.planned import question_of

SERVERS, PORTS, PORT = 12, 4, "25Gbps"
VGG = "VGG16"
MODELS = {"BERT": "topoopt-bert-testbed", VGG: "topoopt-vgg16-testbed", "DLRM": "topoopt-dlrm-testbed"}
FULL = "100G switch"
SLOW = "25G switch"
NETWORKS = {
    FULL: ("switch", "100Gbps"),
    "2:1 tree": ("leaf-spine:3x2x4", "100Gbps"),
    SLOW: ("switch", "25Gbps"),
}
HEADLINE = "TopoOpt (NSDI 2023), abstract"
FIGURES = "TopoOpt (NSDI 2023), figures of its testbed"
BUDGET, ROUNDS = 200, 2
"""Proposals and alternations of the search: seconds for 12 servers."""


@cache
def designed(model: str, seed: int) -> Plan:
    """The plan for servers whose ports are still to be wired."""
    ports = published_servers(SERVERS, PORTS, gpus_per_server=1, bandwidth=units.bandwidth(PORT), single_panel=True)
    asked = PlanQuestion(model, ports, budget=BUDGET, rounds=ROUNDS, compare=(), seed=seed)
    return plan_of(study.answer(asked))


def wired(model: str, seed: int) -> TrainingAnswer:
    """The step on the wiring that was found."""
    return answer(question_of(designed(model, seed)))


def switched(model: str, network: str, bandwidth: str, seed: int) -> TrainingAnswer:
    """The same step on a network of switches."""
    plan = designed(model, seed)
    given = Given(device="a100", nic_bandwidth=units.bandwidth(bandwidth), network=network)
    return answer(
        question_of(
            replace(
                plan,
                cluster=read_cluster(f"{SERVERS}x1", given),
                designed=None,
                communication=replace(plan.communication, routing=DEFAULT, algorithm="ring", digest=""),
                prediction=None,
            )
        )
    )


def _cases(name: str, model: str) -> list[Case]:
    # DLRM sends many small messages, of which the first bytes cost nothing on idle links: it runs longer.
    longer = 3.0 if name == "DLRM" else LONGER
    ours = StepSetup(partial(wired, model), longer=longer)
    others = {
        network: StepSetup(partial(switched, model, *spec), longer=longer)
        for network, spec in NETWORKS.items()
        if network != SLOW or name == VGG
    }
    return [
        Case(f"{name}, TopoOpt", ours, short=name == VGG),
        *(Case(f"{name}, {network}", one, short=name == VGG and network == FULL) for network, one in others.items()),
    ]


def _comparisons(name: str) -> list[TimeRatio]:
    ours = f"{name}, TopoOpt"
    return [
        TimeRatio(
            ours,
            f"{name}, {FULL}",
            Claim("four ports of 25 Gbps are comparable to a switch of 100 Gbps", HEADLINE, Sure.ABSTRACT, 1.0),
        ),
        TimeRatio(
            f"{name}, 2:1 tree",
            ours,
            Claim("up to 3.4 times as fast as a fat-tree of the same cost, on 128 simulated servers", HEADLINE,
                  Sure.ABSTRACT, least=1.0, most=3.4),
        ),
    ]  # fmt: skip


RECIPE = Recipe(
    tuple(case for name, model in MODELS.items() for case in _cases(name, model)),
    (
        TimeRatio(
            f"{VGG}, TopoOpt",
            f"{VGG}, {FULL}",
            Claim("all-reduces of data-parallel training have the bandwidth of all four ports",
                  "closed form of rings over all ports", Sure.DERIVED, 1.0),
        ),
        *(one for name in MODELS for one in _comparisons(name)),
        TimeRatio(
            f"{VGG}, {SLOW}",
            f"{VGG}, TopoOpt",
            Claim("VGG19 takes 2.0 times as long to its target accuracy over 25 Gbps", FIGURES, Sure.RECALLED, 2.0),
        ),
    ),
    (
        "Batches and layers are those of the published scripts, compute times are those predicted for an A100, and "
        "collectives send all their bytes at once.",
        "The tree has half the uplinks of a full one at the bandwidth of the switch; the paper's equal-cost fat-tree "
        "is "
        "slower.",
    ),
)  # fmt: skip
