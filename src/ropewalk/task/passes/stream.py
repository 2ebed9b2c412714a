"""Stream: tensors that are fused into one launch arrive one after the other, each when its own sum is over."""

from __future__ import annotations

from dataclasses import replace

from ropewalk.task.passes.gradients import Gradients, TensorArrival


def stream(gradients: Gradients, arrival: TensorArrival = TensorArrival.THROUGH) -> Gradients:
    """Lay fused buffers out tensor by tensor instead of rank by rank, so that readers wait for their own tensor only.

    A launch still begins when its last gradient exists and starts up once, but its rounds are gone through for every
    tensor, the most urgent first. `Expansion.graph` charges starting up for every collective: `launched_once` takes
    it back for those that go on with a launch.
    """
    return replace(gradients, arrival=arrival)
