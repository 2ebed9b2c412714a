"""`ropewalk serve` with the Linux driver on a lab: recipes/served_cluster.py in its short form. No time is judged."""

import pytest

from ropewalk.lab import state as labs
from ropewalk.lab.lifecycle import take_down
from ropewalk.lab.needs import missing
from served_cluster import study

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    pytest.importorskip("litestar", reason="the service needs the extra `serve`")
    if lacks := missing():
        pytest.skip("; ".join(lacks))
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(labs.FOLDER, str(folder / "labs"))
        try:
            yield study(folder, size_bytes=500_000, repeats=1, draws=1)
        finally:
            for name in labs.names():
                take_down(name)


def test_every_flow_takes_the_links_of_its_job_and_no_other(seen):
    isolated = [row for row in seen.rows if "ECMP" not in row.what]
    assert [row.what for row in isolated][:3] == ["first alone", "second alone", "both"]
    assert [row.strayed for row in isolated] == [0, 0, 0, 0]
    assert seen.moved["afterwards"]["strayed"] == 0


def test_neighbours_are_predicted_to_cost_nothing_with_rules_and_much_without(seen):
    alone = seen.rows[0].predicted_s[0]
    assert seen.rows[2].predicted_s == pytest.approx([alone, alone])
    assert max(seen.rows[-1].predicted_s) > 1.5 * alone


def test_a_dead_link_moves_the_job_to_another_spine_while_it_runs(seen):
    assert seen.moved["spines_before"] == [0, 1]
    assert 0 not in seen.moved["spines_after"]


def test_rules_removed_by_hand_came_back_and_jobs_came_and_went(seen):
    assert len(seen.back_s) == 3
    assert seen.churn >= 3


def test_a_killed_service_leaves_rules_in_place_and_the_next_one_has_nothing_left_to_do(seen):
    assert seen.killed["left_to_do"] == 0
