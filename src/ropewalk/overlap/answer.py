"""The answer to how gradients should be ordered: the best method, what no method can beat, and all others beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ropewalk.device.pricer import pricer
from ropewalk.errors import StrategyError
from ropewalk.hardware import as_json
from ropewalk.overlap.bounds import Bounds
from ropewalk.overlap.fabric_streams import FabricStream, fabric_streams
from ropewalk.overlap.link import Link
from ropewalk.overlap.methods import MethodStep, whole
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.ring import ring_of
from ropewalk.overlap.stream_answer import streams_as_json
from ropewalk.overlap.stream_plan import StreamPlan, plan_stream
from ropewalk.overlap.tensors import Tensors
from ropewalk.overlap.tuner import Tuned
from ropewalk.records import plain
from ropewalk.strategy.order import Order
from ropewalk.training.checked import Expected, interval_of_step

AS_FAST = 1e-9
"""Parts of a step by which two methods may differ and still be equally fast; fewer launches decide then."""


@dataclass(frozen=True, eq=False)
class OverlapAnswer:
    """All methods on one model and one network."""

    question: OverlapQuestion
    tensors: Tensors
    link: Link
    methods: tuple[MethodStep, ...]
    bounds: Bounds
    tuned: Tuned
    """How the partition size and the credit of priority scheduling were found."""
    notes: tuple[str, ...] = ()

    @cached_property
    def best(self) -> MethodStep:
        """The fastest that was simulated; of those that are as fast the one that hands over the fewest operations."""
        known = [method for method in self.methods if method.simulated_s is not None] or self.methods
        least = min(method.time_s for method in known)
        near = [method for method in known if method.time_s <= least * (1 + AS_FAST)]
        return min(near, key=lambda method: method.launches)

    @property
    def is_simulated(self) -> bool:
        return self.best.simulated_s is not None

    def method(self, name: str) -> MethodStep:
        return next(method for method in self.methods if method.name == name)

    @property
    def usual(self) -> MethodStep:
        """What the best is measured against: what frameworks do without being told, buckets or whole tensors."""
        names = {method.name for method in self.methods}
        return self.method("buckets" if "buckets" in names else "fifo")

    @property
    def expected(self) -> Expected:
        """The interval around the best step, from the errors of predictions for runs like it."""
        step, workload = self.question.training, self.question.workload
        prices = pricer(step.device, step.precision).sustained(workload)
        return interval_of_step(self.best.time_s, workload, step.device, prices, step.usual, self.question.workers)

    @property
    def exposed_s(self) -> float:
        """Seconds of the best step in which the GPU waits for the network."""
        return max(0.0, self.best.time_s - self.tensors.compute_s)

    @property
    def network_s(self) -> float:
        """Seconds in which the bytes of a step are sent, and added up meanwhile, once and without start-up latency."""
        return self.tensors.total_bytes / self.link.throughput

    @property
    def _busiest(self) -> str:
        """What gradients wait for: wires, or ranks that add more slowly than these bring."""
        return "reduction" if self.link.throughput < self.link.bandwidth else "the network"

    @cached_property
    def streams(self) -> StreamPlan | None:
        """The streamed all-reduce on the ring that the link is, beside published schemes; None without all-reduces."""
        if self.link.duplex:
            return None
        return plan_stream(self.tensors, ring_of(self.link, self.question.workers, self.question.rounds_s))

    @cached_property
    def fabric_streams(self) -> list[FabricStream]:
        """The gradients streamed through several collectives on the fabric of the cluster; none without all-reduces."""
        if self.link.duplex:
            return []
        costs = self.question.use.transport
        start_up_s = 0.0 if costs is None else costs.round_across_s
        return fabric_streams(
            self.tensors, self.question.cluster.fabric(), start_up_s, self.link.mixer, self.question.through
        )

    def bound_in_words(self) -> str:
        """Which of the bounds is the largest."""
        bounds = self.bounds
        if bounds.step_s <= bounds.computing_s * (1 + AS_FAST):
            return "compute alone takes that long"
        if bounds.step_s <= bounds.network_s * (1 + AS_FAST):
            return f"{self._busiest} alone takes that long, from the first gradient to the last layer that waits"
        return (
            "no order of all-reduces on this network and this GPU is faster, even if splitting and start-up cost "
            "nothing"
        )

    def why(self) -> str:
        """What the best step is made of, in a sentence."""
        from_bound = self.best.time_s / self.bounds.step_s - 1
        hidden = self.exposed_s <= AS_FAST * self.best.time_s
        exposed = "all of it is hidden" if hidden else f"{self.exposed_s * 1e3:.4g} ms of it is not hidden"
        far = f"{100 * from_bound:.2f}"
        reached = "reaches the lower bound" if float(far) == 0 else f"is {far} % above the lower bound"
        return (
            f"compute takes {self.tensors.compute_s * 1e3:.4g} ms and {self._busiest} {self.network_s * 1e3:.4g} ms; "
            f"{exposed}; the step {reached}: {self.bound_in_words()}"
        )

    def order(self) -> list[dict[str, Any]]:
        """What is handed over, in order, with the same names as `groups`."""
        names = self.tensors.names
        return [
            {
                "act": move.operation,
                "tensors": [names[tensor] for tensor in move.tensors],
                "size_bytes": move.size_bytes,
                "begin_s": move.begin_s,
                "end_s": move.end_s,
            }
            for move in self.best.moves
        ]

    def as_json(self) -> dict[str, Any]:
        """The answer in plain types, with the keys that scripts rely on."""
        through = [one.as_json() for one in self.fabric_streams] if self.question.through else None
        streams = None if self.streams is None else streams_as_json(self.streams)
        return self.methods_as_json() | {"streams": streams, "through": through}

    def methods_as_json(self) -> dict[str, Any]:
        """The same without streams, which are searched when they are asked for."""
        asked, names = self.question, self.tensors.names
        return {
            "model": self.tensors.model,
            "workers": asked.workers,
            "servers": asked.servers,
            "cluster": as_json(asked.cluster),
            "global_batch": asked.batch,
            "sync": str(asked.sync),
            "tensors": len(self.tensors),
            "gradient_bytes": self.tensors.total_bytes,
            "bandwidth_bytes_per_s": self.link.bandwidth,
            "start_up_s": self.link.start_up_s,
            "compute_s": self.tensors.compute_s,
            "method": self.best.name,
            "step_time_s": self.best.time_s,
            "interval": asdict(self.expected),
            "estimated_step_time_s": self.best.step_s,
            "lower_bound_s": self.bounds.step_s,
            "exposed_s": self.exposed_s,
            "why": self.why(),
            "speedup": self.usual.time_s / self.best.time_s,
            "speedup_over": self.usual.name,
            "groups": [[names[tensor] for tensor in group] for group in self.best.groups.members],
            "partition_bytes": whole(self.tuned.best.partition_bytes),
            "credit_bytes": whole(self.tuned.best.credit_bytes),
            "found_by": self.tuned.method,
            "order": self.order(),
            "plan_order": None if self.best.order is None else plain(self.best.order),
            "alternatives": [
                {
                    "name": method.name,
                    "what": method.what,
                    "step_time_s": method.time_s,
                    "estimated_step_time_s": method.step_s,
                    "simulated": method.simulated_s is not None,
                    "launches": method.launches,
                    "exposed_s": max(0.0, method.time_s - self.tensors.compute_s),
                    "speedup_of_best": method.time_s / self.best.time_s,
                }
                for method in self.methods
            ],
            "costs": self.tensors.source,
            "seed": asked.seed,
            "notes": list(self.notes),
        }


def order_of(answer: OverlapAnswer) -> Order:
    """The order of the best method that a lowered step can run: what a plan file keeps."""
    known = [method for method in answer.methods if method.order is not None]
    if not known:
        raise StrategyError("parameter servers are not collectives: use --sync all-reduce")
    best = (
        answer.best
        if answer.best.order is not None
        else min(known, key=lambda method: (method.time_s, method.launches))
    )
    assert best.order is not None
    return best.order
