import pytest
from optical_plants import optical_plant

from ropewalk.errors import ClusterError, PhysicsError
from ropewalk.export.cluster import AddressPlan, leaf_rules
from ropewalk.serve.rules.book import Book
from ropewalk.serve.rules.changes import JobRules, Over, WantedRules, changes, is_left
from ropewalk.serve.rules.making import rules_of
from ropewalk.serve.rules.rule import NOBODY, UNKNOWN, Foreign, Join, Keep, Relay, Rule, Send
from ropewalk.tenancy.occupancy import Occupancy
from ropewalk.tenancy.optical.allocate import ocs_vclos
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=2)
PLAN = AddressPlan.numbered(SMALL)
BODIES = (
    Keep("10.0.0.0/29"),
    Send("10.0.0.1", "172.16.0.1"),
    Join("leaf0", "spine1"),
    Relay((("leaf1", "ocs0"),), ("10.0.0.1", "10.0.0.2"), ("leaf0", "ocs1")),
    Foreign("rule del pref 1"),
)


def _placed(policy, gpus, cluster=SMALL):
    state = POLICIES[policy].occupancy(cluster)
    held = POLICIES[policy].make(state, "j1", gpus)
    return state.plant, held


@pytest.mark.parametrize("body", BODIES)
def test_every_rule_is_read_as_it_was_written(body):
    rule = Rule.on("leaf0", body, "j7", 3)
    assert Rule.from_document(rule.as_document()) == rule
    assert rule.canonical() == Rule.from_document(rule.as_document()).canonical()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"generation": "one"}, "generation is 'one'"),
        ({"extra": 1}, "extra: unknown entry"),
        ({"body": {"kind": "send", "source": "10.0.0.1"}}, "next_hop is missing"),
        ({"body": {"kind": "teleport"}}, "body.kind is 'teleport'"),
        ({"body": {"kind": ["send"]}}, "body.kind is ..send"),
        ({"body": []}, "it is not a rule"),
    ],
)
def test_documents_that_are_no_rules_are_refused(change, said):
    with pytest.raises(ClusterError, match=said):
        Rule.from_document(Rule.on("leaf0", BODIES[1], "j7", 3).as_document() | change)


def test_a_job_has_one_rule_for_each_gpu_and_one_for_each_leaf():
    cluster, held = _placed("vclos", 8)
    rules = rules_of(cluster, "j1", held, PLAN, 2)
    sends = [rule for rule in rules if isinstance(rule.body, Send)]
    assert len(sends) == 8
    assert {(rule.job, rule.generation) for rule in sends} == {("j1", 2)}
    assert [rule.job for rule in rules if isinstance(rule.body, Keep)] == [NOBODY, NOBODY]
    made = {(str(one.source), str(one.next_hop)) for leaf in leaf_rules(cluster, [held], PLAN) for one in leaf.sources}
    assert {(rule.body.source, rule.body.next_hop) for rule in sends} == made
    assert rules == tuple(sorted(rules, key=lambda rule: rule.order))


def test_a_job_under_one_leaf_has_no_rules():
    cluster, held = _placed("vclos", 4)
    assert rules_of(cluster, "j1", held, PLAN, 1) == ()


def test_jobs_on_shared_links_have_rules_only_where_they_are_routed_by_source():
    cluster, held = _placed("source", 8)
    assert rules_of(cluster, "j1", held, PLAN, 1) == ()
    assert len(rules_of(cluster, "j1", held, PLAN, 1, shared=True)) == 10


def test_circuits_come_with_rules_of_switches_and_spines():
    cluster = optical_plant(leafs=4, spines=2, gpus_per_leaf=4)
    state = Occupancy(cluster)
    held = ocs_vclos(state, "j1", 16)
    rules = rules_of(cluster, "j1", held, AddressPlan.numbered(cluster), 1)
    kinds = {rule.body.kind for rule in rules}
    assert kinds == {"keep", "send", "join", "relay"}
    assert sum(isinstance(rule.body, Join) for rule in rules) == len(held.links)
    assert len({(rule.device, rule.key) for rule in rules}) == len(rules)


def test_two_rules_in_one_place_are_a_bug():
    a, b = (
        Rule.on("leaf0", Send("10.0.0.1", hop), job, 1) for job, hop in (("j1", "172.16.0.1"), ("j2", "172.16.0.3"))
    )
    with pytest.raises(PhysicsError, match="leaf0 would have two rules"):
        Book().update(WantedRules((JobRules("j1", 1, (a,)), JobRules("j2", 1, (b,)))))


def test_a_second_rule_in_the_place_of_the_right_one_is_stale():
    right = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j1", 1)
    old = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.3"), "j9", 1)
    found = changes([right], [old, right])
    assert (found.stale, found.wrong, found.missing) == ((old,), (), ())


def test_rules_that_do_not_say_whose_they_are_count_for_the_allocation_that_was_there():
    mine = Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j1", 1)
    over = Over("j1", 1, frozenset(["leaf0"]), frozenset([mine.key]))
    assert is_left(over, mine)
    assert is_left(over, Rule.on("leaf0", Send("10.0.0.1", ""), UNKNOWN, 1))
    assert not is_left(over, Rule.on("leaf0", Send("10.0.0.2", ""), UNKNOWN, 1))
    assert not is_left(over, Rule.on("leaf0", Send("10.0.0.1", "172.16.0.5"), "j1", 2))
    assert not is_left(over, Rule.on("leaf0", Keep("10.0.0.0/29")))
