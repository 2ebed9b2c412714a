import json
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from optical_plants import optical_plant

from ropewalk.errors import ClusterError, PhysicsError
from ropewalk.export.cluster import (
    AddressPlan,
    addresses_csv,
    check_rules,
    check_written,
    job_files,
    leaf_rules,
    metrics,
    parse_sonic,
    read_addresses,
    read_rules,
    read_sonic,
    rules_json,
    sonic_documents,
    write_files,
)
from ropewalk.tenancy.allocation import Allocation, Reason, Waiting
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import allocator_named

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=2)
PLAN = AddressPlan.numbered(SMALL)
CLOS = Allocation(
    "a", (6, 7, 0, 1), "clos", (1, 0), (3, 1), ((1, 3), (1, 1), (0, 3), (0, 1)), (3, 1, 3, 1), (1, 1, 0, 0)
)
ONE_LEAF = Allocation("b", (2, 3), "server", (0,), (), (), (-1, -1), (0, 0))


def test_sonic_documents_say_local_first_then_one_redirect_for_each_gpu():
    rules = leaf_rules(SMALL, [CLOS, ONE_LEAF], replace(PLAN, ports={0: "Ethernet8", 1: "Ethernet12"}))
    documents = sonic_documents(rules, SMALL, replace(PLAN, ports={0: "Ethernet12", 1: "Ethernet8"}))
    assert list(documents) == ["leaf0", "leaf1"]
    assert json.loads(documents["leaf0"]) == {
        "ACL_TABLE": {
            "ROPEWALK_SOURCE": {
                "type": "L3",
                "stage": "ingress",
                "policy_desc": "source routes of jobs",
                "ports": ["Ethernet8", "Ethernet12"],
            }
        },
        "ACL_RULE": {
            "ROPEWALK_SOURCE|LOCAL": {"PRIORITY": "2000", "DST_IP": "10.0.0.0/29", "PACKET_ACTION": "FORWARD"},
            "ROPEWALK_SOURCE|GPU0": {
                "PRIORITY": "1000",
                "SRC_IP": "10.0.0.1/32",
                "PACKET_ACTION": "REDIRECT:172.16.0.7",
            },
            "ROPEWALK_SOURCE|GPU1": {
                "PRIORITY": "1000",
                "SRC_IP": "10.0.0.2/32",
                "PACKET_ACTION": "REDIRECT:172.16.0.3",
            },
        },
    }


def test_a_job_on_one_leaf_needs_no_rule():
    assert leaf_rules(SMALL, [ONE_LEAF], PLAN) == ()


def test_the_files_of_a_job_are_written_and_read_back(tmp_path):
    paths = write_files(job_files(SMALL, CLOS, PLAN), tmp_path / "job")
    assert sorted(str(path.relative_to(tmp_path / "job")) for path in paths) == [
        "hostfile.slurm",
        "links.csv",
        "links.json",
        "nodes.slurm",
        "nodes.txt",
        "rankfile.openmpi",
        "ranks.csv",
        "rules.json",
        "sonic/0-leaf0.json",
        "sonic/1-leaf1.json",
    ]
    rules = leaf_rules(SMALL, [CLOS], PLAN)
    assert read_rules(tmp_path / "job/rules.json", SMALL) == rules
    sonic = [read_sonic(tmp_path / f"job/sonic/{leaf}-leaf{leaf}.json", leaf, SMALL, PLAN) for leaf in (0, 1)]
    check_rules(sonic, SMALL, [CLOS], PLAN)
    assert not {name for name in job_files(SMALL, CLOS) if "rules" in name or "sonic" in name}


def _changed(rules, leaf, at, **changes):
    sources = list(rules[leaf].sources)
    sources[at] = replace(sources[at], **changes)
    return [replace(one, sources=tuple(sources)) if n == leaf else one for n, one in enumerate(rules)]


def test_every_way_to_break_a_rule_is_found():
    rules = leaf_rules(SMALL, [CLOS], PLAN)
    first, second = rules[0].sources
    broken = {
        "GPU 0 has 0 rules": [replace(rules[0], sources=(second,)), rules[1]],
        "GPU 0 has 2 rules": [replace(rules[0], sources=(first, first, second)), rules[1]],
        "does not lead to spine3": _changed(rules, 0, 0, spine=0, next_hop=PLAN.next_hops[0, 0, 0]),
        "GPUs 0 and 1 share an uplink": _changed(rules, 0, 1, spine=3, next_hop=first.next_hop),
        "the rule of GPU 0 does not lead": _changed(rules, 0, 0, next_hop=PLAN.next_hops[1, 3, 0]),
        "precedes the local one": _changed(rules, 0, 0, priority=9999),
        "GPU 0 has 10.0.0.1, not 10.0.0.9": _changed(rules, 0, 0, source=IPv4Address("10.0.0.9")),
        "GPU 2 sends nothing beyond its leaf": _changed(rules, 0, 0, gpu=2),
        "leaf0 keeps 10.0.0.8/29 local": [replace(rules[0], subnet=PLAN.subnets[1]), rules[1]],
        "leaf0 is listed 2 times": [rules[0], rules[0], rules[1]],
        "GPU 0 is on leaf0": [rules[1], replace(rules[0], leaf=1)],
    }
    for message, wrong in broken.items():
        with pytest.raises(ClusterError) as problem:
            check_rules(wrong, SMALL, [CLOS], PLAN)
        assert message in str(problem.value)


