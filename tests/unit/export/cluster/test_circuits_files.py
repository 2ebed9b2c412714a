"""What a job with optical circuits asks of optical switches and spines."""

import json

import pytest
from optical_plants import optical_plant

from ropewalk.export.cluster import AddressPlan, circuits_csv, circuits_json, job_files, spine_rules
from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.optical.circuits import circuits_of, way


def placed(state, job, gpus):
    got = ocs_vclos(state, job, gpus)
    assert isinstance(got, Allocation), got
    state.place(got)
    return got


@pytest.fixture
def state():
    return Occupancy(optical_plant(leafs=8, spines=4, gpus_per_leaf=4, gpus_per_server=2))


def test_two_leafs_joined_straight_need_cross_connects_and_no_spine(state):
    job = placed(state, "a", 8)
    lines = circuits_csv(state.plant, job).splitlines()
    assert lines[0] == "switch,leaf,far_end"
    assert lines[1:] == [f"ocs{switch},leaf0,leaf1" for switch in range(4)]
    assert spine_rules(state.plant, job) == ()


def follow(rules, fibre, gpu):
    """The fibre over which a spine sends on what came in over another one."""
    (found,) = [rule.leaves for rule in rules if fibre in rule.arrives and gpu in rule.gpus]
    return found


@pytest.mark.parametrize("gpus", [12, 16, 24])
def test_spine_rules_send_every_packet_down_the_circuit_that_the_routes_take(state, gpus):
    job = placed(state, "a", gpus)
    rules, circuits = spine_rules(state.plant, job), circuits_of(state.plant, job)
    assert len(rules) == len(circuits)  # one rule a circuit
    for src in range(gpus):
        for dst in range(gpus):
            taken = way(job, src, dst)
            if taken:
                up, down = ((circuits[at].leaf, circuits[at].switch) for at in taken)
                assert follow(rules, up, job.gpus[dst]) == down


def test_rules_of_two_jobs_never_claim_a_packet_twice(state):
    jobs = [placed(state, "a", 12), placed(state, "b", 12)]
    claims = [
        (rule.spine, fibre, gpu)
        for job in jobs
        for rule in spine_rules(state.plant, job)
        for fibre in rule.arrives
        for gpu in rule.gpus
    ]
    assert len(claims) == len(set(claims)) > 0


def test_the_files_of_a_job_with_circuits_name_switches_spines_and_addresses(state):
    job = placed(state, "a", 12)
    plan = AddressPlan.numbered(state.plant)
    files = job_files(state.plant, job, plan)
    assert files["circuits.csv"] == circuits_csv(state.plant, job)
    document = json.loads(files["circuits.json"])
    assert document["ready_after_s"] == 0.05
    assert len(document["circuits"]) == len(job.links)
    rule = document["spine_rules"][0]
    assert set(rule["match"]["destinations"]) <= {f"{plan.nics[gpu]}/32" for gpu in job.gpus}
    assert rule["action"]["leave_over"]["switch"].startswith("ocs")
    by_name = json.loads(circuits_json(state.plant, job))["spine_rules"][0]["match"]["destinations"]
    assert by_name[0] == "server0.0"


def test_a_job_on_one_leaf_has_no_circuits(state):
    job = placed(state, "a", 4)
    assert "circuits.csv" not in job_files(state.plant, job)
