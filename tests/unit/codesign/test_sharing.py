"""Partitions of a cluster, and a second panel."""

import re
from pathlib import Path

import pytest
from tiny_plans import circle

from ropewalk.codesign.question import PlanQuestion, published_servers
from ropewalk.codesign.sharing import partition, patched_ahead, patched_between, whole_wiring
from ropewalk.errors import InputError
from ropewalk.hardware.prices import price_list

PAGE = Path(__file__).parents[3] / "docs" / "wiring.md"


def test_the_manual_wires_two_jobs_and_compares_their_panels(capsys):
    _, shared = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(shared, PAGE.name, "exec"), {})
    cables, *turns = capsys.readouterr().out.splitlines()
    assert cables.startswith("((0, 1, 1)")
    (waits, cost), (waits_less, cost_of_two) = (map(float, line.split()) for line in turns)
    assert (waits, round(waits_less)) == (540, 180)
    assert cost < cost_of_two


def test_jobs_get_servers_of_their_own_and_no_cable_leaves_a_partition():
    jobs = [PlanQuestion("dlrm", published_servers(12, 5)), PlanQuestion("bert", published_servers(8, 5))]
    first, second = partition(24, jobs)
    assert (list(first.servers), list(second.servers)) == (list(range(12)), list(range(12, 20)))
    cables = whole_wiring(24, [(first, circle(12)), (second, circle(8, (1, 3)))])
    assert all((a < 12) == (b < 12) for a, b, _ in cables)
    assert max(max(a, b) for a, b, _ in cables) == 19


def test_too_many_jobs_and_mixed_ports_are_refused_together():
    jobs = [PlanQuestion("dlrm", published_servers(16)), PlanQuestion("bert", published_servers(16, 8))]
    with pytest.raises(InputError, match="2 findings"):
        partition(24, jobs)


def test_a_second_panel_hides_all_patching_but_the_first():
    runs = [3600.0, 3600.0, 3600.0]
    single = patched_between(runs, price_list(), 4, 12.5e9, patch_s=180.0)
    double = patched_ahead(runs, price_list(), 4, 12.5e9, patch_s=180.0, flip_s=0.01)
    assert single.idle_s == pytest.approx(3 * 180.0)
    assert double.idle_s == pytest.approx(180.0 + 3 * 0.01)
    assert double.cost > single.cost


def test_a_job_shorter_than_the_patching_waits_for_the_rest_of_it():
    double = patched_ahead([60.0, 60.0], price_list(), 4, 12.5e9, patch_s=180.0, flip_s=0.0)
    assert double.starts_s == pytest.approx((180.0, 360.0))
