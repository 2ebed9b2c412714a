"""A sound file of every kind that ropewalk reads, written into a folder, with the function that reads it there.

`SOUND[name](folder)` writes; it returns `read(folder)`, or a pair of that and what seals a changed document anew.
"""

import json
import os
from pathlib import Path

from fuzz.sound_cluster_files import CLUSTER_FILES, resealed
from fuzz.sound_service_files import SERVICE_FILES

DATA = Path(__file__).parents[1] / "data"
PRICES = """source = "ours"
patch_panel_port = 100.0
ocs_port = 520.0
second_panel_switch = 25.0
fibre_per_metre = 0.30
fibre_metres = 500.0

[[rates]]
gbps = 100.0
transceiver = 99.0
nic = 659.0
switch_port = 187.0

[servers]
h100 = 250000.0
"""


def _fabric(ending):
    def made(folder):
        from ropewalk.fabric import LeafSpine
        from ropewalk.fabric.files import read_fabric, write_fabric

        write_fabric(LeafSpine(2, 2, 4).build(), folder / f"fabric{ending}")

        return lambda place: read_fabric(place / f"fabric{ending}")

    return made


def _nccl_topology(folder):
    from ropewalk.fabric.files import read_fabric

    (folder / "server.xml").write_bytes((DATA / "topologies/dgx-a100.xml").read_bytes())
    return lambda place: read_fabric(place / "server.xml")


def _cluster(folder):
    from ropewalk.hardware import as_json, read_cluster

    document = as_json(read_cluster("dgx-h100:4"))
    (folder / "cluster.yaml").write_text(json.dumps(document))
    return lambda place: read_cluster(str(place / "cluster.yaml"))


def _prices(folder):
    from ropewalk.hardware.prices import price_list

    (folder / "prices.toml").write_text(PRICES)
    return lambda place: price_list(str(place / "prices.toml"))


def _workload(ending):
    def made(folder):
        from ropewalk.workload import zoo
        from ropewalk.workload.files import read_workload, write_workload

        model = zoo.build("mixtral-8x7b:layers=1,hidden=64,heads=4,kv_heads=2,vocabulary=100,expert_ffn=32", 1, 16)
        write_workload(model, folder / f"model{ending}")

        def read(place):
            found = read_workload(place / f"model{ending}")
            found.parameters()

        return read

    return made


def _profile(folder):
    from ropewalk.workload.imports import from_profile

    (folder / "skips-pbs-2.txt").write_bytes((DATA / "profiles/skips-pbs-2.txt").read_bytes())
    return lambda place: from_profile(place / "skips-pbs-2.txt").at_batch(4)


def _cost_table(folder):
    from ropewalk.device.table import COLUMNS, read_table

    facts = {
        "name": "gpu", "title": "GPU", "multiprocessors": "100", "peak_bf16": "1e15", "memory_bandwidth": "3e12",
        "memory_bytes": "8e10", "cache_bytes": "5e7", "launch_s": "2e-6",
    }  # fmt: skip
    rows = [",".join(COLUMNS), *(f",device,{key},,{value}" for key, value in facts.items())]
    rows += [f"bf16,matmul,forward,1 {n} {n} {n},{n * 1e-9}" for n in (8, 64, 512)] + ["bf16,host,add,,1e-6;2e-6"]
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    return lambda place: read_table(place / "table.csv")


def _graph(ending):
    def made(folder):
        from ropewalk.task import Sketch
        from ropewalk.task.files import load, save

        sketch = Sketch()
        first = sketch.compute(0, 1e-3, label="forward")
        sketch.transfer(0, 1, 25e6, after=[first], label="gradient")
        if ending == ".npz":
            save(sketch.graph(), folder / "graph.npz")
        else:
            tasks = [
                {"name": "a", "compute": "1ms", "gpu": 0, "stream": 1, "priority": 2},
                {"name": "b", "transfer": "25MB", "from": 0, "to": 1, "after": ["a"], "rate_cap": "10Gbps"},
                {"name": "c", "marker": True, "after": ["b"]},
            ]
            (folder / "graph.yaml").write_text(json.dumps({"tasks": tasks}))
        return lambda place: load(place / f"graph{ending}")

    return made


