"""MSCCL++ plans: a small one word for word, what its executor has room for, and mistakes that are found in files."""

import json
from dataclasses import replace

import pytest
from plan_worlds import overtaken_all_reduce

from ropewalk.collectives import (
    double_tree_all_reduce,
    mesh_reduce_scatter,
    ring_all_gather,
    ring_all_reduce,
    shift_all_to_all,
)
from ropewalk.errors import InputError, ProgramError, ProofError
from ropewalk.export.mscclpp import plan_of, prove_plan, read_mscclpp, write_mscclpp
from ropewalk.export.mscclpp.plan import ChunkSpan, Operation
from ropewalk.export.mscclpp.read import parse_plan
from ropewalk.export.mscclpp.write import plan_text

PAIR = ring_all_gather([[0, 1]])


def names(block):
    return [operation.name for operation in block.operations]


def with_operations(plan, rank, number, operations):
    gpu = plan.gpus[rank]
    block = replace(gpu.blocks[number], operations=tuple(operations))
    gpu = replace(gpu, blocks=(*gpu.blocks[:number], block, *gpu.blocks[number + 1 :]))
    return replace(plan, gpus=(*plan.gpus[:rank], gpu, *plan.gpus[rank + 1 :]))


def test_two_ranks_swap_shards_by_a_handshake_a_put_and_a_signal(tmp_path):
    path = tmp_path / "pair.json"
    write_mscclpp(PAIR, path, collective="allgather", name="pair", inplace=True)
    first = json.loads(path.read_text())["gpus"][0]
    sends, receives = first["threadblocks"]
    assert [operation["name"] for operation in sends["ops"]] == ["wait", "nop", "put", "nop", "signal"]
    assert [operation["name"] for operation in receives["ops"]] == ["signal", "wait"]
    assert sends["ops"][2] == {
        "name": "put",
        "src_buff": [{"type": "o", "index": 0, "size": 1}],
        "dst_buff": [{"buffer_id": 0, "index": 0, "size": 1}],
        "channel_type": "memory",
    }
    assert first["channels"] == [{"channel_type": "memory", "connected_to": [1, 1]}]
    assert first["remote_buffers"] == [{"rank": 1, "type": "o", "access_channel_types": ["memory"]}]


def test_the_same_program_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_mscclpp(double_tree_all_reduce(6, 3), tmp_path / name, collective="allreduce", channel="port")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_port_channel_signals_with_its_put_and_the_last_put_waits_for_the_adapter():
    plan = plan_of(ring_all_gather([[0, 1, 2]]), collective="allgather", channel="port")
    assert [name for name in names(plan.gpus[0].blocks[0]) if name.startswith("pws")] == ["pws", "pwsf"]
    prove_plan(plan)
    operations = plan.gpus[0].blocks[0].operations
    hasty = [replace(operation, name=operation.name.replace("pwsf", "pws")) for operation in operations]
    with pytest.raises(ProofError, match="rank 0 may end while the adapter of port channel"):
        prove_plan(with_operations(plan, 0, 0, hasty))


def test_channels_are_chosen_by_server():
    plan = plan_of(
        ring_all_reduce([[0, 1, 2, 3]]),
        collective="allreduce",
        channel=lambda src, dst: "memory" if src // 2 == dst // 2 else "port",
    )
    assert plan.gpus[0].channels == {"memory": (1,), "port": (3,)}
    assert plan.gpus[1].channels == {"memory": (0,), "port": (2,)}


def test_what_an_adapter_may_still_read_is_not_replaced_before_it_has_finished():
    plan = plan_of(overtaken_all_reduce(), collective="allreduce", inplace=True, channel="port")
    prove_plan(plan)
    hasty = plan
    for number, block in enumerate(plan.gpus[0].blocks):
        changed = [replace(op, name=op.name.replace("pwsf", "pws")) for op in block.operations]
        hasty = with_operations(hasty, 0, number, changed)
    with pytest.raises(ProofError, match=r"race: .* while the adapter of port channel 0 of rank 0 reads it"):
        prove_plan(hasty)


