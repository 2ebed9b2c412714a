"""Time: one engine, seen through a trace."""

from ropewalk.sim.simulate import RoundsTrace, rounds_link_bytes, simulate, simulate_rounds
from ropewalk.sim.trace import Step, Trace

__all__ = ["RoundsTrace", "Step", "Trace", "rounds_link_bytes", "simulate", "simulate_rounds"]
