"""Sound files of clusters that many jobs share: traces, topologies of schedulers, states, rules."""

import json

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,u1,vc0,8,32,1,COMPLETED,2020-06-03 00:01:00,2020-06-03 00:02:00,2020-06-03 00:03:40,100,60
9,u2,vc1,16,64,2,FAILED,2020-06-03 00:00:00,2020-06-03 00:00:00,2020-06-03 01:00:00,3600,0
"""
JOBS = """name,gpus,arrival_s,duration_s,iterations,model,batch,collective,communication_share,volume_bytes,compute_s
a,8,0,100,,,,ring,0.3,,
b,4,1.5,,50,,,hierarchical-ring,,1000000,0.02
c,2,3,60,,vgg16,16,,,,
"""
MURI = """job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,\
resource_time_0,resource_time_1,resource_time_2,priority
0,4,1500,20,vgg16,16,10000,3000,500,8,7,1,0
1,1,4500,3,dqn,128,1500,0,500,4,8,0.5,1
"""
GAVEL = (
    "ResNet-50 (batch size 64)\tpython3 main.py -b 64 %s/data\t--num_minibatches\t1\t900\t0.000000\t4\n"
    "CycleGAN\tpython3 gan.py\t--n_steps\t1\t30\t12.500000\t1\n"
)
PHILLY = json.dumps([{
    "status": "Pass", "vc": "v", "jobid": "application_1", "user": "u", "submitted_time": "2017-10-03 12:00:00",
    "attempts": [{
        "start_time": "2017-10-03 12:01:00", "end_time": "2017-10-03 12:02:00",
        "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}],
    }],
}])  # fmt: skip
CONF = """# the cluster
SwitchName=leaf0 Nodes=gpu[000-003] LinkSpeed=400
switchname=leaf1 \\
    nodes=gpu[004-005,007]
SwitchName=spine Switches=leaf[0-1]  # one top switch
"""
TREE = """- topology: fabric
  cluster_default: true
  tree:
    switches:
      - {switch: spine, children: "leaf[0-1]"}
      - {switch: leaf0, nodes: "gpu[000-003]"}
      - switch: leaf1
        nodes: gpu[004-005,007]
