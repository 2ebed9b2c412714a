from dataclasses import replace

import pytest

from ropewalk.export.cluster import AddressPlan
from ropewalk.serve.rules.driver import DriverError
from ropewalk.serve.rules.frr import FrrDriver, FrrLeafs
from ropewalk.serve.rules.frr_config import rules_in, state_in
from ropewalk.serve.rules.rule import Foreign, Keep, Rule, Send
from ropewalk.tenancy.plant import plant

SMALL = plant("leaf-spine:2x4x4", gpus_per_server=1)
PLAN = replace(AddressPlan.numbered(SMALL), ports={gpu: f"swp{gpu % 4 + 1}" for gpu in range(8)})
LEAFS = FrrLeafs(SMALL, PLAN)
RULES = [
    Rule.on("leaf0", Keep("10.0.0.0/29")),
    Rule.on("leaf0", Send("10.0.0.1", "172.16.0.1"), "j5", 2),
    Rule.on("leaf0", Send("10.0.0.3", "172.16.0.3"), "j6", 1),
]
RUNNING = """frr version 8.4.4
hostname leaf0
!
interface swp1
 ip address 10.0.0.254/29
 pbr-policy ROPEWALK
exit
!
interface swp2
 pbr-policy ROPEWALK
exit
interface swp3
 pbr-policy ROPEWALK
exit
interface swp4
 pbr-policy ROPEWALK
exit
!
nexthop-group ropewalk-j5-g2-10.0.0.1
 nexthop 172.16.0.1
exit
!
nexthop-group somebody-elses
 nexthop 1.2.3.4
exit
!
pbr-map OTHERS seq 5
 match src-ip 10.0.0.9/32
 set nexthop 1.2.3.4
exit
!
pbr-map ROPEWALK seq 1
 match dst-ip 10.0.0.0/29
 set vrf default
exit
!
pbr-map ROPEWALK seq 10
 match src-ip 10.0.0.1/32
 set nexthop-group ropewalk-j5-g2-10.0.0.1
exit
!
end
"""


def _read(text):
    return list(rules_in(state_in(text), "leaf0", LEAFS.ports("leaf0")))


def test_a_running_configuration_says_whose_rules_it_has():
    assert _read(RUNNING) == RULES[:2]


def test_what_is_written_is_read_back():
    text = LEAFS.written("leaf0", RULES)
    assert sorted(_read(text), key=str) == sorted(RULES, key=str)
    assert LEAFS.written("leaf0", RULES) == text


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("set vrf default", "set vrf red", "no pbr-map ROPEWALK seq 1"),
        (" match src-ip 10.0.0.1/32\n", "", "no pbr-map ROPEWALK seq 10"),
        ("match src-ip 10.0.0.1/32", "match src-ip 10.0.0.2/32", "no pbr-map ROPEWALK seq 10"),
        ("pbr-map OTHERS seq 5\n", "nexthop-group ropewalk-j1-g1-10.0.0.2\nexit\npbr-map OTHERS seq 5\n",
         "no nexthop-group ropewalk-j1-g1-10.0.0.2"),
    ],
)  # fmt: skip
def test_what_somebody_changed_by_hand_is_foreign(old, new, left):
    assert Foreign(left) in [rule.body for rule in _read(RUNNING.replace(old, new))]


def test_a_port_without_the_policy_makes_the_leafs_own_rule_missing():
    text = RUNNING.replace("interface swp3\n pbr-policy ROPEWALK\n", "interface swp3\n")
    assert _read(text) == RULES[1:2]


def test_a_group_with_two_next_hops_is_wrong():
    text = RUNNING.replace(" nexthop 172.16.0.1\n", " nexthop 172.16.0.1\n nexthop 172.16.0.5\n")
    assert _read(text)[1].body == Send("10.0.0.1", "")


class Vtysh:
    """A device that prints a configuration and refuses what it is told to."""

    settles_s = 3.0

    def __init__(self, text, answer=""):
        self.text, self.answer, self.told = text, answer, []

    def run(self, device, script):
        if "show running-config" in script:
            return self.text
        self.told.append(script)
        return self.answer


def test_a_move_sets_the_new_group_before_the_old_one_goes():
    device = Vtysh(RUNNING)
    FrrDriver(LEAFS, device).apply("leaf0", [replace(RULES[1], generation=3, body=Send("10.0.0.1", "172.16.0.5"))])
    lines = device.told[0].splitlines()
    order = [lines.index(line) for line in (
        "nexthop-group ropewalk-j5-g3-10.0.0.1", "pbr-map ROPEWALK seq 10",
        "no nexthop-group ropewalk-j5-g2-10.0.0.1",
    )]  # fmt: skip
    assert order == sorted(order)


def test_what_frr_refuses_is_an_error():
    with pytest.raises(DriverError, match="FRR refused 'line 3: % Unknown command"):
        FrrDriver(LEAFS, Vtysh(RUNNING, "line 3: % Unknown command: pbr-map")).apply("leaf0", RULES)


SHOWN = """  pbr-map ROPEWALK valid: yes
    Seq: 1 rule: 300
        Installed: 15(33) Reason: Valid
        DST IP Match: 10.0.0.0/29
        VRF Lookup: default
    Seq: 10 rule: 309
        Installed: {}(31) Reason: {}
        SRC IP Match: 10.0.0.1/32
        Nexthop-Group: ropewalk-j5-g2-10.0.0.1
          Installed: 1(1) Tableid: 10001
"""


@pytest.mark.parametrize(
    ("bits", "reason", "there"),
    [(15, "Valid", RULES[:2]), (0, "Valid", RULES[:1]), (7, "Valid", RULES[:1]), (0, "Invalid NH-group", RULES[:2])],
)
def test_a_valid_rule_that_the_kernel_does_not_have_on_all_ports_is_missing(bits, reason, there):
    """Without a next hop that is alive there is nothing to install, and nothing to repair."""
    assert _read(RUNNING + SHOWN.format(bits, reason)) == there


class Forgetful(Vtysh):
    """FRR that takes a rule for valid and does not install it until its place is taken away first."""

    def run(self, device, script):
        said = super().run(device, script)
        if "show running-config" not in script:
            return said
        reset = any("no pbr-map ROPEWALK seq 10\n" in told for told in self.told)
        return said + SHOWN.format(15 if reset else 0, "Valid")


def test_a_rule_that_frr_loses_on_its_way_to_the_kernel_is_set_anew(monkeypatch):
    monkeypatch.setattr("ropewalk.serve.rules.frr.SETTLES_S", 0.0)
    device = Forgetful(RUNNING)
    driver = FrrDriver(LEAFS, device)
    assert driver.present("leaf0").rules == (RULES[0],)
    driver.apply("leaf0", [RULES[1]])
    assert driver.present("leaf0").rules == tuple(RULES[:2])
    again = driver.leafs.setting(state_in(RUNNING + SHOWN.format(15, "Valid")), "leaf0", RULES[1])
    assert "no pbr-map ROPEWALK seq 10" not in list(again), "what is installed is never touched"
