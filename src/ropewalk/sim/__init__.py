"""Time: one engine, seen through a trace."""

from ropewalk.sim.simulate import RoundsTrace, rounds_link_bytes, simulate, simulate_rounds
from ropewalk.sim.trace import CriticalTask, Trace

__all__ = ["CriticalTask", "RoundsTrace", "Trace", "rounds_link_bytes", "simulate", "simulate_rounds"]