"""
HYPERNODES = """apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf0}
spec:
  tier: 1
  members:
    - {type: Node, selector: {regexMatch: {pattern: "^gpu00[0-3]$"}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf1}
spec:
  tier: 1
  members:
    - {type: Node, selector: {exactMatch: {name: gpu004}}}
    - {type: Node, selector: {labelMatch: {matchLabels: {rack: r1}}}}
"""
NODES = "".join(f"gpu00{n} Ready <none> 3d v1.30 rack=r{n // 4}\n" for n in range(6))
LEAFS = "server,leaf\n" + "".join(f"gpu00{n},leaf{n // 2}\n" for n in range(8))


def resealed(data):
    """A changed document with a checksum that fits again."""
    from ropewalk.documents.sealed import sealed

    document = json.loads(data)
    try:
        return json.dumps(sealed(document) if isinstance(document, dict) else document).encode()
    except ValueError:  # what JSON has no number for
        return data


def _trace(name, text):
    def made(folder):
        from ropewalk.tenancy.traces import read_trace

        (folder / name).write_text(text)
        return lambda place: read_trace(place / name)

    return made


def _topology(name, text):
    def made(folder):
        from ropewalk.tenancy.imports import AssumedCabling, Hints, read_leaf_map, read_nodes

        (folder / name).write_text(text)
        if name == "hypernodes.yaml":
            (folder / "nodes.txt").write_text(NODES)

        def read(place):
            nodes = read_nodes(place / "nodes.txt") if name == "hypernodes.yaml" else None
            read_leaf_map(place / name, hints=Hints(nodes=nodes)).plant(AssumedCabling(spines=2))

        return read

    return made


def small_plant():
    from ropewalk.export.cluster import AddressPlan
    from ropewalk.tenancy.allocation import Allocation
    from ropewalk.tenancy.plant import plant

    small = plant("leaf-spine:2x4x4", gpus_per_server=2)
    held = Allocation(
        "a", (6, 7, 0, 1), "clos", (1, 0), (3, 1), ((1, 3), (1, 1), (0, 3), (0, 1)), (3, 1, 3, 1), (1, 1, 0, 0)
    )
    return small, held, AddressPlan.numbered(small)


def _job_file(name):
    def made(folder):
        from ropewalk.export.cluster import addresses_csv, job_files, read_addresses, read_rules, read_sonic
        from ropewalk.export.cluster.links import read_links
        from ropewalk.export.cluster.ranks import read_rank_file, read_rank_table

        small, held, addresses = small_plant()
        files = job_files(small, held, addresses) | {"addresses.csv": addresses_csv(addresses, small)}
        readers = {
            "rankfile.openmpi": lambda path: read_rank_file(path, small),
            "ranks.csv": lambda path: read_rank_table(path, small),
            "links.csv": lambda path: read_links(path, small),
            "links.json": lambda path: read_links(path, small),
            "rules.json": lambda path: read_rules(path, small),
            "addresses.csv": lambda path: read_addresses(path, small),
            "sonic/0-leaf0.json": lambda path: read_sonic(path, 0, small, addresses),
        }
        short = name.rpartition("/")[2]
        (folder / short).write_text(files[name])
        return lambda place: readers[name](place / short)

    return made


def _state(folder):
    from ropewalk.cli.cluster_plant import read_state
    from ropewalk.tenancy.occupancy import Occupancy
    from ropewalk.tenancy.policies import POLICIES
    from ropewalk.tenancy.saved_state import write_state

    small, held, _ = small_plant()
    state = Occupancy(small)
    state.place(held)
    write_state(folder / "state.json", state.as_document())

    def read(place):
        read_state(POLICIES["vclos"], small, place / "state.json").check()

    return read, resealed


def _replay(folder):
    from ropewalk.tenancy.job import Job
    from ropewalk.tenancy.plant import plant
    from ropewalk.tenancy.replay import replay
    from ropewalk.tenancy.simulation import Rules
    from ropewalk.tenancy.work import Iteration, JobExchange

    small = plant("leaf-spine:2x4x4", gpus_per_server=4)
    jobs = [Job(f"j{n}", 4 + 4 * (n % 2), 2.0 * n, 10, Iteration(1.0, (JobExchange("ring", 1e10),))) for n in range(6)]
    replay(small, jobs, allocate="vclos", rules=Rules("source"), checkpoint=folder / "replay.json", checkpoint_every=7)

    def read(place):
        replay(small, jobs, allocate="vclos", rules=Rules("source"), checkpoint=place / "replay.json", resume=True)

    return read, resealed


CLUSTER_FILES = {
    "trace-helios": _trace("t.csv", HELIOS),
    "trace-jobs": _trace("jobs.csv", JOBS),
    "trace-muri": _trace("t.csv", MURI),
    "trace-gavel": _trace("t.trace", GAVEL),
    "trace-philly": _trace("cluster_job_log.json", PHILLY),
    "slurm-conf": _topology("topology.conf", CONF),
    "slurm-yaml": _topology("topology.yaml", TREE),
    "volcano": _topology("hypernodes.yaml", HYPERNODES),
    "leaf-csv": _topology("leafs.csv", LEAFS),
    "rank-file": _job_file("rankfile.openmpi"),
    "rank-table": _job_file("ranks.csv"),
    "links-csv": _job_file("links.csv"),
    "links-json": _job_file("links.json"),
    "rules": _job_file("rules.json"),
    "addresses": _job_file("addresses.csv"),
    "sonic": _job_file("sonic/0-leaf0.json"),
    "state": _state,
    "replay": _replay,
}