def _chakra(folder):
    from ropewalk.export.chakra import read_chakra, write_chakra
    from ropewalk.task.step import Act, StepSketch

    sketch = StepSketch(2)
    sketch.collective(Act.ALL_REDUCE, range(2), 64)
    write_chakra(sketch.step(), folder / "t")
    return lambda place: read_chakra(place / "t")


def _program_trace(folder):
    import numpy as np

    from ropewalk.collectives import ring_all_reduce
    from ropewalk.collectives.schedule import Schedule
    from ropewalk.export.chakra import read_program_trace, write_program
    from ropewalk.fabric import IdealSwitch
    from ropewalk.routing import shortest
    from ropewalk.task import lockstep

    program = ring_all_reduce([[0, 1]])
    routes = shortest(IdealSwitch(2).build(), *lockstep(program, 1.0).all_pairs())
    write_program(Schedule("ring", program, np.arange(2, dtype=np.int32), routes), 1e6, folder / "p")
    return lambda place: read_program_trace(place / "p")


def _msccl(folder):
    from ropewalk.collectives import ring_all_reduce
    from ropewalk.export.msccl_xml import read_msccl_xml, write_msccl_xml

    write_msccl_xml(ring_all_reduce([[0, 1]]), folder / "a.xml", collective="allreduce", name="pair")
    return lambda place: read_msccl_xml(place / "a.xml")


def _mscclpp(folder):
    from ropewalk.collectives import ring_all_reduce
    from ropewalk.export.mscclpp import read_mscclpp, write_mscclpp

    write_mscclpp(ring_all_reduce([[0, 1]]), folder / "a.json", collective="allreduce")
    return lambda place: read_mscclpp(place / "a.json")


def _rings(folder):
    from ropewalk.export.nccl import read_ring_graph, ring_graphs, write_ring_graphs

    write_ring_graphs(ring_graphs([[0, 2, 1]], speed_intra=20), folder / "rings.xml")
    return lambda place: read_ring_graph(place / "rings.xml")


def _tuner(folder):
    from ropewalk.export.nccl.tuner import read_tuner

    (folder / "tuner.csv").write_text(
        "allreduce,0,65536,tree,ll,-1,2,16,-1,-1\nallreduce,65537,9999999,ring,simple,4,2,16\n"
    )
    return lambda place: read_tuner(place / "tuner.csv")


def _schedule(form):
    def made(folder):
        from ropewalk.export.torch_pipeline import read_compute_comms, read_compute_only

        read = {"compute_only": read_compute_only, "compute_comms": read_compute_comms}[form]
        (folder / "s.csv").write_bytes((DATA / f"torch_schedules/1f1b.{form}.csv").read_bytes())

        def text(place):
            return (place / "s.csv").read_bytes().decode("utf-8", "replace")

        return lambda place: read(text(place))

    return made


def _plan(folder):
    from ropewalk.hardware import read_cluster
    from ropewalk.plans import ModelUse, Plan, read_plan
    from ropewalk.plans.document import write_plan
    from ropewalk.strategy import Strategy

    strategy = Strategy(data=2, pipeline=4, micro_batches=8, schedule="1f1b")
    write_plan(Plan(ModelUse("gpt2"), read_cluster("2x4"), strategy), folder / "plan.json")
    return lambda place: read_plan(place / "plan.json")


