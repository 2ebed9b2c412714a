"""FRR's own daemons on the leafs of a lab: what pbrd and zebra make of our rules is what the kernel routes by."""

import json
import shutil
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from os import geteuid, kill
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from ropewalk.lab.forwarding import hashed
from ropewalk.lab.lab import built
from ropewalk.lab.namespaces import held
from ropewalk.lab.needs import missing
from ropewalk.lab.network import LabNetwork, host_address, interface
from ropewalk.serve.rules.changes import JobRules, Over, WantedRules
from ropewalk.serve.rules.frr import FrrDriver, FrrLeafs
from ropewalk.serve.rules.lab import lab_addresses
from ropewalk.serve.rules.making import rules_of
from ropewalk.serve.rules.reach import Reach
from ropewalk.serve.rules.reconciler import Reconciler
from ropewalk.serve.rules.rule import Send
from ropewalk.tenancy.plant import plant
from ropewalk.tenancy.policies import POLICIES

PATIENCE_S = 300.0
DAEMONS = Path("/usr/lib/frr")
SMALL = plant("leaf-spine:2x4x4", gpus_per_server=1, bandwidth=2.5e6)
pytestmark = [
    pytest.mark.extras,
    pytest.mark.skipif(not (DAEMONS / "pbrd").exists(), reason="FRR is not installed: apt-get install frr"),
    pytest.mark.skipif(geteuid() != 0, reason="FRR's daemons start as root"),
]


@pytest.fixture(scope="module")
def leafs(tmp_path_factory):
    """A driver for leafs that run FRR, and a look into the kernel of each."""
    network = LabNetwork(SMALL.fabric())
    folder = tmp_path_factory.mktemp("frr")
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    with built(network, hashed(network.fabric)) as lab:
        addresses = replace(lab_addresses(SMALL, network), ports=_ports(network))

        def prefix(device):
            node = SMALL.gpus + SMALL.leaf_names.index(device)
            return ["env", f"VTY={folder / device}", "nsenter", f"--net={held(lab.process.holder, node)}"]

        with _daemons(folder, prefix):
            yield FrrDriver(FrrLeafs(SMALL, addresses), Reach(prefix, 60.0), 'vtysh --vty_socket "$VTY"')


def _ports(network):
    leaf_of = {gpu: SMALL.gpus + int(SMALL.leaf_of_gpu[gpu]) for gpu in range(SMALL.gpus)}
    by_nodes = {cable.nodes: number for number, cable in network.cables.items()}
    return {gpu: interface(by_nodes[gpu, leaf]) for gpu, leaf in leaf_of.items()}


@contextmanager
def _daemons(folder, prefix):
    started = []
    try:
        for device in SMALL.leaf_names:
            place = folder / device
            place.mkdir(mode=0o755)
            shutil.chown(place, "frr", "frr")
            for above in (*place.parents,)[:3]:
                above.chmod(above.stat().st_mode | 0o011)
            for name in ("zebra", "pbrd"):
                pid = place / f"{name}.pid"
                subprocess.run(
                    [*prefix(device), DAEMONS / name, "-d", "--vty_socket", place, "-i", pid, "-z", place / "zserv.api",
                     "-A", "127.0.0.1", "-P", "0", "--log", f"file:{place / name}.log"],
                    check=True, capture_output=True, timeout=PATIENCE_S,
                )  # fmt: skip
                started.append(pid)
        yield
    finally:
        for sign in (SIGTERM, SIGKILL):
            for pid in started:
                with suppress(OSError, ValueError):
                    kill(int(pid.read_text()), sign)
            time.sleep(0.2)


def _wanted(generation=1, gpus=8):
    def rules(driver):
        state = POLICIES["vclos"].occupancy(SMALL)
        held_by = POLICIES["vclos"].make(state, "j1", gpus)
        return rules_of(SMALL, "j1", held_by, driver.leafs.addresses, generation)

    return rules


def _uplinks(driver, rules):
    """Where the kernel sends a packet of each NIC that came in over its port, and where it should."""
    found = {}
    for rule in rules:
        if not isinstance(rule.body, Send):
            continue
        gpu = next(gpu for gpu in range(8) if host_address(gpu) == rule.body.source)
        there, near = (gpu + 4) % 8, gpu // 4 * 4 + (gpu + 1) % 4
        for to in (there, near):
            line = (
                f"ip -json route get {host_address(to)} from {rule.body.source} iif {driver.leafs.addresses.ports[gpu]}"
            )
            answer = json.loads(driver.reach.run(rule.device, f"{line}\n"))[0]
            found[gpu, to] = answer.get("gateway"), rule.body.next_hop if to == there else "local"
    return found


def _settled(driver, rules):
    """FRR tells the kernel a moment after it has answered."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = _uplinks(driver, rules)
        if all((gateway == wanted) == (wanted != "local") for gateway, wanted in found.values()):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.05)


def test_the_kernel_routes_as_the_rules_say_and_what_is_local_stays(leafs):
    rules = _wanted()(leafs)
    reconciler = Reconciler([leafs])
    report = reconciler.once(WantedRules((JobRules("j1", 1, rules),)))
    assert not report.failed
    assert report.ready == {("j1", 1)}
    assert len(_settled(leafs, rules)) == 16
    assert reconciler.once(WantedRules((JobRules("j1", 1, rules),))).quiet


def test_a_rule_removed_by_hand_comes_back_and_a_foreign_one_goes(leafs):
    rules = _wanted()(leafs)
    wanted = WantedRules((JobRules("j1", 1, rules),))
    reconciler = Reconciler([leafs])
    reconciler.once(wanted)
    by_hand = (
        "no pbr-map ROPEWALK seq 11\nnexthop-group ropewalk-j77-g1-10.0.0.130\n nexthop 172.16.0.17\nexit\n"
        "pbr-map ROPEWALK seq 300\n match src-ip 10.0.0.77/32\n set nexthop 172.16.0.17\nexit\n"
    )
    leafs._tell("leaf0", by_hand.splitlines())
    report = reconciler.once(wanted)
    assert len(report.added) == 1
    assert len(report.removed) >= 2
    assert not report.failed
    _settled(leafs, rules)
    assert reconciler.once(wanted).quiet


def test_a_new_generation_takes_the_place_of_the_old_one_and_the_end_leaves_nothing(leafs):
    first = _wanted()(leafs)
    second = tuple(
        replace(rule, generation=2, body=Send(rule.body.source, _next(leafs, rule.body.next_hop)))
        if isinstance(rule.body, Send)
        else rule
        for rule in first
    )
    reconciler = Reconciler([leafs])
    reconciler.once(WantedRules((JobRules("j1", 1, first),)))
    report = reconciler.once(
        WantedRules((JobRules("j1", 2, second),), (Over("j1", 1, frozenset(SMALL.leaf_names), frozenset()),))
    )
    assert not report.failed
    assert report.ready == {("j1", 2)}
    _settled(leafs, second)
    reconciler.once(WantedRules())
    assert all(leafs.present(device).rules == () for device in leafs.devices())
    shown = leafs.reach.run("leaf0", 'vtysh --vty_socket "$VTY" -c "show running-config"\n')
    assert "ropewalk" not in shown.lower()


def _next(driver, hop):
    """The next spine of the same leaf."""
    hops = driver.leafs.addresses.next_hops
    ((leaf, spine, cable),) = (one for one, address in hops.items() if str(address) == hop)
    return str(hops[leaf, (spine + 1) % 4, cable])
