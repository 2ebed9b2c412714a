"""Sound files of live clusters: what schedulers and devices print, what a controller and the pages keep, tokens."""

import json
import shutil
from pathlib import Path

from fuzz.sound_cluster_files import resealed, small_plant

SLURM = Path(__file__).parents[1] / "data" / "slurm"
PATTERN = """format: ropewalk pattern 1
gpus: 16
compute: 180ms
exchanges:
  - {collective: hierarchical-ring, size: 1.3GB, overlap: 90ms}
  - {collective: all-to-all, size: 64MB, group: 8, after: 20ms}
"""
PROFILE = """format: ropewalk pattern 1
period: 260ms
collective: hierarchical-ring
profile:
  - [0ms, 0Gbps]
  - [120ms, 40Gbps]
  - [200ms, 0Gbps]
"""
POD = {
    "metadata": {
        "name": "w-0", "namespace": "ml", "uid": "9c", "annotations": {"ropewalk.io/rank": "0"},
        "labels": {"ropewalk.io/job": "w", "ropewalk.io/pods": "2", "apps.kubernetes.io/pod-index": "1"},
    },
    "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}], "nodeName": "n1"},
    "status": {"phase": "Pending"},
}  # fmt: skip
PRINTED = (
    [{"priority": 100, "src": "10.0.0.1", "dst": "10.0.0.2", "dstlen": 31, "table": "1912602625", "protocol": "186"}],
    [{"dst": "default", "gateway": "172.16.0.1", "table": 1912602625, "metric": 20}],
    [{"flags": ["UP"], "addr_info": [{"local": "172.16.0.2", "prefixlen": 31}]}],
)


def _one_file(name, text, read):
    """A kind with one file, whose bytes stand here."""

    def made(folder):
        (folder / name).write_text(text)
        return lambda place: read(place / name)

    return made


def _pattern(path):
    from ropewalk.tenancy.pattern_file import read_pattern

    return read_pattern(path)


def _text(path):
    """What a program printed: bytes that are not UTF-8 are refused where the output is taken."""
    from ropewalk.documents.opening import decode
    from ropewalk.errors import ClusterError

    return decode(path.read_bytes(), "its output", ClusterError)


def _queue(path):
    from ropewalk.serve.slurm.importing import import_document, read_import
    from ropewalk.serve.slurm.queue import read_queue

    return read_import(import_document(read_queue(_text(path))))


def _nodes(path):
    from ropewalk.serve.slurm.nodes import read_nodes

    return read_nodes(_text(path))


def _pod(path):
    from ropewalk.documents import parse_json
    from ropewalk.errors import ClusterError
    from ropewalk.serve.kubernetes.extender import read_candidates
    from ropewalk.serve.kubernetes.pods import read_pod

    document = parse_json(_text(path), "the request", ClusterError)
    read_pod(document.get("Pod") if isinstance(document, dict) else document, "nvidia.com/gpu")
    return read_candidates(document, "nvidia.com/gpu")


def _printed(path):
    from ropewalk.errors import ClusterError
    from ropewalk.serve.rules.driver import DriverError
    from ropewalk.serve.rules.linux_state import parsed

    try:
        return parsed(_text(path), "leaf0")
    except DriverError as refusal:
        raise ClusterError(str(refusal)) from None


def _device(name):
    """What a driver has written for a device, read and replaced by a whole one."""

    def made(folder):
        from dataclasses import replace

        from ropewalk.serve.rules.driver import DriverError
        from ropewalk.serve.rules.making import rules_of
        from ropewalk.serve.rules.table import driver_named

        small, held, addresses = small_plant()
        addresses = replace(addresses, ports={gpu: f"swp{gpu % 4 + 1}" for gpu in range(small.gpus)})
        rules = [rule for rule in rules_of(small, "j5", held, addresses, 1) if rule.device == "leaf0"]
        driver_named(name, {"folder": str(folder)}, small, addresses).apply("leaf0", rules)

        def read(place):
            driver = driver_named(name, {"folder": str(place)}, small, addresses)
            try:
                seen = driver.present("leaf0").rules
                driver.remove("leaf0", seen)
                driver.apply("leaf0", rules)
            except DriverError as refusal:
                from ropewalk.errors import ClusterError

                raise ClusterError(str(refusal)) from None
            assert set(driver.present("leaf0").rules) >= set(rules), "a damaged document was not replaced"

        return read

    return made


def _token(folder):
    from ropewalk.serve.client import Client, token_of

    (folder / "token").write_text("rw_abcdefgh_" + "x" * 43 + "\n")

    def read(place):
        (place / "token").chmod(0o600)
        Client("http://127.0.0.1:1", token_of({}, place / "token"))

    return read


