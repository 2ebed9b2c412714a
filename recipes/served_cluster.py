"""`ropewalk serve` on a real network: eight hosts, two leafs, four spines, as namespaces of this machine.

    python recipes/served_cluster.py [--short] [--json FILE]

Jobs come and go through the API, and the Linux driver puts their rules on the leafs. Their traffic is measured alone,
beside neighbours, while neighbours come and go, and under the kernel's ECMP; then links die, rules are removed by hand
and the service is killed, while a job runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from threading import Event, Thread
from typing import Any

from ropewalk.lab.answer import LabAnswer
from ropewalk.lab.collective import collective_work
from ropewalk.lab.job import LabWork
from ropewalk.lab.question import LabQuestion
from served_lab import ACT, COLLECTIVE, LONGEST_S, Served, Tenant, lab_of, routes_of, run_jobs, served, until

SHAPE, BANDWIDTH, PERIOD_S = "leaf-spine:2x4x4", "20Mbps", 1.0


@dataclass
class Row:
    """One kind of run: predicted beside measured, per job."""

    what: str
    predicted_s: list[float]
    measured_s: list[float]
    strayed: int
    disturbed: int


@dataclass
class Study:
    """Everything that was seen."""

    rows: list[Row] = field(default_factory=list)
    rules_in_place_s: list[float] = field(default_factory=list)
    """From the answer to a submission to all rules in place."""
    back_s: list[float] = field(default_factory=list)
    """Until a rule that was removed by hand was back."""
    moved: dict[str, Any] = field(default_factory=dict)
    killed: dict[str, Any] = field(default_factory=dict)
    churn: int = 0
    """Jobs that came and went while one was measured."""


def study(folder: Path, *, size_bytes: int = 2_000_000, repeats: int = 3, draws: int = 12) -> Study:
    """All of it; `draws` is how many pairs of jobs run under ECMP."""
    found = Study()
    with served(folder, SHAPE, BANDWIDTH, PERIOD_S) as cluster:
        first, second = neighbours(cluster, found)
        for what, tenants in (("first alone", [first]), ("second alone", [second]), ("both", [first, second])):
            found.rows.append(row(what, run(cluster, tenants, size_bytes, repeats)))
        cluster.end(second.id)
        with coming_and_going(cluster, found):
            found.rows.append(row("first, others come and go", run(cluster, [first], size_bytes, repeats)))
        found.back_s = removed_by_hand(cluster, first, repeats + 2)
        found.killed = killed_while_it_runs(cluster, first, size_bytes)
        found.moved = link_dies_while_it_runs(cluster, first, size_bytes)
    with lab_of(folder, SHAPE, BANDWIDTH, "ecmp") as (lab, plant):
        for tenants in placements(draws):
            hosts = " ".join(str(host) for host in tenants[0].hosts)
            answer = run_jobs(lab, plant, tenants, size_bytes, 1, hashed=True)
            found.rows.append(row(f"both under ECMP, first on {hosts}", answer))
    return found


def placements(count: int) -> list[list[Tenant]]:
    """Two jobs with two hosts on each leaf: which flows the hash lays together depends on which hosts they are."""
    pairs = list(combinations(range(4), 2))
    chosen = Random(1).sample([(near, far) for near in pairs for far in pairs], count)
    found = []
    for near, far in chosen:
        first = (*near, *(4 + host for host in far))
        second = tuple(host for host in range(8) if host not in first)
        found.append([Tenant("first", first, {}), Tenant("second", second, {})])
    return found


def neighbours(cluster: Served, found: Study) -> tuple[Tenant, Tenant]:
    """Two jobs of four hosts that share both leafs, because others were there when they came."""
    others = [cluster.submit(f"small-{number}", 2) for number in range(4)]
    cluster.end(others[1], others[3])
    first = placed(cluster, found, "first")
    cluster.end(others[0], others[2])
    return first, placed(cluster, found, "second")


def placed(cluster: Served, found: Study, name: str) -> Tenant:
    job = cluster.submit(name, 4)
    began = time.perf_counter()
    tenant = cluster.ready(job)
    found.rules_in_place_s.append(time.perf_counter() - began)
    return tenant


def run(cluster: Served, tenants: list[Tenant], size_bytes: int, repeats: int) -> LabAnswer:
    return run_jobs(cluster.lab, cluster.plant, tenants, size_bytes, repeats)


def row(what: str, answer: LabAnswer) -> Row:
    assert not answer.wrong, answer.wrong
    times = answer.group_times()
    strayed = 0 if answer.taken is None else len(answer.taken.strayed)
    disturbed = len(answer.runs) - len(answer.trusted)
    return Row(what, [one for one, _ in times], [one for _, one in times], strayed, disturbed)


@contextmanager
def coming_and_going(cluster: Served, found: Study) -> Iterator[None]:
    """Jobs of two and four hosts are submitted, get their rules and end, all the time."""
    over = Event()
    other = Served.__new__(Served)
    other.__dict__.update(cluster.__dict__)
    other.connect()

    def live() -> None:
        while not over.is_set():
            for gpus in (4, 2, 2):
                job = other.submit("passing", gpus)
                other.ready(job)
                other.end(job)
                found.churn += 1

    thread = Thread(target=live, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def removed_by_hand(cluster: Served, tenant: Tenant, times: int) -> list[float]:
    """How long it takes until a rule is back, at moments that have nothing to do with the period."""
    seen, host = [], tenant.hosts[0]
    leaf = int(cluster.plant.leaf_of_gpu[host])
    source = f"from 10.0.0.{128 + host} "
    for number in range(times):
        time.sleep(PERIOD_S * (0.3 + 0.17 * number))
        cluster.in_leaf(leaf, "ip", "rule", "del", "pref", "21000", "from", f"10.0.0.{128 + host}")
        seen.append(until(lambda: source in cluster.rules_by_hand(leaf), LONGEST_S))
    return seen


def work_of(cluster: Served, tenant: Tenant, size_bytes: int) -> LabWork:
    question = LabQuestion(COLLECTIVE, ACT, size_bytes, groups=(tenant.hosts,))
    return collective_work(
        cluster.lab.network, routes_of(cluster.plant, [tenant], cluster.lab.network.fabric), question
    )


def timed_runs(cluster: Served, tenant: Tenant, size_bytes: int, meanwhile: Callable[[], None]) -> tuple[float, float]:
    """One run in peace and one during which something happens after a third of it, in seconds."""
    work = work_of(cluster, tenant, size_bytes)
    with cluster.lab.process.beside() as process, cluster.lab.fair(work.job.connections, work.routes):
        process.connect(work.job)
        process.run(LONGEST_S)
        quiet = process.run(LONGEST_S)
        failed: list[BaseException] = []

        def act() -> None:
            time.sleep(quiet.seconds / 3)
            try:
                meanwhile()
            except BaseException as problem:
                failed.append(problem)

        thread = Thread(target=act, daemon=True)
        thread.start()
        changed = process.run(LONGEST_S)
        thread.join()
        assert not failed, failed
        assert not changed.wrong, changed.wrong
    return quiet.seconds, changed.seconds


def killed_while_it_runs(cluster: Served, tenant: Tenant, size_bytes: int) -> dict[str, Any]:
    """kill -9 in the middle of a run, and of a submission; the next process converges."""
    before = [cluster.rules_by_hand(leaf) for leaf in range(cluster.plant.leafs)]
    quiet_s, killed_s = timed_runs(cluster, tenant, 2 * size_bytes, cluster.kill)
    assert before == [cluster.rules_by_hand(leaf) for leaf in range(cluster.plant.leafs)]
    start_s = cluster.start()
    job = cluster.submit("half-way", 4)
    cluster.kill()
    cluster.start()
    began = time.perf_counter()
    cluster.ready(job)
    ready_s = time.perf_counter() - began
    report = cluster.ask("POST", "/v1/reconcile", {})
    cluster.end(job)
    return {
        "quiet_s": quiet_s, "killed_s": killed_s, "restart_s": start_s, "half_way_job_ready_s": ready_s,
        "left_to_do": sum(len(report[key]) for key in ("added", "removed", "repaired", "failed")),
    }  # fmt: skip


def link_dies_while_it_runs(cluster: Served, tenant: Tenant, size_bytes: int) -> dict[str, Any]:
    """A cable of the job goes down in the middle of a run: it gets other links, and the run ends."""
    leaf = int(cluster.plant.leaf_of_gpu[tenant.hosts[0]])
    spine = tenant.spine_of_host[tenant.hosts[0]]
    cable = cluster.cable(leaf, spine)
    until(lambda: not cluster.ask("GET", "/v1/status")["jobs"]["releasing"], LONGEST_S)
    took: dict[str, Any] = {}

    def cut() -> None:
        with cluster.lab.process.beside() as process:
            replace(cluster.lab, process=process).cut(cable)
        began = time.perf_counter()
        moved = cluster.ready(tenant.id, generation=2)
        took["moved_s"] = time.perf_counter() - began
        took["spines"] = sorted(set(moved.spine_of_host.values()))

    quiet_s, cut_s = timed_runs(cluster, tenant, 4 * size_bytes, cut)
    again = row("first, on other links", run(cluster, [cluster.tenant(tenant.id)], size_bytes, 1))
    return {
        "link": f"{cluster.plant.leaf_names[leaf]}-{cluster.plant.spine_names[spine]}",
        "spines_before": sorted(set(tenant.spine_of_host.values())), "spines_after": took["spines"],
        "rules_moved_s": took["moved_s"], "quiet_s": quiet_s, "cut_s": cut_s, "afterwards": asdict(again),
    }  # fmt: skip


def said(found: Study) -> str:
    """The tables of docs/operate.md."""
    alone = median([*found.rows[0].measured_s, *found.rows[1].measured_s])
    lines = ["| run | predicted s | measured s | against alone |", "|---|--:|--:|--:|"]
    for one in found.rows:
        predicted, seen = (", ".join(f"{time:.3f}" for time in times) for times in (one.predicted_s, one.measured_s))
        worst = max(one.measured_s) / alone - 1
        note = f" ({one.disturbed} runs disturbed)" if one.disturbed else ""
        note += f" ({one.strayed} flows strayed)" if one.strayed else ""
        lines.append(f"| {one.what}{note} | {predicted} | {seen} | {100 * worst:+.1f} % |")
    slow = [max(one.measured_s) / alone - 1 for one in found.rows if "ECMP" in one.what]
    lines += ["", f"ECMP costs the slower job {100 * median(slow):.0f} % (median of {len(slow)} placements), at most "
              f"{100 * max(slow):.0f} %, at least {100 * min(slow):.0f} %"]  # fmt: skip
    place, back = found.rules_in_place_s, found.back_s
    lines += [
        "",
        f"rules in place {1000 * median(place):.0f} ms after the answer to a submission (median of {len(place)}, at "
        f"most {1000 * max(place):.0f})",
        f"{found.churn} jobs came and went meanwhile",
        f"a rule removed by hand was back after {median(back):.2f} s (median of {len(back)}, at most {max(back):.2f}; "
        f"period {PERIOD_S:g} s)",
        f"kill -9: {json.dumps(found.killed)}",
        f"dead link: {json.dumps(found.moved)}",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="fewer runs and hashes")
    parser.add_argument("--json", type=Path, help="write everything that was seen here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = study(Path(folder), repeats=1, draws=1) if given.short else study(Path(folder))
    print(said(found))
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=1))


if __name__ == "__main__":
    main()