def test_an_allocation_without_a_cable_for_each_gpu_is_refused():
    greedy = replace(CLOS, spine_of_gpu=(3, 3, 3, 1))
    with pytest.raises(ClusterError, match="without its own cable"):
        leaf_rules(SMALL, [greedy], PLAN)


def test_parallel_cables_are_taken_one_by_one():
    double = plant("leaf-spine:2x2x4x2", gpus_per_server=2)
    links = tuple((leaf, spine) for leaf in (0, 1) for spine in (0, 0, 1, 1))
    job = Allocation(
        *("a", tuple(range(8)), "clos", (0, 1), (0, 0, 1, 1), links, (0, 0, 1, 1) * 2, (0,) * 4 + (1,) * 4),
        cables=(0, 1) * 4,
    )
    rules = leaf_rules(double, [job], AddressPlan.numbered(double))
    assert [(rule.spine, rule.cable) for rule in rules[0].sources] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_shared_jobs_get_the_static_rule_of_their_place_on_the_leaf():
    state = Occupancy(plant("leaf-spine:2x2x4x2", gpus_per_server=2))
    job = allocator_named("none")(state, "a", 8)
    rules = leaf_rules(state.plant, [job], AddressPlan.numbered(state.plant))
    assert [(rule.spine, rule.cable) for rule in rules[1].sources] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_remainder_jobs_share_their_own_uplinks():
    state = Occupancy(plant("leaf-spine:4x4x4", gpus_per_server=2))
    job = allocator_named("laas")(state, "a", 6)
    rules = leaf_rules(state.plant, [job], AddressPlan.numbered(state.plant))
    assert sum(len(one.sources) for one in rules) == 6
    assert {(one.leaf, rule.spine) for one in rules for rule in one.sources} == set(job.links)


def test_jobs_over_circuits_go_up_their_own_fibres():
    state = Occupancy(optical_plant(leafs=4, spines=2, gpus_per_leaf=4, gpus_per_server=2))
    job = ocs_vclos(state, "a", 16)
    assert job.stage == "ocs"
    rules = leaf_rules(state.plant, [job], AddressPlan.numbered(state.plant))
    fibres = {(one.leaf, rule.spine - state.plant.packet_spines) for one in rules for rule in one.sources}
    assert len(fibres) == 16
    assert fibres == {(leaf, switch) for (leaf, _), switch in zip(job.links, job.cables, strict=True)}
    with pytest.raises(ClusterError, match="has no optical switches"):
        leaf_rules(SMALL, [job], PLAN)


def test_addresses_come_back_and_mistakes_have_their_line(tmp_path):
    plan = replace(PLAN, ports={3: "Ethernet3"})
    text = addresses_csv(plan, SMALL)
    (tmp_path / "a.csv").write_text(text)
    assert read_addresses(tmp_path / "a.csv", SMALL) == plan
    broken = {
        "line 1: the columns are": text.replace("port", "hole", 1),
        "line 2: 'leaf9' is not a name": text.replace("leaf,leaf0", "leaf,leaf9"),
        "line 4: 'GPU 5 of server0' is not a name": text.replace("server0,0", "server0,5"),
        "line 4: Octet 300": text.replace("10.0.0.1,", "10.0.0.300,"),
        "line 12: there is no cable 3 from leaf0 to spine0": text.replace("spine0,0", "spine0,3", 1),
        "line 2: the kind 'lief' is not one of": text.replace("leaf,leaf0", "lief,leaf0", 1),
        "the address 10.0.0.1 is given 2 times": text.replace("10.0.0.2,", "10.0.0.1,"),
        "outside its leaf's subnet (leaf0, 10.0.0.0/29)": text.replace("10.0.0.1,", "10.0.0.14,"),
        "the subnets of leaf0 and leaf1 overlap": text.replace("10.0.0.0/29", "10.0.0.0/28"),
        "1 uplinks have no address, the first is cable 0 from leaf1 to spine3": text[: text.rindex("uplink")],
        "1 NICs of": text.replace("nic,leaf0,server0,0,,,10.0.0.1,\n", ""),
        "line 3: the leaf leaf0 is listed twice": text.replace("leaf,leaf1", "leaf,leaf0"),
    }
    for message, wrong in broken.items():
        (tmp_path / "b.csv").write_text(wrong)
        with pytest.raises(ClusterError) as problem:
            read_addresses(tmp_path / "b.csv", SMALL)
        assert message in str(problem.value)