def test_arrivals_of_many_peers_are_added_up_at_once():
    plan = plan_of(mesh_reduce_scatter(8), collective="reducescatter")
    reducing = [op for block in plan.gpus[3].blocks for op in block.operations if op.name == "re"]
    assert [len(operation.src) for operation in reducing] == [8]
    assert plan.gpus[3].semaphores == ()


def test_long_streams_are_cut_where_the_executor_has_no_more_room():
    plan = plan_of(ring_all_reduce([range(24)]), collective="allreduce")
    assert max(len(block.operations) for gpu in plan.gpus for block in gpu.blocks) <= 64
    assert all(len(gpu.blocks) > 2 for gpu in plan.gpus)


def test_a_plan_without_its_handshake_writes_into_memory_that_may_be_in_use():
    plan = plan_of(PAIR, collective="allgather")
    rest = [op for op in plan.gpus[0].blocks[0].operations if op.name != "wait"][1:]
    silent = [op for op in plan.gpus[1].blocks[1].operations if op.name != "signal"]
    with pytest.raises(ProofError, match="while the launch of rank 1 writes it"):
        prove_plan(with_operations(with_operations(plan, 0, 0, rest), 1, 1, silent))


def test_thread_blocks_without_semaphores_race():
    plan = plan_of(ring_all_reduce([[0, 1, 2]]), collective="allreduce")
    for rank, gpu in enumerate(plan.gpus):
        for number, block in enumerate(gpu.blocks):
            kept = [op for op in block.operations if not op.semaphores]
            plan = with_operations(plan, rank, number, kept)
    with pytest.raises(ProofError, match="race"):
        prove_plan(plan)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (
            [Operation("copy", (ChunkSpan(0, 1, "i"),), (ChunkSpan(2, 1, "o"),))],
            "uses chunks 2…2 of buffer 'o' of rank 0",
        ),
        ([Operation("copy", (ChunkSpan(0, 1, "i"),), (ChunkSpan(0, 2, "o"),))], "spans of different sizes"),
        (
            [Operation("copy", (ChunkSpan(0, 1, "i"),), (ChunkSpan(n, 1, "o"),)) for n in (0, 0)],
            "touches chunks that other threads may still be copying: put a nop before it",
        ),
    ],
)
def test_copies_that_cannot_be_are_refused(operations, message):
    plan = plan_of(PAIR, collective="allgather")
    with pytest.raises(ProofError, match=message):
        prove_plan(with_operations(plan, 0, 2, operations))


def test_a_put_that_reads_two_buffers_and_a_memory_put_that_signals_are_refused():
    plan = plan_of(PAIR, collective="allgather")
    operations = list(plan.gpus[0].blocks[0].operations)
    put = operations[2]
    two = replace(put, src=(*put.src, ChunkSpan(0, 1, "o")), dst=(*put.dst, put.dst[0]))
    for wrong, message in ((two, "several local buffers"), (replace(put, name="pws"), "only port channels do")):
        with pytest.raises(ProofError, match=message):
            prove_plan(with_operations(plan, 0, 0, [*operations[:2], wrong, *operations[3:]]))


