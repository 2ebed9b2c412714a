"""The machine on tiny worlds: what is ordered is accepted, what is not is a race, whatever happened to run first."""

import pytest

from ropewalk.errors import ProofError
from ropewalk.export.threadblocks.contract import require
from ropewalk.export.threadblocks.machine import Machine, add, load, meet, pop, post, push, store, take
from ropewalk.export.threadblocks.memory import CellMemory
from ropewalk.export.threadblocks.values import RUBBISH, added, symbol


def world(ranks=1, cells=2):
    memory = CellMemory()
    buffers = [memory.buffers(rank, cells, cells, 0, None) for rank in range(ranks)]
    return Machine("world", ranks, memory), [own.cells["i"] for own in buffers], [own.cells["o"] for own in buffers]


def test_sums_remember_who_is_in_them_twice():
    twice = added(added(symbol(0, 3), symbol(1, 3)), symbol(1, 3))
    assert twice == (3, 0b11, 0b10)
    assert added(RUBBISH, symbol(0, 0)) == RUBBISH


def test_two_agents_that_touch_the_same_cell_race_unless_one_tells_the_other():
    for tells in (True, False):
        machine, inputs, outputs = world()
        writer, reader = machine.agent("writer", 0), machine.agent("reader", 0)
        machine.counter("told", "the word")
        writer.does("copy", load(inputs[0][:1]), store(outputs[0][:1]))
        if tells:
            writer.does("tell", post("told"))
            reader.does("listen", take("told"))
        reader.does("copy", load(outputs[0][:1]), store(outputs[0][1:]))
        if tells:
            machine.run()
        else:
            with pytest.raises(ProofError, match=r"race: reader, copy reads o\[0\] of rank 0 while writer writes it"):
                machine.run()


def test_a_read_that_may_come_late_races_with_a_write():
    machine, inputs, outputs = world()
    machine.agent("reader", 0).does("read", load(inputs[0][:1]), store(outputs[0][:1]))
    machine.agent("writer", 0).does("write", load(inputs[0][1:]), store(inputs[0][:1]))
    with pytest.raises(ProofError, match=r"writer, write writes .* while reader reads"):
        machine.run()


def test_the_memory_of_another_rank_is_off_limits_until_it_has_been_launched_and_after_it_has_ended():
    for hears, says, problem in (
        (False, True, "while the launch of rank 1 writes it"),
        (True, False, r"rank 1 may end while far still uses its o\[0\]"),
        (True, True, None),
    ):
        machine, inputs, outputs = world(ranks=2)
        far, near = machine.agent("far", 0), machine.agent("near", 1)
        machine.counter("up", "the launch")
        machine.counter("done", "the end")
        if hears:
            near.does("up", post("up", launch_only=True))
            far.does("up", take("up", launch_only=True))
        far.does("put", load(inputs[0][:1]), store(outputs[1][:1]))
        if says:
            far.does("done", post("done"))
            near.does("done", take("done"))
        if problem is None:
            machine.run()
        else:
            with pytest.raises(ProofError, match=problem):
                machine.run()


def test_a_relaxed_signal_says_nothing_about_data():
    machine, inputs, outputs = world(ranks=2)
    far, near = machine.agent("far", 0), machine.agent("near", 1)
    machine.counter("up", "the launch")
    machine.counter("done", "the end")
    near.does("up", post("up"))
    far.does("put", take("up"), load(inputs[0][:1]), store(outputs[1][:1]), post("done", launch_only=True))
    near.does("read", take("done"), load(outputs[1][:1]))
    with pytest.raises(ProofError, match="race"):
        machine.run()


def test_agents_that_wait_for_each_other_are_a_deadlock():
    machine, _, _ = world()
    for name, other in (("a", "b"), ("b", "a")):
        machine.counter(name, name)
        machine.agent(name, 0).does("turn", take(other), post(name))
    with pytest.raises(ProofError, match="deadlock: a, turn; b, turn wait"):
        machine.run()


def test_sends_before_receives_need_slots():
    for slots in (0, 1):
        machine, inputs, outputs = world(ranks=2)
        for rank in range(2):
            machine.queue((rank, 1 - rank), f"queue {rank}", slots)
        for rank in range(2):
            agent = machine.agent(f"rank {rank}", rank)
            agent.does("s", load(inputs[rank]), push((rank, 1 - rank)))
            agent.does("r", pop((1 - rank, rank), 2), add(inputs[rank]), store(outputs[rank]))
        if slots:
            machine.run()
            assert {machine.memory.values[cell] for cell in outputs[0] + outputs[1]} == {(0, 3, 0), (1, 3, 0)}
        else:
            with pytest.raises(ProofError, match="deadlock"):
                machine.run()


def test_a_counter_that_two_raise_belongs_to_nobody():
    machine, _, _ = world()
    machine.counter("word", "the word", initial=2)
    machine.agent("a", 0).does("say", post("word"))
    machine.agent("b", 0).does("say", post("word"))
    with pytest.raises(ProofError, match="the word is raised by a and b"):
        machine.run()


def test_signals_that_are_left_over_are_refused():
    machine, _, _ = world()
    machine.counter("word", "the word")
    machine.agent("a", 0).does("say", post("word"))
    with pytest.raises(ProofError, match="the word ends at 1 instead of 0"):
        machine.run()


def test_a_barrier_orders_all_who_meet_and_is_for_as_many_as_it_says():
    for parties in (2, 3):
        machine, inputs, outputs = world()
        a, b = machine.agent("a", 0), machine.agent("b", 0)
        a.does("write", load(inputs[0]), store(outputs[0]), meet("gate", parties))
        b.does("read", meet("gate", parties), load(outputs[0]), store(outputs[0]))
        if parties == 2:
            machine.run()
        else:
            with pytest.raises(ProofError, match="deadlock"):
                machine.run()


def test_contracts_name_the_first_wrong_output():
    good = [[symbol(0, 0), symbol(1, 0)], [symbol(0, 0), symbol(1, 0)]]
    require("allgather", 2, [(1, 2)] * 2, good, "two ranks")
    good[1][0] = symbol(1, 0)
    with pytest.raises(ProofError, match="output 0 of rank 1 ends with position 0 of the input of rank 1 instead of"):
        require("allgather", 2, [(1, 2)] * 2, good, "two ranks")
