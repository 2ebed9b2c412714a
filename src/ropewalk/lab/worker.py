"""The process that holds a lab, and those that change one: each runs batches of `ip` and `tc` inside its namespaces.

    python -m ropewalk.lab.worker hold NODES root|user DOCUMENT    make namespaces, and keep them
    python -m ropewalk.lab.worker enter NODES HOLDER DOCUMENT      work in those that a holder keeps

Both read one JSON request per line and answer each with one line; an empty line stops a run. A holder whose requests
end before it was told to `keep` ends too, so a command that is killed while it builds a lab leaves nothing behind.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import astuple
from typing import Any

from ropewalk.lab.namespaces import (
    FIRST_DESCRIPTOR,
    NEW_NETWORK,
    NEW_USER,
    held,
    inside,
    join_user_namespace_of,
    move_to,
    unshare,
)
from ropewalk.lab.netlink import QueueCounters
from ropewalk.lab.priority import ahead
from ropewalk.lab.sampling import LinkSampler

STOP = "\n"
"""The line that stops a run under way: whoever asked for it does not wait any more."""
AT_ONCE = 16
"""Processes of `ip` and `tc` that run side by side."""


def main(arguments: list[str]) -> None:
    what, nodes, whose, _ = arguments
    try:
        if what == "hold":
            holder = hold(int(nodes), user=whose == "user")
        else:
            holder = int(whose)
            join_user_namespace_of(holder)
            move_to(held(holder, 0), NEW_NETWORK)  # from a user namespace there is no way back to the machine's own
        _say({"holder": holder, "inodes": [os.stat(held(holder, node)).st_ino for node in range(int(nodes))]})
    except OSError as problem:
        _say({"error": problem.strerror or str(problem)})
        return
    serve_while_wanted(holder, int(nodes))


def hold(nodes: int, *, user: bool) -> int:
    """Make so many network namespaces, in a user namespace of their own where we are not root; the holder is us."""
    if user:
        _become_root_of_a_user_namespace()
    for node in range(nodes):
        unshare(NEW_NETWORK)
        descriptor = os.open("/proc/self/ns/net", os.O_RDONLY)
        os.dup2(descriptor, FIRST_DESCRIPTOR + node, inheritable=False)
        os.close(descriptor)
    return os.getpid()


def serve_while_wanted(holder: int, nodes: int) -> None:
    """Answer requests, and end without a word when nobody reads the answers or the holder of the lab is gone."""
    try:
        serve(holder, nodes)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # closing it would fail once more
    except FileNotFoundError:
        if os.path.exists(held(holder, 0)):
            raise


def serve(holder: int, nodes: int) -> None:
    """Answer requests until they end, or until we are told to keep what we hold."""
    ranks = None
    for line in sys.stdin:
        if line == STOP:
            continue  # the run was over before
        request = json.loads(line)
        if "keep" in request:
            _detach()
            while True:
                signal.pause()
        if "job" in request:
            if ranks is not None:
                ranks.close()
            ranks = _connected(request["job"], holder)
        elif "run" in request:
            _say(_ran(ranks, request["run"], QueueCounters(holder, nodes)))
        elif "count" in request:
            _say(_counted(QueueCounters(holder, nodes)))
        elif "capture" in request:
            _capture(holder, nodes)
        elif "retransmitted" in request:
            _say({"retransmitted": _retransmitted(holder, nodes)})
        else:
            _say(answered(request, holder))


def _connected(job: str, holder: int) -> Any:
    """Ranks with all their connections, for a job that this program has written itself."""
    from ropewalk.lab.ranks import Ranks  # loads NumPy, which a holder does without

    try:
        ranks = Ranks(pickle.loads(base64.b64decode(job)), holder)
    except OSError as problem:
        remedy = "is a link down? See `ropewalk lab status --name NAME`"
        _say({"error": f"a connection between hosts cannot be opened ({problem.strerror or problem}): {remedy}"})
        return None
    _say({"connected": len(ranks.job.connections)})
    return ranks


def _ran(ranks: Any, limit_s: float, counters: QueueCounters) -> dict[str, Any]:
    """One run of the job: what the clock saw, what is wrong with the data, what links and the machine did meanwhile."""
    from ropewalk.lab.machine import Watch

    try:
        with LinkSampler(counters) as sampler, ahead() as priority:
            watch = Watch()
            ran = ranks.loop.run(limit_s)
            machine = {**watch.seen(), "priority": priority, "chain": ranks.loop.chain}
        samples = sampler.samples(ranks.loop.began)
    except RuntimeError as problem:
        return {"stuck": str(problem), "silent": getattr(problem, "silent", [])}
    finally:
        counters.close()
    return {**ran, "machine": machine, "samples": samples}


def _capture(holder: int, nodes: int) -> None:
    """Catch headers until the next request, which asks for what was caught."""
    from ropewalk.lab.capture import Capture  # loads NumPy, as the ranks do

    capture = Capture(holder, nodes)
    _say({"capturing": True})
    caught = capture.until_readable(sys.stdin.fileno())
    if sys.stdin.readline():  # else nobody asks any more
        _say({"caught": caught})


def _retransmitted(holder: int, nodes: int) -> int:
    """Segments that TCP has sent again, in all namespaces."""
    again = 0
    for node in range(nodes):
        with inside(held(holder, node)), open("/proc/thread-self/net/snmp") as table:
            names, values = (line.split() for line in table if line.startswith("Tcp:"))
        again += int(values[names.index("RetransSegs")])
    return again


def _counted(counters: QueueCounters) -> dict[str, Any]:
    try:
        read = counters.read(counters.raw())
    finally:
        counters.close()
    return {"counted": [[*end, *astuple(one)] for end, one in read.items()]}


def answered(request: dict[str, Any], holder: int) -> dict[str, Any]:
    """Do what a request asks: write settings of the kernel, then run batches; what they print is the answer.

    A batch is (node, `ip` or `tc`, its lines). Batches of one request run side by side.
    """
    try:
        for node, settings in request.get("settings", []):
            with inside(held(holder, node)):
                for path, value in settings.items():
                    _set(path, value)
        batches = request.get("batches", [])
        printed: list[str] = []
        for first in range(0, len(batches), AT_ONCE):
            printed += _printed(batches[first : first + AT_ONCE], holder)
    except OSError as problem:
        return {"error": f"{problem.strerror or problem}" + (f" ({problem.filename})" if problem.filename else "")}
    except RuntimeError as problem:
        return {"error": str(problem)}
    return {"printed": printed}


def _printed(batches: list[Any], holder: int) -> list[str]:
    started = []
    for node, tool, lines in batches:
        with inside(held(holder, node)):
            options = ["-json", "-s"] if _asks(lines) else []
            process = subprocess.Popen(
                [tool, *options, "-batch", "-"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        started.append((process, tool, lines))
    said = [process.communicate("\n".join(lines) + "\n") for process, _, lines in started]
    for (process, tool, lines), (_, error) in zip(started, said, strict=True):
        if process.returncode:
            raise RuntimeError(f"`{tool}` refused a line of {len(lines)}: {error.strip()}")
    return [out for out, _ in said]


def _asks(lines: list[str]) -> bool:
    """Does a batch ask for something, rather than change it?"""
    return bool(lines) and all(line.split()[1] in ("show", "get") for line in lines)


def _set(path: str, value: str) -> None:
    try:
        with open(path, "w") as setting:
            setting.write(value)
    except FileNotFoundError:
        if "/ipv6/" in path:
            return  # a kernel without IPv6 has nothing to turn off
        raise RuntimeError(f"this kernel has no setting {path}") from None
    except OSError as problem:
        raise RuntimeError(f"{path} cannot be set to {value} ({problem.strerror})") from None


def _become_root_of_a_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    unshare(NEW_USER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _detach() -> None:
    """Live on without the command that started us, in no folder and on no terminal."""
    _say({"kept": True})
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