def _lab(folder):
    from ropewalk.fabric import Ring
    from ropewalk.lab import state as labs
    from ropewalk.lab.lifecycle import network_of, routes_in
    from ropewalk.lab.network import LabSettings
    from ropewalk.lab.request import routes_by_name
    from ropewalk.lab.saved import SavedFabric, saved_paths

    ring = Ring(4).build()
    router, routes = routes_by_name(ring, "default")
    os.environ[labs.FOLDER] = str(folder)
    labs.write(labs.LabState(
        "pod", "ring:4", labs.Holder.of(os.getpid()), (1, 2, 3, 4), SavedFabric.of(ring), 5000.0, LabSettings(), router,
        saved_paths(routes), cut=(1,), slowed=((0, 1_000_000),),
    ))  # fmt: skip

    def read(place):
        os.environ[labs.FOLDER] = str(place)
        found = labs.read("pod")
        routes_in(found, network_of(found))

    return read, resealed


def _order(folder):
    from ropewalk.execute.overlap.order import CommunicationOrder, OperationLaunch, Piece, read_order

    pieces = (Piece("a.weight", 0, 10), Piece("b.weight", 0, 5))
    CommunicationOrder(tuple(OperationLaunch(((piece,),)) for piece in pieces), 1e6).write(folder / "order.json")
    return lambda place: read_order(place / "order.json")


def _measured(text, name):
    def made(folder):
        from ropewalk.expect.read.files import read_records

        (folder / name).write_text(text)
        return lambda place: read_records([place / name], "all_reduce")

    return made


NCCL_TESTS = """# all_reduce_perf
#  Rank  0 Group  0 Pid 12 on node7 device  0 [0x18] NVIDIA H100
#  Rank  1 Group  0 Pid 13 on node3 device  1 [0x2a] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong
1073741824 268435456 float sum -1 5000.0 214.75 214.75 0 4000.0 268.44 268.44 0
    1024 256 float sum 40.0 0.03 0.03 0e+00 39.0 0.03 0.03 0e+00
"""
INSPECTOR = "\n".join(
    json.dumps({
        "header": {"id": "0x1", "rank": rank, "n_ranks": 2, "nnodes": 2}, "metadata": {"hostname": host, "pid": 100},
        "coll_perf": {"coll": "AllReduce", "coll_sn": 7, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": 900},
    })
    for rank, host in enumerate("ab")
)  # fmt: skip
_ARGS = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2,
         "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 3]"}  # fmt: skip
KINETO = json.dumps({
    "distributedInfo": {"pg_config": [{"pg_name": "0", "ranks": [0, 5]}]},
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "dur": 90, "args": _ARGS}],
})  # fmt: skip
PAIRS = "ranks,collective,size,busbw\n0 gpu1.0,send,1GB,10\na:1 b:0,,,46GB/s\n0 1 2,,1MiB,5\n"

SOUND = {
    "fabric-yaml": _fabric(".yaml"),
    "fabric-json": _fabric(".json"),
    "fabric-graphml": _fabric(".graphml"),
    "nccl-topology": _nccl_topology,
    "cluster": _cluster,
    "prices": _prices,
    "workload-yaml": _workload(".yaml"),
    "workload-json": _workload(".json"),
    "profile": _profile,
    "cost-table": _cost_table,
    "graph-npz": _graph(".npz"),
    "graph-yaml": _graph(".yaml"),
    "chakra": _chakra,
    "program-trace": _program_trace,
    "msccl": _msccl,
    "mscclpp": _mscclpp,
    "nccl-rings": _rings,
    "nccl-tuner": _tuner,
    "schedule-passes": _schedule("compute_only"),
    "schedule-messages": _schedule("compute_comms"),
    "plan": _plan,
    "lab": _lab,
    "order": _order,
    "nccl-tests": _measured(NCCL_TESTS, "out.txt"),
    "inspector": _measured(INSPECTOR, "dump.log"),
    "kineto": _measured(KINETO, "trace.json"),
    "pairs": _measured(PAIRS, "pairs.csv"),
    **CLUSTER_FILES,
    **SERVICE_FILES,
}
