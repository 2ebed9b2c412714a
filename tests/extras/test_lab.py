"""Labs on the kernel of this machine: packets arrive, faults act, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from ropewalk.collectives.act import Act
from ropewalk.errors import LabError
from ropewalk.fabric import Circulant, LeafSpine, Ring, Torus
from ropewalk.fabric.files import read_fabric
from ropewalk.lab import state as labs
from ropewalk.lab.changes import require_whole
from ropewalk.lab.collective import collective_work
from ropewalk.lab.faults import DOWN, UP, Fault, cause
from ropewalk.lab.forwarding import every_pair, hashed, pinned
from ropewalk.lab.gloo import measured_gloo
from ropewalk.lab.job import LabWork, job_of_graph
from ropewalk.lab.lab import built
from ropewalk.lab.lifecycle import bring_up, opened, rewire, routes_in, take_down
from ropewalk.lab.measure import measured
from ropewalk.lab.namespaces import held, inside
from ropewalk.lab.needs import missing
from ropewalk.lab.network import LabNetwork, host_address
from ropewalk.lab.process import needs_user_namespace
from ropewalk.lab.question import LabQuestion
from ropewalk.lab.request import LabRequest, routes_by_name
from ropewalk.lab.timed import timed_fault
from ropewalk.routing.coin_routes import coin_change_routes
from ropewalk.routing.k_shortest import k_shortest
from ropewalk.task import Sketch

pytestmark = pytest.mark.extras
PATIENCE_S = 300.0
"""Before something is taken for lost: the machine may be busy with other things."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    monkeypatch.setenv(labs.FOLDER, str(tmp_path))
    yield tmp_path
    for name in labs.names():
        take_down(name)


def request(builder, name="test", routing="default"):
    fabric = builder.build()
    return LabRequest(name, builder.expression, LabNetwork(fabric), *routes_by_name(fabric, routing))


def arrives(lab, src, dst, path=0, size=1000, within_s=PATIENCE_S):
    """Send a datagram from host to host, and wait for it."""
    with inside(held(lab.process.holder, dst)):
        taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taker.bind((host_address(dst, path), 9000))
    with inside(held(lab.process.holder, src)):
        giver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        giver.bind((host_address(src, path), 0))
    with taker, giver:
        taker.settimeout(within_s)
        try:
            giver.sendto(bytes(size), (host_address(dst, path), 9000))
            return len(taker.recv(65536)) == size
        except OSError:
            return False


needs_root = pytest.mark.skipif(needs_user_namespace(), reason="a test with threads enters namespaces of root only")


@needs_root
@pytest.mark.parametrize("routing", ["dimension-rotated", "hash"])
def test_packets_take_the_routes_they_were_given(routing):
    fabric = Torus((3, 3), 2.5e6).build()
    _, routes = routes_by_name(fabric, routing)
    forwarding = hashed(fabric) if routes is None else pinned(routes)
    with built(LabNetwork(fabric), forwarding) as lab:
        for path in range(forwarding.paths):
            before = lab.counters()
            assert arrives(lab, 0, 4, path)
            after = lab.counters()
            used = {link for link in after if after[link].sent_bytes > before[link].sent_bytes + 1000}
            if routes is None:
                assert len(used) == 2
                continue
            row = routes.path_start[routes.find(0, 4)[0]] + path
            assert used == set(routes.link[routes.link_start[row] : routes.link_start[row + 1]].tolist())


@needs_root
def test_faults_cut_slow_and_restore_links():
    bring_up(request(Ring(3, 2.5e6)))
    with opened("test") as (_, lab):
        assert arrives(lab, 0, 1)
        cause("test", Fault("h0-h1", DOWN))
        assert not arrives(lab, 0, 1, within_s=1.0)
        assert arrives(lab, 1, 2)
        cause("test", Fault("h0->h2", 1.25e5))
        cause("test", Fault("h0-h1", UP))
        assert arrives(lab, 0, 1)
    assert labs.read("test").cut == ()
    assert labs.read("test").slowed == ((5, 1_000_000),)