def test_networks_that_are_too_small_are_refused():
    with pytest.raises(ClusterError, match="give larger networks"):
        AddressPlan.numbered(SMALL, nics="10.0.0.0/29")


def test_documents_of_other_leafs_and_other_tools_are_refused(tmp_path):
    rules = leaf_rules(SMALL, [CLOS], PLAN)
    documents = sonic_documents(rules, SMALL, PLAN)
    with pytest.raises(ClusterError, match="another leaf"):
        parse_sonic(documents["leaf0"], 1, SMALL, PLAN)
    with pytest.raises(ClusterError, match="not what ropewalk writes"):
        parse_sonic(documents["leaf0"].replace("FORWARD", "DROP"), 0, SMALL, PLAN)
    (tmp_path / "r.json").write_text(rules_json(rules, SMALL).replace('"version": 1', '"version": 2'))
    with pytest.raises(ClusterError, match="of version 1"):
        read_rules(tmp_path / "r.json", SMALL)


def test_metrics_count_the_state():
    state = Occupancy(SMALL)
    state.place(CLOS)
    state.place(ONE_LEAF)
    waiting = [Waiting(Reason.GPU_SHORTAGE, "x"), Waiting(Reason.NETWORK_FRAGMENTATION, "y")]
    lines = metrics(state, waiting).splitlines()
    assert 'ropewalk_cluster_gpus{state="used"} 6' in lines
    assert 'ropewalk_cluster_gpus{state="free"} 2' in lines
    assert 'ropewalk_cluster_jobs_running{stage="clos"} 1' in lines
    assert 'ropewalk_cluster_jobs_waiting{reason="network-fragmentation"} 1' in lines
    assert 'ropewalk_cluster_jobs_waiting{reason="server-fragmentation"} 0' in lines
    assert 'ropewalk_cluster_links{state="reserved"} 4' in lines
    assert 'ropewalk_cluster_spine_free_ports{spine="spine3"} 0' in lines
    assert 'ropewalk_cluster_job_gpus{job="b"} 2' in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) == 8


def test_metrics_of_an_optical_plant_count_fibres():
    state = Occupancy(optical_plant(leafs=4, spines=2, gpus_per_leaf=4, gpus_per_server=2))
    before = metrics(state).splitlines()
    assert 'ropewalk_cluster_links{state="free"} 16' in before
    state.place(ocs_vclos(state, "a", 16))
    after = metrics(state).splitlines()
    assert 'ropewalk_cluster_links{state="reserved"} 16' in after
    assert 'ropewalk_cluster_leaf_free_uplinks{leaf="leaf3"} 0' in after
    assert sum("spine_free_ports{" in line for line in after) == 2


def test_names_of_jobs_are_escaped_for_prometheus():
    state = Occupancy(SMALL)
    state.place(replace(ONE_LEAF, job='a "b"\\\n'))
    assert '{job="a \\"b\\"\\\\\\n"} 2' in metrics(state)


def test_files_that_do_not_say_what_was_written_are_found(tmp_path):
    files = job_files(SMALL, CLOS, PLAN) | {"addresses.csv": addresses_csv(PLAN, SMALL)}
    rules = leaf_rules(SMALL, [CLOS], PLAN)
    write_files(files, tmp_path)
    checked = check_written(tmp_path, files, SMALL, CLOS, PLAN, rules)
    assert len(checked) == 8
    links = ((0, 0), (0, 2), (1, 0), (1, 2))
    other = Allocation("a", (0, 1, 6, 7), "clos", (0, 1), (0, 2), links, (0, 2, 0, 2), (0, 0, 1, 1))
    plan = AddressPlan.numbered(SMALL, "10.9.0.0/16")
    wrong = job_files(SMALL, other, PLAN) | {"addresses.csv": addresses_csv(plan, SMALL)}
    for name in checked:
        (tmp_path / name).write_text(wrong[name])
        with pytest.raises(PhysicsError, match="differs from what was to be written"):
            check_written(tmp_path, files, SMALL, CLOS, PLAN, rules)
        (tmp_path / name).write_text(files[name])
