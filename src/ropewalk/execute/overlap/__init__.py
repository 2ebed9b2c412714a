"""Gradients averaged in a planned order by PyTorch, and what that is worth on links of limited speed.

>>> from ropewalk.execute.overlap import CommunicationOrder, Piece, fused
>>> CommunicationOrder((fused(Piece("weight", 0, 3)), fused(Piece("weight", 3, 8)))).pieces_of
{'weight': 2}
"""

from ropewalk.execute.overlap.exchanges import in_two_halves, order_of_exchange
from ropewalk.execute.overlap.layer_times import LayerTimes, measured_layers
from ropewalk.execute.overlap.link_times import LinkTimes, measured_all_reduces
from ropewalk.execute.overlap.order import CommunicationOrder, OperationLaunch, Piece, Stream, fused, read_order
from ropewalk.execute.overlap.orders import (
    order_of_groups,
    order_of_launches,
    order_of_run,
    order_of_streamed,
    streamed_through,
)
from ropewalk.execute.overlap.scheduled import Scheduled, schedule
from ropewalk.execute.overlap.stream.group import group_links
from ropewalk.execute.overlap.stream.links import LinkLost
from ropewalk.execute.overlap.stream.sockets import socket_links

__all__ = [
    "CommunicationOrder",
    "LayerTimes",
    "LinkLost",
    "LinkTimes",
    "OperationLaunch",
    "Piece",
    "Scheduled",
    "Stream",
    "fused",
    "group_links",
    "in_two_halves",
    "measured_all_reduces",
    "measured_layers",
    "order_of_exchange",
    "order_of_groups",
    "order_of_launches",
    "order_of_run",
    "order_of_streamed",
    "read_order",
    "schedule",
    "socket_links",
    "streamed_through",
]