def _live(folder):
    from ropewalk.serve.state_file import StateFile

    small, _, _ = small_plant()

    def asked(path, method, where, body=None):
        from ropewalk.errors import ClusterError

        reply = StateFile(path, lambda: small, clock=lambda: 10.0).ask(method, where, body)
        if reply.status >= 400:
            raise ClusterError(reply.error["message"])
        return reply

    for job, gpus in enumerate((4, 4, 8)):
        asked(folder / "live.json", "POST", "/v1/jobs", {"name": f"a{job}", "gpus": gpus, "user": "u"})

    def read(place):
        path = place / "live.json"
        for where in ("/v1/status", "/v1/jobs", "/v1/queue", "/v1/history", "/v1/jobs/j1"):
            asked(path, "GET", where)
        asked(path, "POST", "/v1/what-if", {"gpus": 2})
        before = path.read_bytes()
        asked(path, "POST", "/v1/drain", {"parts": ["spine:spine0"], "note": ""})
        assert path.read_bytes() != before

    return read, resealed


def _store(folder):
    from ropewalk.serve.http.tokens import new_token
    from ropewalk.serve.operation import Submit
    from ropewalk.serve.service import open_writer
    from ropewalk.serve.settings import Settings
    from ropewalk.serve.store import open_store
    from ropewalk.serve.store.tokens import Token, add_token, tokens

    small, _, _ = small_plant()
    store = open_store(str(folder / "serve.db"))
    writer = open_writer(store, small, Settings("vclos")).start()
    for gpus in (4, 4, 8):
        writer.submit(Submit("job", gpus)).result()
    writer.close()
    made = new_token("ci", "submit")
    add_token(store, Token(made.id, made.hash, made.role, made.name, 1.0))
    store.close()
    for path in folder.iterdir():
        if path.name != "serve.db":
            path.unlink()

    def read(place):
        for path in place.iterdir():
            if path.name != "serve.db":
                path.unlink()
        opened = open_store(str(place / "serve.db"), writer=False)
        try:
            tokens(opened)
            open_writer(opened, small)
        finally:
            opened.close()

    return read


def _shelf(folder):
    """An answer that is damaged is as if it had never been kept."""
    from ropewalk.ui.asked import Asked
    from ropewalk.ui.shelf import Shelf

    written = folder / "written"
    written.mkdir()
    (written / "page.html").write_text("<p>page</p>")
    asked = Asked(("plan",), ("gpt2",))
    Shelf(folder / "shelf").keep(asked, '{"step_time_s": 1.5}', written, 0.25)
    for name in ("question.json", "answer.json", "page.html"):
        shutil.copyfile(folder / "shelf" / asked.key / name, folder / name)
    (folder / "secret").write_text((folder / "shelf" / ".secret").read_text())
    shutil.rmtree(folder / "shelf")
    shutil.rmtree(written)

    def read(place):
        shutil.rmtree(place / "shelf", ignore_errors=True)
        kept = place / "shelf" / asked.key
        kept.mkdir(parents=True)
        for name in ("question.json", "answer.json", "page.html"):
            shutil.copyfile(place / name, kept / name)
        shutil.copyfile(place / "secret", place / "shelf" / ".secret")
        shelf = Shelf(place / "shelf")
        assert shelf.is_signed("k", shelf.sign("k"))
        found = [one["id"] for one in shelf.recent()]
        if not shelf.has(asked.key):
            assert found == []
            raise _refused()
        assert found == [asked.key]
        assert shelf.question(asked.key)["command_line"] == "ropewalk plan gpt2"
        assert shelf.answer(asked.key) == {"step_time_s": 1.5}
        assert shelf.page(asked.key).read_text() == "<p>page</p>"

    return read


def _refused():
    from ropewalk.errors import InputError

    return InputError("there is no such answer")


SERVICE_FILES = {
    "pattern": _one_file("job.yaml", PATTERN, _pattern),
    "pattern-profile": _one_file("job.yaml", PROFILE, _pattern),
    "slurm-queue": _one_file("squeue.json", (SLURM / "squeue-22.05.json").read_text(), _queue),
    "slurm-nodes": _one_file("sinfo.json", (SLURM / "sinfo-22.05.json").read_text(), _nodes),
    "pod": _one_file("pod.json", json.dumps({"Pod": POD, "NodeNames": ["n1", "n2"]}), _pod),
    "device-linux": _one_file("ip.txt", "\n".join(map(json.dumps, PRINTED)), _printed),
    "device-rules": _device("files"),
    "device-sonic": _device("sonic"),
    "device-frr": _device("frr"),
    "token": _token,
    "live-state": _live,
    "live-database": _store,
    "kept-answer": _shelf,
}
