"""From a question to an answer: every method on small fabrics, and what is said about it."""

from fractions import Fraction

import pytest

from ropewalk import synthesis
from ropewalk.collectives.mixer import Mixer, MixPlace
from ropewalk.errors import ProgramError
from ropewalk.fabric import FabricDraft, IdealSwitch, Mesh, Ring, Torus
from ropewalk.synthesis import KINDS, CollectiveQuestion

GB = 10**9


def asked(kind="allreduce", fabric=None, **options):
    return CollectiveQuestion(kind, Ring(4, bandwidth=1e9).build() if fabric is None else fabric, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_the_schedule_of_every_collective_reaches_its_optimum(kind):
    answer = synthesis.answer(asked(kind, compare=False))
    assert answer.algbw == answer.optimum.algbw
    answer.made.schedule(3).program.check()
    answer.made.schedule(3, runnable=True).program.check()


@pytest.mark.parametrize(("kind", "gigabytes"), [("allgather", Fraction(8, 3)), ("allreduce", Fraction(4, 3))])
def test_a_ring_of_four_moves_what_the_books_say(kind, gigabytes):
    answer = synthesis.answer(asked(kind, compare=False))
    assert answer.optimum.algbw == gigabytes * GB
    assert answer.inverse_rate == 4 / gigabytes


def test_weights_prove_how_near_they_are_without_the_optimum():
    answer = synthesis.answer(
        asked(fabric=Mesh((3, 3), bandwidth=1e9).build(), method="topoadopt", epsilon=0.1, compare=False)
    )
    assert Fraction(9, 10) <= answer.guarantee <= answer.algbw / answer.optimum.algbw <= 1


def test_equal_trees_are_as_many_as_were_asked_for():
    answer = synthesis.answer(asked("allgather", Torus((3, 3), bandwidth=1e9).build(), method="fixed", trees_per_root=1,
                              compare=False))  # fmt: skip
    assert answer.made.trees == 9
    assert answer.algbw <= answer.optimum.algbw


@pytest.mark.parametrize("method", ["best-ring", "breadth-first"])
def test_schedules_of_rounds_promise_what_the_simulator_finds(method):
    answer = synthesis.answer(asked(method=method))
    assert answer.simulated_algbw == pytest.approx(float(answer.algbw))
    assert answer.made.shape == f"{answer.made.depth} rounds"
    assert method not in {other.name for other in answer.alternatives}


def test_no_alternative_beats_the_optimum():
    answer = synthesis.answer(asked(fabric=Mesh((2, 3), bandwidth=1e9).build()))
    known = [other.algbw for other in answer.alternatives if other.algbw is not None]
    assert len(known) > 5
    assert max(known) <= float(answer.optimum.algbw) * (1 + 1e-9)
    assert answer.simulated_algbw <= float(answer.optimum.algbw) * (1 + 1e-9)


def test_the_fastest_of_a_size_is_the_least_of_all_and_ours_where_it_ties():
    answer = synthesis.answer(asked("alltoall", IdealSwitch(4).build(), sizes=(1000, 10**9)))
    for at in answer.by_size:
        assert at.seconds == pytest.approx(min(at.all_seconds.values()))
        assert at.name == "paths"


def test_a_slow_start_makes_the_schedule_with_fewest_rounds_the_fastest():
    answer = synthesis.answer(asked(fabric=Ring(8).build(), start_up_s=1.0, sizes=(1000,)))
    assert answer.by_size[0].name != "forest"


def test_switches_that_add_up_give_a_bound_and_no_schedule():
    plain = synthesis.answer(asked(fabric=IdealSwitch(4, bandwidth=1e9).build(), compare=False))
    answer = synthesis.answer(asked(fabric=IdealSwitch(4, bandwidth=1e9).build(), in_network=True, compare=False))
    assert answer.made is None
    assert answer.algbw == GB > plain.algbw
    assert answer.as_json()["schedule"] is None
    assert "bound" in answer.notes[0]


def test_limits_of_hosts_are_counted_and_said_not_to_be_simulated():
    answer = synthesis.answer(asked("allgather", host_limits=[1e9] * 4, sizes=(1000,)))
    assert answer.optimum.algbw == Fraction(4, 3) * GB
    assert answer.simulated_algbw is None
    assert "limits of hosts are counted, not simulated" in answer.notes
    assert answer.as_json()["bottleneck"]["limits"]


def test_unequal_shards_leave_the_alternatives_out():
    answer = synthesis.answer(asked("allgather", shards=[1, 1, 2, 0]))
    assert [other.algbw for other in answer.alternatives] == [None]
    assert "equal shards" in answer.as_json()["left_out"]["ring"]


def test_everything_that_is_wrong_with_a_question_is_said_at_once():
    with pytest.raises(ProgramError) as refused:
        asked("gather", method="magic", size_bytes=0)
    for part in ("no collective 'gather'", "no collective 'magic'", "the size is 0 bytes"):
        assert part in str(refused.value)


def test_progress_is_told_step_by_step():
    told = []
    synthesis.answer(asked(), lambda done, total, now: told.append(now))
    assert told[0] == "searching for the narrowest cut"
    assert "simulating ring" in told


def one_slow_host():
    draft = FabricDraft("star", ["a", "b", "c"])
    draft.add_switches(["s"], 1)
    draft.add_links([0, 1, 2], 3, [1e9, 2e9, 2e9])
    return draft.freeze()


def test_the_cut_of_the_answer_is_in_the_names_of_the_fabric():
    found = synthesis.answer(asked("broadcast", one_slow_host(), compare=False)).as_json()["bottleneck"]
    assert (found["hosts"], found["links"], found["capacity_bytes_per_s"]) == (["a"], ["a->s"], 1e9)
    assert found["alone"]


def test_trees_of_very_uneven_rates_are_promised_but_not_simulated():
    draft = FabricDraft("uneven")
    draft.add_hosts(["a", "b", "c"])
    draft.add_links([0, 1, 2], [1, 2, 0], [1e12, 1e3 + 1, 1e9 + 7])
    answer = synthesis.answer(asked("broadcast", draft.freeze(), size_bytes=10**12))
    assert answer.algbw == answer.optimum.algbw
    assert answer.simulated_algbw is None


def test_trees_promise_no_more_than_their_busiest_rank_adds_and_keep_it():
    fast, slow = (asked(mixer=Mixer(rate), size_bytes=10**9, start_up_s=0.0) for rate in (1e12, 0.3e9))
    assert synthesis.answer(fast).algbw == synthesis.answer(asked(compare=False)).algbw
    answer = synthesis.answer(slow)
    assert answer.algbw == pytest.approx(0.3e9 * 4 / 3)
    assert 0.97 * float(answer.algbw) < answer.simulated_algbw <= float(answer.algbw) * (1 + 1e-9)
    free = {other.name: other.algbw for other in synthesis.answer(asked(size_bytes=10**9)).alternatives}
    assert all(other.algbw < free[other.name] for other in answer.alternatives if other.algbw is not None)


def test_gathering_has_nothing_to_add():
    slow = synthesis.answer(asked("allgather", mixer=Mixer(1.0), size_bytes=10**6))
    assert slow.algbw == slow.optimum.algbw


def test_switches_that_add_slowly_bound_what_is_reduced_in_the_network():
    star = IdealSwitch(4, bandwidth=1e9).build()
    quick, slow, gathered = (
        synthesis.answer(asked(kind, star, in_network=True, mixer=Mixer(rate, MixPlace.NETWORK), size_bytes=10**9))
        for kind, rate in (("allreduce", 1e12), ("allreduce", 1e9), ("allgather", 1e6))
    )
    assert quick.seconds == 1.0
    assert slow.seconds == 3.0
    assert 0.9e9 < quick.simulated_algbw <= 1e9
    assert slow.simulated_algbw == pytest.approx(1e9 / 4, rel=0.05)
    assert {other.name: other.algbw for other in slow.alternatives} == {
        other.name: other.algbw for other in quick.alternatives
    }
    assert gathered.seconds == 0.75


@pytest.mark.parametrize(
    ("options", "remedy"),
    [({"in_network": True, "mixer": Mixer(1e9)}, "network:1GB/s"), ({"mixer": Mixer(1, MixPlace.NETWORK)}, "in-net")],
)
def test_who_adds_up_must_be_there(options, remedy):
    with pytest.raises(ProgramError, match=remedy):
        asked(**options)
