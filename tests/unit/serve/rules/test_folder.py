import json
from dataclasses import replace

import pytest
from optical_plants import optical_plant

from ropewalk.errors import ClusterError
from ropewalk.export.cluster import AddressPlan
from ropewalk.export.cluster.sonic_schema import check_config
from ropewalk.serve.rules.driver import DriverError
from ropewalk.serve.rules.making import rules_of
from ropewalk.serve.rules.rule import Foreign, Join, Rule, Send
from ropewalk.serve.rules.table import driver_named
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=1)
PLAN = replace(AddressPlan.numbered(SMALL), ports={gpu: f"swp{gpu % 4 + 1}" for gpu in range(8)})
OPTICAL = optical_plant(leafs=4, spines=2, gpus_per_leaf=4)


def _rules(job="j5", generation=1):
    state = POLICIES["vclos"].occupancy(SMALL)
    held = POLICIES["vclos"].make(state, job, 8)
    return [rule for rule in rules_of(SMALL, job, held, PLAN, generation) if rule.device == "leaf0"]


def _circuits(gpus=8, job="j1", state=None):
    held = ocs_vclos(state or Occupancy(OPTICAL), job, gpus)
    return rules_of(OPTICAL, job, held, AddressPlan.numbered(OPTICAL), 1), held


@pytest.fixture(params=["files", "sonic", "frr"])
def driver(request, tmp_path):
    return driver_named(request.param, {"folder": str(tmp_path / "rules")}, SMALL, PLAN)


def test_documents_hold_what_was_applied_with_its_tags(driver):
    assert driver.present("leaf0").rules == ()
    driver.apply("leaf0", _rules())
    assert set(driver.present("leaf0").rules) == set(_rules())
    text = driver.path("leaf0").read_bytes()
    driver.apply("leaf0", _rules())
    assert driver.path("leaf0").read_bytes() == text
    driver.apply("leaf0", _rules(generation=2))
    assert set(driver.present("leaf0").rules) == set(_rules(generation=2))
    driver.remove("leaf0", _rules())
    assert set(driver.present("leaf0").rules) >= {rule for rule in _rules(generation=2) if rule.job}
    driver.remove("leaf0", _rules(generation=2))
    assert driver.present("leaf0").rules == ()


