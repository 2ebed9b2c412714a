"""MSCCL files: a small one word for word, what libraries have room for, and mistakes that are found in files."""

from dataclasses import replace

import pytest

from ropewalk.collectives import (
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    mesh_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    shift_all_to_all,
)
from ropewalk.errors import ProgramError, ProofError
from ropewalk.export.msccl_xml import TARGETS, algo_of, prove_algo, read_msccl_xml, write_msccl_xml
from ropewalk.export.msccl_xml.read import parse_algo
from ropewalk.export.msccl_xml.targets import excess
from ropewalk.export.msccl_xml.write import algo_text

PAIR = """\
<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1" \
outofplace="1" minBytes="0" maxBytes="1024">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
"""


def test_two_ranks_swap_halves_and_results(tmp_path):
    path = tmp_path / "pair.xml"
    write_msccl_xml(ring_all_reduce([[0, 1]]), path, collective="allreduce", name="pair", max_bytes=1024)
    assert path.read_text().startswith(PAIR)
    prove_algo(read_msccl_xml(path), slots=0)


def test_a_step_that_waits_for_several_has_nops_before_it_and_the_last_wait_itself():
    algo = algo_of(halving_doubling_all_reduce(8), collective="allreduce")
    steps = next(b.steps for g in algo.gpus for b in g.blocks if any(step.kind == "nop" for step in b.steps))
    first = next(n for n, step in enumerate(steps) if step.kind == "nop")
    assert steps[first].waits is not None
    assert steps[first + 1].waits is not None
    prove_algo(algo, slots=0)


def test_long_streams_get_more_channels_where_steps_are_few():
    tight, roomy = (
        algo_of(double_tree_all_reduce(4, 100), collective="allreduce", target=target) for target in ("rccl", "msccl")
    )
    assert max(len(block.steps) for gpu in tight.gpus for block in gpu.blocks) <= 64
    assert tight.channels > roomy.channels
    assert excess(roomy, TARGETS["rccl"]) is not None
    prove_algo(tight, slots=0)


def test_programs_beyond_a_target_are_refused_with_a_remedy():
    with pytest.raises(ProgramError, match=r"thread blocks .* are more than the 64 of rccl: use fewer segments"):
        algo_of(mesh_all_reduce(40), collective="allreduce")
    tall = algo_of(double_tree_all_reduce(4, 100), collective="allreduce", target="msccl")
    assert excess(tall, TARGETS["rccl"]) is not None
    with pytest.raises(ProgramError, match="give one of rccl, executor, msccl"):
        algo_of(ring_all_reduce([[0, 1]]), collective="allreduce", target="nccl")
    with pytest.raises(ProgramError, match="leave none"):
        algo_of(ring_all_reduce([[0, 1]]), collective="allreduce", min_bytes=10, max_bytes=5)
    with pytest.raises(ProgramError, match="give one of Simple, LL, LL128"):
        algo_of(ring_all_reduce([[0, 1]]), collective="allreduce", protocol="simple")


def test_an_all_to_all_serves_out_of_place_alone():
    algo = algo_of(shift_all_to_all(4), collective="alltoall")
    assert (algo.inplace, algo.outofplace, algo.chunks) == (False, True, 4)
    prove_algo(algo, slots=0)


RING_IN_ONE_BLOCK = """
<algo name="ring" proto="LL" nchannels="1" nchunksperloop="3" ngpus="3" coll="allreduce" inplace="1">
{gpus}
</algo>
"""


def fused_ring() -> str:
    """A ring as MSCCL's own compiler writes it: one thread block that sends and receives, no newer attributes."""
    gpus = []
    for rank in range(3):
        steps = [("s", rank), ("rrs", rank - 1), ("rrcs", rank - 2), ("rcs", rank - 3), ("r", rank - 4)]
        rows = "".join(
            f'<step s="{n}" type="{kind}" srcbuf="i" srcoff="{chunk % 3}" dstbuf="i" dstoff="{chunk % 3}" cnt="1" '
            'depid="-1" deps="-1" hasdep="0"/>'
            for n, (kind, chunk) in enumerate(steps)
        )
        gpus.append(
            f'<gpu id="{rank}" i_chunks="3" o_chunks="3" s_chunks="0"><tb id="0" send="{(rank + 1) % 3}" '
            f'recv="{(rank + 2) % 3}" chan="0">{rows}</tb></gpu>'
        )
    return RING_IN_ONE_BLOCK.format(gpus="".join(gpus)).strip()


