"""What this machine lacks for a lab, in one sentence per thing: the kernel itself is asked, in two namespaces."""

from __future__ import annotations

import os

from ropewalk.errors import LabError
from ropewalk.lab.namespaces import held
from ropewalk.lab.process import LabProcess, needs_user_namespace

_FEATURES = (
    ("pairs of virtual interfaces (CONFIG_VETH)", "ip", "link add name probe type veth peer name other netns {other}"),
    (
        "the token bucket filter (CONFIG_NET_SCH_TBF)",
        "tc",
        "qdisc add dev lo root tbf rate 1mbit burst 65536 limit 65536",
    ),
    (
        "hierarchical token buckets for --queue fair (CONFIG_NET_SCH_HTB)",
        "tc",
        "qdisc replace dev lo root handle 1: htb",
    ),
    (
        "packet filters as classifiers for --queue fair (CONFIG_NET_CLS_BPF)",
        "tc",
        "filter add dev lo parent 1: protocol ip prio 1 bpf bytecode '1,6 0 0 65537'",
    ),
    ("policy routing (CONFIG_IP_MULTIPLE_TABLES)", "ip", "rule add from 10.0.0.1 lookup 1000"),
)
_SETTINGS = (
    (
        "ECMP by chosen fields (CONFIG_IP_ROUTE_MULTIPATH, Linux 5.14)",
        "/proc/sys/net/ipv4/fib_multipath_hash_fields",
        "55",
    ),
)


def missing() -> list[str]:
    """Everything that prevents a lab; nothing if one can be made."""
    try:
        holder = LabProcess.hold(2)
    except LabError as problem:
        if not needs_user_namespace():
            return [f"root may not create network namespaces here ({problem}): give the container CAP_SYS_ADMIN"]
        who = "users" if os.geteuid() else "root without CAP_SYS_ADMIN and CAP_NET_ADMIN"
        remedy = "run as root" if os.geteuid() else "give the container both"
        return [f"{who} may not create user and network namespaces here ({problem}): {remedy}"]
    found = []
    with holder:
        for feature, tool, line in _FEATURES:
            try:
                holder.ask(batches=[(0, tool, [line.format(other=held(holder.holder, 1))])])
            except LabError:
                found.append(f"the kernel lacks {feature}: load the module, or use a kernel that has it")
        for feature, path, value in _SETTINGS:
            try:
                holder.ask(settings=[(0, {path: value})])
            except LabError:
                found.append(f"the kernel lacks {feature}: use a kernel that has it")
    return found