@pytest.mark.parametrize("name", ["files", "sonic"])
@pytest.mark.parametrize("damage", ["half", "words", "other"])
def test_a_damaged_document_is_replaced_by_a_whole_one(name, damage, tmp_path):
    driver = driver_named(name, {"folder": str(tmp_path)}, SMALL, PLAN)
    driver.apply("leaf0", _rules())
    path = driver.path("leaf0")
    text = path.read_text()
    path.write_text({"half": text[: len(text) // 2], "words": "who was here?", "other": '{"rules": 3}'}[damage])
    seen = driver.present("leaf0").rules
    assert [type(rule.body) for rule in seen] == [Foreign]
    driver.remove("leaf0", seen)
    driver.apply("leaf0", _rules())
    assert set(driver.present("leaf0").rules) == set(_rules())


def test_sonic_documents_pass_the_schema_and_hold_job_and_generation(tmp_path):
    driver = driver_named("sonic", {"folder": str(tmp_path)}, SMALL, PLAN)
    driver.apply("leaf0", _rules())
    document = json.loads(driver.path("leaf0").read_text())
    check_config(document, "leaf0")
    assert "ROPEWALK_SOURCE|GPU0_j5_g1" in document["ACL_RULE"]
    driver.remove("leaf0", _rules())
    assert json.loads(driver.path("leaf0").read_text()) == {"ACL_TABLE": {}, "ACL_RULE": {}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table, rule: table.update(type="L2"), "type is 'L2'"),
        (lambda table, rule: rule.update(PRIORITY="1000000"), "PRIORITY is '1000000'"),
        (lambda table, rule: rule.update(PACKET_ACTION="REDIRECT:nowhere"), "PACKET_ACTION is"),
        (lambda table, rule: rule.update(SRC_IP="10.0.0.300/32"), "SRC_IP is"),
        (lambda table, rule: rule.update(COLOUR="red"), "unknown field 'COLOUR'"),
        (lambda table, rule: table.update(ports=["Ethernet 8"]), "ports is"),
    ],
)
def test_what_sonic_would_refuse_is_refused(change, said, tmp_path):
    driver = driver_named("sonic", {"folder": str(tmp_path)}, SMALL, PLAN)
    driver.apply("leaf0", _rules())
    document = json.loads(driver.path("leaf0").read_text())
    change(document["ACL_TABLE"]["ROPEWALK_SOURCE"], document["ACL_RULE"]["ROPEWALK_SOURCE|GPU0_j5_g1"])
    with pytest.raises(ClusterError, match=said):
        check_config(document, "leaf0")


def test_circuits_are_torn_down_before_others_are_set_up_and_running_ones_stay(tmp_path):
    driver = driver_named("optical", {"folder": str(tmp_path)}, OPTICAL, AddressPlan.numbered(OPTICAL))
    state = Occupancy(OPTICAL)
    mine, held = _circuits(8, "j1", state)
    state.place(held)
    other, _ = _circuits(8, "j2", state)
    switch = next(rule.device for rule in other if isinstance(rule.body, Join))
    first, second = ([rule for rule in rules if rule.device == switch] for rules in (mine, other))
    driver.apply(switch, first)
    driver.apply(switch, second)
    before = json.loads(driver.path(switch).read_text())
    moved = [replace(rule, generation=2) for rule in first]
    driver.apply(switch, moved)
    kept = json.loads(driver.path(switch).read_text())
    assert kept["step"] == before["step"], "another generation of the same circuit moves no mirror"
    driver.remove(switch, moved)
    driver.apply(switch, [replace(rule, job="j3") for rule in moved])
    steps = json.loads(driver.path(switch).read_text())["steps"]
    assert [one["step"] for one in steps] == list(range(1, len(steps) + 1))
    assert all(one["job"] != "j2" for one in steps[before["step"] :])
    joined = set()
    for one in steps:
        for end in (one["leaf"], one["far_end"]):
            if end.startswith("leaf"):
                assert (end in joined) == (one["do"] == "tear down")
                joined ^= {end}


def test_a_fibre_that_is_used_is_not_joined_again(tmp_path):
    driver = driver_named("optical", {"folder": str(tmp_path)}, OPTICAL, AddressPlan.numbered(OPTICAL))
    driver.apply("ocs0", [Rule.on("ocs0", Join("leaf0", "leaf1"), "j1", 1)])
    with pytest.raises(DriverError, match="leaf1 has 1 fibres to ocs0"):
        driver.apply("ocs0", [Rule.on("ocs0", Join("leaf1", "leaf2"), "j2", 1)])
    assert [rule.job for rule in driver.present("ocs0").rules] == ["j1"]


def test_rules_about_other_addresses_are_refused(tmp_path):
    driver = driver_named("sonic", {"folder": str(tmp_path)}, SMALL, PLAN)
    with pytest.raises(DriverError, match="addresses that are not in the address plan"):
        driver.apply("leaf0", [Rule.on("leaf0", Send("10.0.0.1", "1.2.3.4"), "j1", 1)])


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("lunix", {}, "did you mean linux"),
        ("linux", {}, "give --driver-option lab=NAME or reach="),
        ("linux", {"reach": "ssh root@leaf"}, "the same for all devices"),
        ("linux", {"reach": "ssh '{device}"}, "No closing quotation"),
        ("linux", {"reach": "ssh {device}", "dead_links": "pray"}, "use wait or share"),
        ("linux", {"reach": "ssh {device}", "timeout": "0s"}, "above 0s"),
        ("sonic", {}, "give --driver-option folder=rules"),
        ("sonic", {"folder": "x", "colour": "red"}, "there is no 'colour'"),
        ("optical", {"folder": "x"}, "has no optical switches"),
    ],
)
def test_what_a_driver_cannot_do_is_refused_in_words(name, options, said):
    with pytest.raises(ClusterError, match=said):
        driver_named(name, options, SMALL, PLAN)


def test_frr_needs_the_ports_of_its_leafs(tmp_path):
    with pytest.raises(ClusterError, match="fill in the column `port`"):
        driver_named("frr", {"folder": str(tmp_path)}, SMALL, AddressPlan.numbered(SMALL))
