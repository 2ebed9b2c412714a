"""How long the planner's page waits for an estimate: one person, and many at once, with the memory of all processes.

Each session has a model and a cluster of its own, moves one slider (batch, servers or NIC speed) every few seconds and
waits for its estimate. With --fresh every change is another network, so that nothing known of the last one helps.

    python benchmarks/ui_sessions.py [--sessions 50] [--seconds 60] [--pause 10] [--fresh]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

from ropewalk.ui.process import resident_bytes

MODELS = (("llama3-8b", 4096), ("llama3-70b", 8192), ("mixtral-8x7b", 4096), ("gpt2-xl", 1024))
STEPS = {"batch": (128, 256, 512, 1024), "servers": (8, 16, 32, 64), "gbps": (100, 200, 400)}

WARMED = 4
"""Rounds over all models, and one of them again, so that processes that take turns see every model."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=10.0)
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ropewalk", "ui", "--no-open", "--port", "0", "--answers", folder]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert server.stderr is not None
                port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stderr.readline())[1])  # type: ignore[index]
                warm(port)
                for sessions in dict.fromkeys((1, asked.sessions)):
                    pause = 0.0 if sessions == 1 else asked.pause
                    waits, failed = together(port, sessions, asked.seconds, pause, asked.fresh)
                    report(sessions, waits, failed, resident_bytes(server.pid))
            finally:
                server.terminate()


def warm(port: int) -> None:
    """Everybody's models are known to every process, as after the first minute."""
    for number, (model, sequence) in enumerate((*MODELS, MODELS[0]) * WARMED):
        ask(
            http.client.HTTPConnection("127.0.0.1", port),
            Sliders(random.Random(number)).values(model, sequence),
            f"warm{number}",
        )


class Sliders:
    """Where the sliders of a session stand."""

    def __init__(self, drawn: random.Random) -> None:
        self._drawn = drawn
        self._at = {name: drawn.choice(steps) for name, steps in STEPS.items()}
        self._own_gbps = drawn.random()
        """Nobody else has this speed: sessions share no answers."""

    def move(self, *, fresh: bool) -> None:
        """One slider to another place."""
        name = self._drawn.choice(list(STEPS))
        self._at[name] = self._drawn.choice([one for one in STEPS[name] if one != self._at[name]])
        if fresh:
            self._own_gbps = self._drawn.random()

    def values(self, model: str, sequence: int) -> dict[str, object]:
        return {
            "model": model, "seq": sequence, "batch": self._at["batch"], "cluster": f"{self._at['servers']}x8",
            "device": "h100", "bandwidth": f"{self._at['gbps'] + self._own_gbps:.3f}Gbps", "fabric": "rails",
        }  # fmt: skip


def ask(connection: http.client.HTTPConnection, filled: dict[str, object], tab: str) -> int:
    body = json.dumps({"command": "plan", "values": filled})
    connection.request("POST", "/v1/ui/estimates", body, {"Content-Type": "application/json", "X-Tab": tab})
    reply = connection.getresponse()
    reply.read()
    return reply.status


def together(port: int, sessions: int, seconds: float, pause: float, fresh: bool) -> tuple[list[float], int]:
    """Seconds that every estimate took, and how many there were none for."""
    waits: list[float] = []
    failed = 0
    end = time.monotonic() + seconds

    def session(number: int) -> None:
        nonlocal failed
        drawn = random.Random(number)
        sliders, (model, sequence) = Sliders(drawn), MODELS[number % len(MODELS)]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        time.sleep(drawn.random() * pause)
        while time.monotonic() < end:
            sliders.move(fresh=fresh)
            if sessions == 1:  # one person looks at all models in turn
                model, sequence = MODELS[len(waits) % len(MODELS)]
            began = time.monotonic()
            if ask(connection, sliders.values(model, sequence), str(number)) == 200:
                waits.append(time.monotonic() - began)
            else:
                failed += 1
            time.sleep(pause)

    threads = [threading.Thread(target=session, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits, failed


def report(sessions: int, waits: list[float], failed: int, memory: float) -> None:
    ordered = sorted(waits)
    p50, p95 = (ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.95))
    print(
        f"{sessions} session{'s' * (sessions != 1)}: {len(waits)} estimates, p50 {p50:.2f} s, p95 {p95:.2f} s, "
        f"{failed} without an answer; {memory / 1e9:.2f} GB in all processes ({os.cpu_count()} cores)",
        flush=True,
    )


if __name__ == "__main__":
    main()
