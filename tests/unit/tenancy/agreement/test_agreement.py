"""The replay, flows and packets at the same moments of a replay."""

import pytest
from snapshot_worlds import SIX_LEAFS, moment, random_jobs

from ropewalk.errors import ClusterError
from ropewalk.report.cluster_agreement import agreement_page, headline, lead, moment_rows, step_rows
from ropewalk.sim.level import LevelUse
from ropewalk.tenancy.agreement import AgreementQuestion, answer, evenly_spread
from ropewalk.tenancy.agreement.answer import rehashed
from ropewalk.tenancy.job import Job
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES
from ropewalk.tenancy.question import Conditions
from ropewalk.tenancy.snapshot import moments_of_replay
from ropewalk.tenancy.work import Iteration, JobExchange

FEW = LevelUse("packet", most_events=2e5)


@pytest.fixture(scope="module")
def found():
    jobs = random_jobs(3)
    return answer(AgreementQuestion(POLICIES["ecmp"], SIX_LEAFS, jobs, [50.0, 123.4], use=FEW, iterations=1, port=100))


def test_moments_of_one_replay_are_those_of_several(found):
    jobs = random_jobs(3)
    one_by_one = [moment(jobs, "ecmp", at_s) for at_s in (50.0, 123.4)]
    together = list(moments_of_replay(POLICIES["ecmp"], SIX_LEAFS, jobs, Conditions(), [123.4, 50.0]))
    for mine, other in zip(together, one_by_one, strict=True):
        assert [(one.name, one.start_s) for one in mine.tenants] == [(one.name, one.start_s) for one in other.tenants]


def test_packets_take_longer_than_flows_and_flows_longer_than_a_quiet_network(found):
    assert [one.at_s for one in found.moments] == [50.0, 123.4]
    for job in found.jobs:
        assert job.flow >= job.flow_alone - 1e-9 >= 1 - 2e-9
        assert job.packet_alone > job.flow_alone
        assert job.switch_hash > 1
    assert all(one.scale < 1 for one in found.moments)


def test_differences_are_those_of_the_jobs(found):
    values = found.steps["replay against packets"]
    assert values == pytest.approx([job.replay / job.packet - 1 for job in found.jobs])
    assert found.as_json()["steps"]["replay against packets"]["mean"] == pytest.approx(values.mean())
    assert f"{100 * abs(values.mean()):.1f}" in headline(found).replace("\u202f", " ")
    assert len(step_rows(found)) == 4
    assert len(moment_rows(found)) == 2
    assert "2 moments of the trace under ecmp on leaf-spine:6x4x8" in lead(found)
    page = agreement_page(found)
    assert headline(found).partition("'")[2] in page
    assert "</html>" in page


def test_nobody_is_held_up_on_links_of_their_own():
    alone = answer(AgreementQuestion(POLICIES["vclos"], SIX_LEAFS, random_jobs(3), [123.4], use=FEW, iterations=1))
    assert alone.steps["replay against flows"] == pytest.approx(0, abs=1e-9)
    assert "replay against packets hashed by switches" not in alone.steps


def test_another_hash_leaves_jobs_where_they_are():
    before = moment(random_jobs(3), "ecmp")
    after = rehashed(before, 100)
    for old, new in zip(before.tenants, after.tenants, strict=True):
        assert new.allocation is old.allocation
        assert new.footprint.path.shape == old.footprint.path.shape
    assert any((a.footprint.path != b.footprint.path).any() for a, b in zip(before.tenants, after.tenants, strict=True))


def test_what_cannot_be_compared_is_refused():
    jobs = [Job("a", 2, 0.0, 1000, Iteration(1.0, (JobExchange("ring", 1e6),))), Job("b", 2, 9.0, 10, Iteration(1.0))]
    where = plant("leaf-spine:2x2x4", gpus_per_server=2)
    with pytest.raises(ClusterError, match="uses a link between switches at any of 2 moments"):
        answer(AgreementQuestion(POLICIES["ecmp"], where, jobs, evenly_spread(jobs, 2), use=FEW))
    with pytest.raises(ClusterError, match="does not hash flows"):
        answer(AgreementQuestion(POLICIES["source"], where, jobs, [1.0], use=FEW, port=100))
    with pytest.raises(ClusterError, match="not with level flow"):
        answer(AgreementQuestion(POLICIES["ecmp"], where, jobs, [1.0], use=LevelUse("flow")))
    with pytest.raises(ClusterError, match="no moment"):
        answer(AgreementQuestion(POLICIES["ecmp"], where, jobs, [], use=FEW))