@needs_root
def test_circuits_change_while_others_carry_on(tmp_path):
    before, after = tmp_path / "before.yaml", tmp_path / "after.yaml"
    before.write_text("hosts: [a, b, c, d]\nlinks:\n- [a, b, 20Mbps]\n- [b, c, 20Mbps]\n- [c, d, 20Mbps]\n")
    after.write_text("hosts: [a, b, c, d]\nlinks:\n- [d, a, 20Mbps]\n- [a, b, 10Mbps]\n- [c, d, 20Mbps]\n")
    first, second = read_fabric(before), read_fabric(after)
    bring_up(LabRequest("test", "before", LabNetwork(first), *routes_by_name(first, "default")))
    with opened("test") as (_, lab):
        assert arrives(lab, 1, 2)
        hops = lab.counters()
    fast = replace(second, bandwidth=second.bandwidth * 1000)
    with pytest.raises(LabError, match="give its links the bandwidth of the lab's links, 20 Mbps"):
        rewire("test", fast, *routes_by_name(fast, "default"), dark_s=0.0)
    rewire("test", second, *routes_by_name(second, "default"), dark_s=0.1)
    assert (labs.read("test").numbers, labs.read("test").source) == ((3, 0, 2), second.name)
    with opened("test") as (_, lab):
        assert lab.network.rate_bits(2) == 10_000_000
        assert arrives(lab, 1, 2)
        counted = lab.counters()
        assert all(counted[link].sent_bytes > 1000 for link in (1, 3, 5))  # b to a to d to c
        assert len(hops) == len(counted) == 6
        assert all(arrives(lab, src, dst) for src in range(4) for dst in range(4) if src != dst)


