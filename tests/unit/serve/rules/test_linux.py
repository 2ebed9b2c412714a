import contextlib
from dataclasses import replace

import pytest
from fake_kernel import FakeKernel
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.export.cluster import AddressPlan
from ropewalk.serve.rules.driver import DriverError
from ropewalk.serve.rules.linux import LinuxDriver
from ropewalk.serve.rules.linux_state import parsed
from ropewalk.serve.rules.making import rules_of
from ropewalk.serve.rules.rule import Foreign, Keep, Rule, Send
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=1)
PLAN = AddressPlan.numbered(SMALL)


def _rules(generation=1, job="j5"):
    state = POLICIES["vclos"].occupancy(SMALL)
    held = POLICIES["vclos"].make(state, job, 8)
    return tuple(rule for rule in rules_of(SMALL, job, held, PLAN, generation) if rule.device == "leaf0")


def _driver(kernel=None, **more):
    return LinuxDriver(SMALL, PLAN, kernel or FakeKernel(), **more)


def _there(driver):
    return set(driver.present("leaf0").rules)


def test_what_is_applied_is_there_and_what_is_removed_is_gone():
    driver = _driver()
    driver.apply("leaf0", _rules())
    assert _there(driver) == set(_rules())
    driver.apply("leaf0", _rules())
    assert _there(driver) == set(_rules())
    driver.remove("leaf0", _rules())
    assert _there(driver) == set()
    assert driver.reach.routes["leaf0"] == []
    driver.remove("leaf0", _rules())


@given(st.integers(0, 40), st.booleans())
def test_what_was_half_done_is_made_whole(stops_after, removing):
    driver = _driver()
    if removing:
        driver.apply("leaf0", _rules())
    driver.reach.stops_after = stops_after
    with contextlib.suppress(DriverError):
        (driver.remove if removing else driver.apply)("leaf0", _rules())
    driver.reach.stops_after = None
    stale = _there(driver) - set(_rules())
    driver.remove("leaf0", sorted(stale, key=lambda rule: rule.order))
    driver.apply("leaf0", _rules())
    assert _there(driver) == set(_rules())


def test_a_new_generation_takes_over_without_a_moment_in_between():
    driver = _driver()
    driver.apply("leaf0", _rules())
    new = next(
        replace(rule, body=replace(rule.body, next_hop=str(PLAN.next_hops[0, 3, 0])), generation=2)
        for rule in _rules()
        if isinstance(rule.body, Send)
    )
    source, before = new.body.source, _there(driver)
    old = next(rule.body.next_hop for rule in before if rule.key == new.key)
    kernel = driver.reach
    for told in range(12):
        kernel.stops_after = told
        try:
            driver.apply("leaf0", [new])
        except DriverError:
            assert kernel.way("leaf0", source) in (old, new.body.next_hop)
    kernel.stops_after = None
    driver.apply("leaf0", [new])
    assert kernel.way("leaf0", source) == new.body.next_hop
    left = [rule for rule in _there(driver) if isinstance(rule.body, Foreign)]
    driver.remove("leaf0", left)  # routes of the table that was left before its last line
    assert _there(driver) == {rule for rule in before if rule.key != new.key} | {new}


def test_over_a_dead_cable_traffic_waits_and_the_link_is_named():
    driver = _driver()
    driver.apply("leaf0", _rules())
    rule = next(rule for rule in _rules() if isinstance(rule.body, Send))
    driver.reach.cut(rule.body.next_hop)
    assert driver.reach.way("leaf0", rule.body.source) == "hold"
    seen = driver.present("leaf0")
    assert seen.dead_links == (("leaf0", "spine0"),)
    assert Rule.on("leaf0", Send(rule.body.source, ""), "j5", 1) in seen.rules
    driver.apply("leaf0", _rules())  # refuses nothing, and changes nothing
    assert driver.reach.way("leaf0", rule.body.source) == "hold"


def test_where_dead_links_are_shared_traffic_takes_the_ordinary_routes():
    driver = _driver(waits=False)
    driver.apply("leaf0", _rules())
    assert _there(driver) == set(_rules())
    rule = next(rule for rule in _rules() if isinstance(rule.body, Send))
    driver.reach.cut(rule.body.next_hop)
    assert driver.reach.way("leaf0", rule.body.source) is None


def test_what_has_our_mark_and_no_meaning_is_foreign_and_can_be_removed():
    driver, kernel = _driver(), FakeKernel()
    driver = _driver(kernel)
    driver.apply("leaf0", _rules())
    kernel.rules["leaf0"].append({"priority": 21000, "src": "10.9.9.9", "table": "77", "protocol": "82"})
    kernel.routes["leaf0"].append({"dst": "default", "gateway": "172.16.0.9", "table": "99", "metric": 4})
    foreign = [rule for rule in driver.present("leaf0").rules if isinstance(rule.body, Foreign)]
    assert len(foreign) == 2
    driver.remove("leaf0", foreign)
    assert _there(driver) == set(_rules())


def test_rules_of_others_are_not_seen():
    driver = _driver()
    driver.reach.rules["leaf0"] = [{"priority": 100, "src": "10.0.0.1", "table": "7", "protocol": "11"}]
    assert _there(driver) == set()


@pytest.mark.parametrize("job", ["train", "j", "j0", "jx", f"j{2**31}"])
def test_jobs_without_a_number_are_refused(job):
    rule = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), job, 1)
    with pytest.raises(DriverError, match="has no numeric id"):
        _driver().apply("leaf0", [rule])


def test_generations_beyond_the_number_of_a_table_are_refused():
    rule = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j1", 8192)
    with pytest.raises(DriverError, match="end the job and submit it again"):
        _driver().apply("leaf0", [rule])


def test_leafs_with_one_host_keep_one_address():
    driver = _driver()
    rule = Rule.on("leaf0", Keep("10.0.0.1/32"))
    driver.apply("leaf0", [rule])
    assert driver.present("leaf0").rules == (rule,)


@pytest.mark.parametrize("text", ["", "[]", "[] [] ", '[] [] [{"flags": 1}]', "no json", '[{"priority": 1}] [{}] 3'])
def test_what_ip_cannot_have_printed_is_refused(text):
    with pytest.raises(DriverError, match="cannot be read"):
        parsed(text, "leaf0")
