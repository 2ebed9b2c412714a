"""Time: one engine, seen through a trace."""

from ropewalk.sim.simulate import RoundsTrace, simulate, simulate_rounds
from ropewalk.sim.trace import Step, Trace

__all__ = ["RoundsTrace", "Step", "Trace", "simulate", "simulate_rounds"]
