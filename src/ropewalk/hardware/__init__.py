"""Where training runs: a cluster, described once, by a file, a preset, a shape or options.

>>> read_cluster("4x8").gpus
32

`Cluster.fabric()` builds its network; `as_json` and `from_json` keep it in other files.
"""

from ropewalk.hardware.cluster import DEFAULT_DEVICE, DEFAULT_NETWORK, Cluster, Ports, Servers
from ropewalk.hardware.draft import Given, GivenPorts
from ropewalk.hardware.held import held
from ropewalk.hardware.networks import NETWORKS, on_network, resized
from ropewalk.hardware.presets import PRESETS, Preset
from ropewalk.hardware.read import as_json, from_json, read_cluster

__all__ = [
    "DEFAULT_DEVICE",
    "DEFAULT_NETWORK",
    "NETWORKS",
    "PRESETS",
    "Cluster",
    "Given",
    "GivenPorts",
    "Ports",
    "Preset",
    "Servers",
    "as_json",
    "from_json",
    "held",
    "on_network",
    "read_cluster",
    "resized",
]
