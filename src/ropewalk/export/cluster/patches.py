"""The patch list of a shard: which port of which server connects to which, on which panel."""

from __future__ import annotations

import csv
import io

from ropewalk.tenancy.allocation import Allocation
from ropewalk.tenancy.plant import Plant
from ropewalk.tenancy.shards.allocate import SHARD, servers_of
from ropewalk.tenancy.shards.plant import PanelPlant
from ropewalk.tenancy.shards.wired import wired_for
from ropewalk.tenancy.work import Iteration, JobExchange

HEAD = ("panel", "server", "port", "peer", "peer_port")


def patch_files(plant: Plant, job: Allocation, work: Iteration | None = None) -> dict[str, str]:
    """File name -> content, for a job on a shard of several servers; nothing for any other.

    Cables are those for what the job sends; for an all-reduce over all its GPUs where nothing is known of that.

    >>> from ropewalk.tenancy.occupancy import Occupancy
    >>> from ropewalk.tenancy.plant import plant
    >>> from ropewalk.tenancy.shards.allocate import shard
    >>> behind = PanelPlant.of_plant(plant("leaf-spine:2x2x2", gpus_per_server=1))
    >>> print(patch_files(behind, shard(Occupancy(behind), "a", 3))["patch.csv"], end="")
    panel,server,port,peer,peer_port
    0,server0,0,server1,0
    0,server1,0,server2,0
    0,server2,0,server0,0
    """
    from ropewalk.codesign.planes import patch_list

    if job.stage != SHARD or not isinstance(plant, PanelPlant):
        return {}
    asked = work or Iteration(0.0, (JobExchange("hierarchical-ring", 1.0),))
    found = wired_for(plant, asked, job)
    if found is None:
        return {}
    servers = servers_of(plant, job)
    names = [plant.server_names[server] for server in servers]
    first_panel = int(plant.island_of_server[servers[0]]) * plant.ports
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    for one in patch_list(found.wiring).patches:
        writer.writerow((first_panel + one.plane, names[one.server], one.port, names[one.peer], one.peer_port))
    return {"patch.csv": text.getvalue()}
