"""Time, packet by packet: RDMA and TCP over switches with queues, marks and pauses."""

from ropewalk.sim.packet.cubic import Cubic
from ropewalk.sim.packet.dcqcn import Dcqcn
from ropewalk.sim.packet.dcqcn_paper import DcqcnPaper
from ropewalk.sim.packet.dctcp import Dctcp
from ropewalk.sim.packet.hpcc import Hpcc
from ropewalk.sim.packet.lossy import drop_tail
from ropewalk.sim.packet.newreno import NewReno
from ropewalk.sim.packet.roce import Roce
from ropewalk.sim.packet.settings import Completion, PacketSettings, PathSpread, SwitchSettings
from ropewalk.sim.packet.simulate import simulate_packets
from ropewalk.sim.packet.trace import PacketTrace, Samples
from ropewalk.sim.transports import TRANSPORTS, settings_named

__all__ = [
    "TRANSPORTS",
    "Completion",
    "Cubic",
    "Dcqcn",
    "DcqcnPaper",
    "Dctcp",
    "Hpcc",
    "NewReno",
    "PacketSettings",
    "PacketTrace",
    "PathSpread",
    "Roce",
    "Samples",
    "SwitchSettings",
    "drop_tail",
    "settings_named",
    "simulate_packets",
]
