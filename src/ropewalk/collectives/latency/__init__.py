"""What rounds cost: the α-β time of a schedule."""

from ropewalk.collectives.latency.cost import LinearTime, schedule_cost

__all__ = ["LinearTime", "schedule_cost"]
