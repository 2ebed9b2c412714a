"""Who computes what, where: degrees of parallelism, ranks on GPUs, pipeline stages and the memory all that takes.

>>> from ropewalk.strategy import Placement, Strategy
>>> Placement(Strategy(data=2, tensor=4)).tensor_groups.tolist()
[[0, 1, 2, 3], [4, 5, 6, 7]]
"""

from ropewalk.strategy.checks import check
from ropewalk.strategy.derive import derive
from ropewalk.strategy.frameworks import FRAMEWORKS, is_runnable, runnable
from ropewalk.strategy.memory import Memory, memory
from ropewalk.strategy.order import ORDERS, Order
from ropewalk.strategy.part import Part
from ropewalk.strategy.placement import Placement
from ropewalk.strategy.prices import KeptPrices, Prices
from ropewalk.strategy.shares import Share, shares_of
from ropewalk.strategy.stages import Pieces, balanced, cut
from ropewalk.strategy.strategy import LayerChoice, Strategy

__all__ = [
    "FRAMEWORKS",
    "ORDERS",
    "KeptPrices",
    "LayerChoice",
    "Memory",
    "Order",
    "Part",
    "Pieces",
    "Placement",
    "Prices",
    "Share",
    "Strategy",
    "balanced",
    "check",
    "cut",
    "derive",
    "is_runnable",
    "memory",
    "runnable",
    "shares_of",
]