def test_what_cannot_be_written_is_refused_with_a_remedy():
    with pytest.raises(ProgramError, match="Simple only"):
        plan_of(PAIR, collective="allgather", protocol="LL")
    with pytest.raises(ProgramError, match="write it out of place"):
        plan_of(shift_all_to_all(3), collective="alltoall", inplace=True)
    with pytest.raises(ProgramError, match="give one of memory, port"):
        plan_of(PAIR, collective="allgather", channel="switch")
    with pytest.raises(ProgramError, match="offsets have 32 bits: set the largest message size to 4294967264 or less"):
        plan_of(ring_all_reduce([[0, 1]]), collective="allreduce", max_message_size=1 << 40)
    with pytest.raises(ProgramError, match="leave none"):
        plan_of(PAIR, collective="allgather", min_message_size=100, max_message_size=64)
    with pytest.raises(ProgramError, match="use fewer segments, or a forest with a fixed, small number of trees"):
        plan_of(double_tree_all_reduce(4, 64), collective="allreduce", most_blocks=2)
    assert issubclass(ProgramError, InputError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan.update(protocol="LL"), "protocol 'LL' is not read"),
        (lambda plan: plan.pop("inplace"), "has no 'inplace'"),
        (lambda plan: plan["gpus"].reverse(), "id 1 is at position 0"),
        (lambda plan: plan["gpus"][1].update(scratch_chunks=1 << 31), "'scratch_chunks' is 2147483648: give 1048576"),
        (lambda plan: plan["gpus"][0]["channels"][0].update(channel_type="switch"), "'switch' is not one of memory"),
        (lambda plan: plan["gpus"][0]["channels"][0].update(connected_to=[7]), "names peer 7"),
        (lambda plan: block(plan)["ops"][0].update(name="glres"), "name 'glres' is not one of"),
        (lambda plan: block(plan)["ops"][0].update(channel_ids=[3]), "names a channel that its thread block"),
        (lambda plan: block(plan)["ops"][2]["dst_buff"][0].update(buffer_id=9), "names a remote buffer"),
        (lambda plan: block(plan)["ops"][2]["dst_buff"][0].update(index=-1), "'index' is -1"),
        (lambda plan: block(plan)["ops"][2].update(tbg_info={}), "tbg_info"),
        (lambda plan: plan["gpus"][0].update(semaphores=[{"init_value": 10**18}]), "give 1048576 or fewer"),
        (lambda plan: block(plan).update(ops=block(plan)["ops"] * 13), "65 operations, the executor room for 64"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path, change, message):
    path = tmp_path / "plan.json"
    plan = json.loads(plan_text(plan_of(PAIR, collective="allgather")))
    change(plan)
    path.write_text(json.dumps(plan))
    with pytest.raises(ProgramError, match=message):
        read_mscclpp(path)


def block(plan):
    return plan["gpus"][0]["threadblocks"][0]


def test_a_plan_as_others_write_it_is_read_and_proved():
    """Two ranks pull from each other after a relaxed handshake, as zero-copy plans do, and part with a barrier."""
    meet = [("signal", "nop", "wait", "nop"), ("rlxsignal", "rlxwait", "nop")]
    gpus = []
    for rank in range(2):
        sync = {"channel_ids": [0], "channel_type": "memory"}
        operations = [{"name": name, **({} if name == "nop" else sync)} for name in meet[1]]
        operations.append(
            {
                "name": "get",
                "src_buff": [{"buffer_id": 0, "index": 1 - rank, "size": 1}],
                "dst_buff": [{"type": "o", "index": 1 - rank, "size": 1}],
                **sync,
            }
        )
        operations += [{"name": "nop"}] + [{"name": name, **({} if name == "nop" else sync)} for name in meet[0]]
        gpus.append(
            {
                "id": rank,
                "input_chunks": 1,
                "output_chunks": 2,
                "scratch_chunks": 0,
                "threadblocks": [
                    {
                        "id": 0,
                        "ops": operations,
                        "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                        "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
                    }
                ],
                "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
                "remote_buffers": [{"rank": 1 - rank, "type": "o", "access_channel_types": ["memory"]}],
            }
        )
    plan = {"name": "pull", "collective": "allgather", "protocol": "Simple", "inplace": True, "gpus": gpus}
    prove_plan(parse_plan(json.dumps(plan), "pull"))
    for gpu in gpus:
        gpu["threadblocks"][0]["ops"] = gpu["threadblocks"][0]["ops"][:4]
    with pytest.raises(ProofError, match="rank 0 may end while rank 1, thread block 0 still uses"):
        prove_plan(parse_plan(json.dumps(plan), "pull"))