def test_a_file_as_others_write_it_is_proved_if_there_is_a_slot_to_send_into():
    algo = parse_algo(fused_ring(), "ring")
    assert (algo.inplace, algo.outofplace) == (True, False)
    prove_algo(algo)
    with pytest.raises(ProofError, match="deadlock"):
        prove_algo(algo, slots=0)


def test_a_result_that_is_not_stored_is_missed():
    with pytest.raises(ProofError, match="ends with position"):
        prove_algo(parse_algo(fused_ring().replace('"rrcs"', '"rrs"'), "ring"))


def test_a_wait_for_a_step_that_says_nothing_is_refused():
    text = algo_text(algo_of(ring_all_reduce([[0, 1, 2]]), collective="allreduce")).replace('hasdep="1"', 'hasdep="0"')
    with pytest.raises(ProofError, match="signals nothing from there on"):
        prove_algo(parse_algo(text, "quiet"))


def test_sends_that_nobody_receives_and_channels_shared_by_two_blocks_are_refused():
    algo = algo_of(ring_all_gather([[0, 1, 2]]), collective="allgather")
    gpu = algo.gpus[0]
    sends = gpu.blocks[0]
    twin = replace(gpu, blocks=(*gpu.blocks, sends))
    with pytest.raises(ProofError, match="is fed by rank 0, thread block 0 and rank 0, thread block 3"):
        prove_algo(replace(algo, gpus=(twin, *algo.gpus[1:])))
    pair = algo_of(ring_all_gather([[0, 1]]), collective="allgather")
    deaf = replace(pair.gpus[1], blocks=tuple(b for b in pair.gpus[1].blocks if b.recv != 0))
    with pytest.raises(ProofError, match="channel 0 from rank 0 to rank 1 sends at one end only"):
        prove_algo(replace(pair, gpus=(pair.gpus[0], deaf)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<algo ", "<plan ", "fix the XML"),
        ('ngpus="2"', 'ngpus="3"', "there are 2 gpus"),
        ('proto="Simple" ', "", "has no attribute 'proto'"),
        ('type="rrc"', 'type="rrx"', "type 'rrx' is not one of"),
        ('srcbuf="i"', 'srcbuf="x"', "srcbuf 'x'"),
        ('send="1"', 'send="0"', "peer 0 is not one of the other ranks"),
        ('send="1"', 'send="-1"', "has no peer to send to"),
        ('depid="1"', 'depid="7"', "which does not exist"),
        ('depid="1"', 'depid="-1"', "name half of a step"),
        ('type="s" srcbuf="o"', 'type="nop" srcbuf="o"', None),
        ('cnt="1"', 'cnt="one"', "give a whole number"),
        ('s_chunks="', 's_chunks="9999999', "s_chunks is 9999999.*: give 1048576 or fewer"),
        ('<step s="1"', '<step s="5"', "is at position 1"),
        ('chan="0"', 'chan="4"', "raise nchannels"),
    ],
)
def test_mistakes_in_files_are_named(old, new, message):
    text = algo_text(algo_of(ring_all_reduce([[0, 1]]), collective="allreduce"))
    assert old in text
    wrong = text.replace(old, new, 1)
    if message is None:
        with pytest.raises(ProofError):
            prove_algo(parse_algo(wrong, "file"))
    else:
        with pytest.raises(ProgramError, match=message):
            parse_algo(wrong, "file")


def test_a_nop_that_waits_must_be_followed_by_a_step_that_waits():
    text = algo_text(algo_of(halving_doubling_all_reduce(8), collective="allreduce"))
    lines = text.splitlines()
    place = next(n for n, line in enumerate(lines) if 'type="nop"' in line) + 1
    lines[place] = lines[place].split("depid=")[0] + 'depid="-1" deps="-1" hasdep="0"/>'
    with pytest.raises(ProgramError, match="move the last wait to it"):
        parse_algo("\n".join(lines), "file")