def test_a_lab_in_a_user_namespace_is_built_changed_and_removed(folder, monkeypatch):
    monkeypatch.setattr("ropewalk.lab.process.needs_user_namespace", lambda: True)
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    state = bring_up(request(Ring(3, 2.5e6), routing="hash"))
    assert Path(f"/proc/{state.holder.pid}/ns/user").stat().st_ino != Path("/proc/self/ns/user").stat().st_ino
    cause("test", Fault("h0-h1", 1.25e5))
    with opened("test") as (_, lab):
        assert len(lab.counters()) == 6
    take_down("test")
    assert not processes_of(folder)


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv takes capabilities away")
def test_root_of_a_container_without_the_rights_runs_a_job_in_a_user_namespace(folder):
    """As in Docker's default: root, but neither CAP_SYS_ADMIN nor CAP_NET_ADMIN."""
    fewer = ["setpriv", "--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]
    code = "from ropewalk.lab.needs import missing; print('; '.join(missing()))"
    lacks = subprocess.run([*fewer, sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    if lacks.strip():
        assert lacks.startswith("root without CAP_SYS_ADMIN and CAP_NET_ADMIN may not create user")
        pytest.skip(lacks)
    run = [sys.executable, "-m", "ropewalk", "lab", "run", "ring:3", "--size", "100kB", "--repeats", "1"]
    told = subprocess.run([*fewer, *run], capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
    assert "every result was correct" in told
    assert "every flow took its route" in told
    assert not processes_of(folder)


def processes_of(folder: Path) -> list[str]:
    """Processes whose command line names a lab of this test."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [words] if "ropewalk.lab" in words and str(folder) in words else []
    return found


def test_two_labs_do_not_meet_and_going_down_leaves_nothing(folder):
    first, second = (
        bring_up(request(Ring(3, 2.5e6), "one")),
        bring_up(request(LeafSpine(2, 2, 2, bandwidth=2.5e6), "two")),
    )
    assert not set(first.inodes) & set(second.inodes)
    assert labs.names() == ["one", "two"]
    take_down("one")
    assert labs.read("two").holder.alive
    take_down("two")
    assert labs.names() == []
    assert not processes_of(folder)


@pytest.mark.parametrize("whole", [True, False], ids=["document whole", "document lost"])
def test_after_the_holder_or_its_document_is_lost_nothing_stays(folder, whole):
    state = bring_up(request(Ring(3, 2.5e6)))
    if whole:
        os.kill(state.holder.pid, signal.SIGKILL)
    else:
        labs.remove("test")
    take_down("test")
    assert labs.names() == []
    assert not processes_of(folder)
    again = bring_up(request(Ring(3, 2.5e6)))
    assert again.holder.alive


def test_a_command_that_is_killed_while_it_builds_leaves_no_process(folder):
    script = (
        "from ropewalk.fabric import Ring\nfrom ropewalk.lab.network import LabNetwork\n"
        "from ropewalk.lab.forwarding import hashed\nfrom ropewalk.lab.lab import built\n"
        "fabric = Ring(4, 2.5e6).build()\n"
        f"with built(LabNetwork(fabric), hashed(fabric), {str(folder / 'x.json')!r}):\n"
        "    print('up', flush=True)\n    import time; time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    assert any("hold" in words for words in processes_of(folder))
    process.kill()
    process.wait()
    deadline = time.monotonic() + PATIENCE_S
    while any("hold" in words for words in processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any("hold" in words for words in processes_of(folder))


def test_up_and_down_ten_times_leaves_nothing(folder):
    gc.collect()  # what other tests have left behind
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10):
        bring_up(request(Ring(4, 2.5e6)))
        take_down("test")
    assert not processes_of(folder)
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@pytest.mark.parametrize(
    ("builder", "collective", "routing"),
    [
        (LeafSpine(2, 2, 2, bandwidth=2.5e6), "ring", "default"),
        (LeafSpine(2, 2, 2, bandwidth=2.5e6), "halving-doubling", "hash"),
        (Torus((3, 3), 2.5e6), "hips", "default"),
        (Torus((3, 3), 2.5e6), "forest", "default"),
    ],
    ids=str,
)
def test_collectives_run_with_right_sums_over_the_predicted_links(builder, collective, routing):
    asked = request(builder, routing=routing)
    with built(asked.network, asked.tables()) as lab:
        work = collective_work(asked.network, asked.routes, LabQuestion(collective, size_bytes=300_000))
        found = measured(lab, asked.routing, work, repeats=2)
    assert not found.wrong
    assert found.taken.flows == len(work.job.connections)
    assert found.taken.strayed == ()
    for row in found.links():
        assert row.predicted_bytes <= row.sent_bytes * 1.001
        again = found.retransmitted * asked.network.settings.mtu  # on a busy machine acknowledgements come late
        assert row.sent_bytes <= row.predicted_bytes * 1.25 + 20_000 + again  # small packets, acknowledgements
        seen = found.typical_curves.of_link(row.link)
        assert seen == sorted(seen)
        assert seen[0] == 0
        assert seen[-1] >= 0.999 * row.predicted_bytes
    for flow in found.flows():
        assert flow.predicted["flow"].start_s <= flow.predicted["flow"].end_s <= found.predicted_s
        assert flow.measured.start_s <= flow.measured.end_s <= found.typical.seconds


def test_a_collective_runs_on_a_lab_that_is_up_and_stops_where_a_link_is_down(monkeypatch):
    bring_up(request(Ring(3, 2.5e6)))
    with opened("test") as (state, lab):
        work = collective_work(lab.network, routes_in(state, lab.network), LabQuestion("ring", size_bytes=30_000))
        assert not measured(lab, state.routing, work, repeats=1).wrong
    cause("test", Fault("h0-h1", DOWN))
    monkeypatch.setattr("ropewalk.lab.measure._LEAST_LIMIT_S", 2.0)
    with opened("test") as (state, lab):
        with pytest.raises(LabError, match=r"h0-h1 is down in lab test.*--link h0-h1 --up"):
            require_whole(state, lab.network, work)
        with pytest.raises(LabError, match="a connection between hosts cannot be opened"):
            measured(lab, state.routing, work, repeats=1)


def test_a_job_goes_on_over_other_circuits_when_they_change(tmp_path):
    files = tmp_path / "before.yaml", tmp_path / "after.yaml"
    for file, ring in zip(files, ("abcd", "abdc"), strict=True):
        links = "".join(f"- [{one}, {other}, 20Mbps]\n" for one, other in zip(ring, ring[1:] + ring[0], strict=True))
        file.write_text(f"hosts: [a, b, c, d]\nlinks:\n{links}")
    first, second = map(read_fabric, files)
    bring_up(LabRequest("test", "before", LabNetwork(first), *routes_by_name(first, "shortest")))
    change = Thread(target=rewire, args=("test", second, *routes_by_name(second, "shortest"), 0.1))
    with opened("test") as (state, lab):
        work = collective_work(lab.network, routes_in(state, lab.network), LabQuestion("ring", size_bytes=8_000_000))
        found = measured(  # 5 s, within which a busy machine has changed them
            lab, state.routing, work, repeats=1,
            progress=lambda done, total, doing: change.start() if doing.startswith("run 1") else None,
        )  # fmt: skip
    change.join()
    assert not found.wrong
    assert set(found.gone) == {"b->c", "c->b", "d->a", "a->d"}
    assert any("circuits changed during the run" in note for note in found.notes())
    with opened("test") as (state, lab):
        work = collective_work(lab.network, routes_in(state, lab.network), LabQuestion("ring", size_bytes=100_000))
        again = measured(lab, state.routing, work, repeats=1)
    assert not again.wrong
    assert again.taken.strayed == ()


def by_coin_change(fabric, src, dst):
    return coin_change_routes(fabric, (1, 3), src, dst)


@pytest.mark.parametrize(
    ("builder", "router"),
    [(Torus((3, 3), 2.5e6), k_shortest(3, extra_hops=1)), (Circulant(7, (1, 3), 2.5e6), by_coin_change)],
    ids=["k-shortest", "coin-change"],
)
def test_tables_of_k_shortest_paths_and_coin_changes_carry_every_flow_on_its_route(builder, router):
    fabric = builder.build()
    routes = router(fabric, *every_pair(fabric))
    with built(LabNetwork(fabric), pinned(routes)) as lab:
        work = collective_work(lab.network, routes, LabQuestion("mesh", size_bytes=100_000))
        found = measured(lab, "listed", work, repeats=1)
    assert not found.wrong
    assert found.taken.flows == len(work.job.connections) >= routes.pairs
    assert found.taken.strayed == ()


@needs_root
@pytest.mark.parametrize("act", [Act.ALL_REDUCE, Act.BROADCAST])
def test_gloo_sends_what_is_predicted_and_its_numbers_are_right(act):
    pytest.importorskip("torch")
    asked = request(LeafSpine(2, 2, 2, bandwidth=2.5e6))
    groups = ((0, 2), (1, 3)) if act is Act.ALL_REDUCE else ()
    with built(asked.network, asked.tables()) as lab:
        question = LabQuestion("ring", act, 300_000, repeats=1, groups=groups)
        before = lab.process.retransmitted()
        found = measured_gloo(lab, asked.routes, question)
        again = (lab.process.retransmitted() - before) * asked.network.settings.mtu
    assert found.wrong == ()
    assert len(found.measured) == (2 if groups else 1)
    for row in found.links():
        assert row.predicted_bytes <= row.sent_bytes * 1.001
        assert row.sent_bytes <= row.predicted_bytes * 1.05 + 20_000 + again  # acknowledgements


def test_a_cable_that_comes_back_lets_a_job_end_and_one_that_does_not_is_named(monkeypatch):
    monkeypatch.setattr("ropewalk.lab.measure._SURE_S", 1.5)
    asked = request(Ring(3, 2.5e6))
    # One second in which a busy machine has cut the cable, and one for which it is down.
    work = collective_work(asked.network, asked.routes, LabQuestion("ring", size_bytes=4_000_000))
    with built(asked.network, asked.tables()) as lab:
        fault = timed_fault("h0-h1 down at 0.1s up at 1.6s")
        found = measured(lab, asked.routing, work, repeats=1, faults=[fault])
        assert not found.wrong
        assert found.predicted_s == pytest.approx(1.116 + 1.5, abs=0.01)  # so much more than undisturbed
        assert found.typical.seconds > 1.6
        names = asked.network.fabric.node_names
        graph = work.job.graph
        assert {(names[graph.place[task]], names[graph.peer[task]]) for task, *_ in found.typical.stalls} >= {
            ("h0", "h1")
        }
        with pytest.raises(LabError, match=r"h0 to h1 since .*h0-h1 is down from 100 ms on: let it come up again"):
            measured(lab, asked.routing, work, repeats=1, faults=[timed_fault("h0-h1 down at 0.1s")])
        assert not measured(lab, asked.routing, work, repeats=1).wrong  # the lab is whole again


def test_a_task_graph_computes_by_waiting_and_sends_for_real():
    sketch, asked = Sketch(), request(Ring(3, 2.5e6), routing="shortest")
    computed = sketch.compute(0, 0.2)
    sent = sketch.transfer(0, 1, 50_000, after=[computed])
    sketch.transfer(1, 2, 50_000, after=[sent])
    job = job_of_graph(sketch.graph(), asked.routes, {}, "cubic")
    with built(asked.network, asked.tables()) as lab:
        found = measured(lab, asked.routing, LabWork("sketch", {}, job, asked.routes, False, 1.0), repeats=2)
    for run in found.runs:
        assert run.end[computed] >= 0.2
        assert run.start[sent] >= run.end[computed]
        assert run.seconds >= run.end[sent]
