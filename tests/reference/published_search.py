"""TopoOpt's search as published: one Markov chain on the present wiring, TopologyFinder for what it found, by turns.

Rings are chosen by the geometric rule of the paper, ports are split as published, and the search begins with data
parallelism. Chains are guided by the estimate and wirings timed by simulation, as everywhere here.
"""

from dataclasses import replace

from ropewalk.codesign.alternate import Candidate, alternate
from ropewalk.codesign.job import job_of, search_on
from ropewalk.codesign.judge import Judge
from ropewalk.codesign.metropolis import SearchPatience, search
from ropewalk.codesign.question import PlanQuestion
from ropewalk.fabric.wiring import Wiring
from ropewalk.strategy.seating import Seating


def published_search(question: PlanQuestion) -> Candidate:
    """The best strategy and wiring that the published alternation finds with this budget and seed."""
    asked = replace(question, selection="paper")
    job = job_of(asked)
    judge = Judge(job)

    def one_chain(wiring: Wiring, seating: Seating, number: int) -> Seating:
        space, cost = search_on(asked, 1, (seating, wiring))
        found = search(
            space,
            cost,
            seed=asked.seed * 1000 + number,
            start=space.places_of(seating),
            patience=SearchPatience(asked.budget),
        )
        return found.seating(space)

    return alternate(
        [job.space.seating(job.space.start)],
        search=one_chain,
        rewire=job.wire,
        time=judge.on_wiring,
        rounds=asked.rounds,
    ).best
