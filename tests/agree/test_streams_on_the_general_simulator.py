"""Streams written out rank by rank as task graphs take as long in the general simulator as in the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from ropewalk.collectives.mixer import Mixer
from ropewalk.fabric import IdealSwitch
from ropewalk.overlap.exchange import run, streamed
from ropewalk.overlap.ring import RankRing
from ropewalk.overlap.tensors import from_layers
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.task import TaskKind, make_graph

PORT, ADDER, BACKWARD = range(3)


def written_out(exchange, tensors, ring):
    """Tasks of all ranks: (gpu, stream, seconds, priority, waits); the wire between two ranks is a gpu of its own."""
    tasks, ready, last = [], exchange.chunks.ready_s(tensors), {}

    def task(gpu, stream, seconds, priority, *waits):
        tasks.append((gpu, stream, seconds, priority, waits))
        return len(tasks) - 1

    shard = exchange.chunks.chunk_bytes / ring.ranks
    wire = ring.ranks
    for chunk in range(len(ready)):
        held = []
        for _ in range(ring.ranks):
            wire += 1
            held.append(task(wire, 0, ready[chunk], 0))
        for turn in range(2 * ring.rounds):
            reduces = turn < ring.rounds
            urgency = (exchange.reduce_key if reduces else exchange.gather_key)[chunk]
            took = ring.message_s + shard[chunk] / ring.bandwidth
            sent = [task(rank, PORT, took, urgency, held[rank]) for rank in range(ring.ranks)]
            arrived = []
            for rank in range(ring.ranks):
                wire += 1
                arrived.append(task(wire, 0, ring.latency_s, 0, sent[rank - 1]))
            mixing = shard[chunk] / ring.mixer.rate
            held = [
                task(rank, ADDER, mixing, exchange.reduce_key[chunk], arrived[rank]) if reduces else arrived[rank]
                for rank in range(ring.ranks)
            ]
        last[chunk] = held
    gpu, stream, seconds, priority, waits = zip(*tasks, strict=True)
    start = np.concatenate([[0], np.cumsum([len(own) for own in waits])])
    graph = make_graph(
        np.full(len(tasks), TaskKind.COMPUTE), gpu, -1, seconds, start, [one for own in waits for one in own],
        stream=stream, priority=priority,
    )  # fmt: skip
    return graph, last


@pytest.mark.parametrize("mix", [0.31, 0.97, 8.0])
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_stream_takes_as_long_as_its_written_out_tasks(ranks, mix):
    rng = np.random.default_rng(ranks)
    tensors = from_layers(rng.uniform(1, 9, 5), backward_s=rng.uniform(1, 2, 5), forward_s=rng.uniform(1, 2, 5))
    ring = RankRing(ranks, bandwidth=2.1, mixer=Mixer(mix), latency_s=0.11, message_s=0.03)
    parts = [[(tensor, float(tensors.size_bytes[tensor]) / 3)] for tensor in range(5) for _ in range(3)]
    exchange = streamed(parts, 2 * rng.permutation(15), 2 * rng.permutation(15) + 1)  # no two as urgent
    graph, last = written_out(exchange, tensors, ring)
    fabric = IdealSwitch(2, bandwidth=1.0).build()
    trace = simulate(graph, shortest(fabric, np.array([0]), np.array([1])))
    done = run(exchange, tensors, ring).done_s
    for chunk, tasks in last.items():
        np.testing.assert_allclose(trace.end[tasks], done[chunk], rtol=1e-9)
