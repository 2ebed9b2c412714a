"""Small clusters with a few jobs at work, for snapshots."""

import numpy as np

from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import Plant, plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.question import Conditions
from ropewalk.tenancy.snapshot import Moment, moment_of_replay
from ropewalk.tenancy.work import Iteration, JobExchange

SIX_LEAFS = plant("leaf-spine:6x4x8", gpus_per_server=2)
COLLECTIVES = (("ring", 1.83), ("halving-doubling", 1.83), ("all-to-all", 0.92))
"""With what one NIC of 12 sends of a buffer."""


def random_jobs(seed: int, where: Plant = SIX_LEAFS, count: int = 4, gpus: int = 12) -> list[Job]:
    """Jobs that cross leafs and exchange for 10 to 60 % of their time."""
    random, jobs = np.random.default_rng(seed), []
    for number in range(count):
        step_s, share = float(random.uniform(0.5, 1.5)), float(random.uniform(0.1, 0.6))
        collective, sent = COLLECTIVES[random.integers(len(COLLECTIVES))]
        exchange = JobExchange(collective, share * step_s * where.nic_bandwidth / sent)
        jobs.append(Job(f"j{number}", gpus, 0.7 * number, 10_000, Iteration(step_s * (1 - share), (exchange,))))
    return jobs


def moment(jobs: list[Job], policy: str, at_s: float = 123.4, where: Plant = SIX_LEAFS, seed: int = 0) -> Moment:
    return moment_of_replay(POLICIES[policy], where, jobs, Conditions(seed=seed), at_s)
