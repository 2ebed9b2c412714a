"""What Slurm's plugin and scripts ask. Bodies are forms and answers are lines, which Lua and shells send and read.

The type of the forms is one that no page of another site can send (`application/vnd.ropewalk.form`).
"""

from __future__ import annotations

import asyncio
import re
import time
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request, Response, get, post

from ropewalk.serve.answers import job_document
from ropewalk.serve.http.ask import AnyRequest, answered, body_of, change, read, service_of
from ropewalk.serve.http.routes import ROLE
from ropewalk.serve.outcome import Refused
from ropewalk.serve.problems import Problem
from ropewalk.serve.slurm.act import new_token, submission
from ropewalk.serve.slurm.bridge import Bridge
from ropewalk.serve.slurm.importing import read_import
from ropewalk.serve.slurm.request import JobRequest, of_form
from ropewalk.serve.slurm.submit import Decision, job_answered, not_asked, refused
from ropewalk.serve.state import State

SUBMITS, READS, OPERATES = {ROLE: "submit"}, {ROLE: "read"}, {ROLE: "operate"}
MOST_FIELDS = 64
LONGEST_WAIT_S = 20.0
LOOK_S = 0.05
APPEARS_S = 0.3
"""After so long a job that was submitted is in Slurm's list."""


@post("/v1/slurm/submit", opt=SUBMITS, name="post-slurm-submit", status_code=200)
async def submit(request: Request[Any, Any, Any]) -> Response[str]:
    """Servers for a job that is being submitted to Slurm."""
    bridge, form = bridge_of(request), await form_of(request)
    per_server = await read(request, lambda state: state.plant.gpus_per_server)
    found = of_form(form, per_server, bridge.settings.partitions)
    if not isinstance(found, JobRequest):
        asyncio.get_running_loop().call_later(APPEARS_S, bridge.hint)
        return _lines(not_asked(found))
    token = new_token()
    try:
        done = await change(request, submission(found, per_server, token))
    except Refused as refusal:
        return _lines(refused(refusal.code, str(refusal)))
    return _lines(job_answered(found, token, done.document))


@post("/v1/slurm/started", opt=SUBMITS, name="post-slurm-started", status_code=200)
async def started(request: Request[Any, Any, Any]) -> Response[str]:
    """A job is about to start in Slurm: looks at Slurm's list, and waits until the job's rules are in place."""
    bridge, form = bridge_of(request), await form_of(request)
    deadline = time.monotonic() + min(_seconds(form.get("wait", "")), LONGEST_WAIT_S)
    external = f"slurm:{_number(form)}"
    while True:
        job = await read(request, partial(_bound, external=external))
        if job is None:
            await asyncio.to_thread(bridge.wait_for_round, max(0.0, deadline - time.monotonic()))
            job = await read(request, partial(_bound, external=external))
        rules = "none" if job is None else await _rules(request, job["id"])
        if rules != "pending" or time.monotonic() > deadline:
            break
        await asyncio.sleep(LOOK_S)
    if job is None:
        return Response("job none\n", media_type="text/plain")
    guarantee = (job["allocation"] or {}).get("guarantee", "none")
    return Response(f"job {job['id']}\nguarantee {guarantee}\nrules {rules}\n", media_type="text/plain")


@post("/v1/slurm/ended", opt=SUBMITS, name="post-slurm-ended", status_code=200)
async def ended(request: Request[Any, Any, Any]) -> Response[str]:
    """A hint that a job has ended: Slurm's list is looked at soon."""
    bridge, form = bridge_of(request), await form_of(request)
    _number(form)
    bridge.hint()
    return Response("noted yes\n", media_type="text/plain")


@post("/v1/slurm/alive", opt=SUBMITS, name="post-slurm-alive", status_code=200)
async def alive(request: Request[Any, Any, Any]) -> Response[str]:
    """Whether the controller manages Slurm's jobs."""
    bridge_of(request)
    return Response("alive yes\n", media_type="text/plain")


@post("/v1/slurm/import", opt=OPERATES, name="post-slurm-import", status_code=200)
async def take_over(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Adopt jobs that run already, as `ropewalk serve import-slurm` lists them."""
    adopted, known, left = [], [], []
    for operation in read_import(body_of(request)):
        external = operation.external or ""
        if await read(request, partial(_bound, external=external)) is not None:
            known.append(external)
            continue
        try:
            done = await change(request, operation)
        except Refused as refusal:
            left.append({"external": external, "why": str(refusal)})
        else:
            adopted.append({"external": external, "id": done.document["id"], "managed": done.document["managed"]})
    return answered({"adopted": adopted, "known": known, "left": left})


@get("/v1/slurm", opt=READS, name="get-slurm")
async def status(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Whether Slurm answers, and the state of its jobs."""
    return answered(bridge_of(request).status())


def bridge_of(request: AnyRequest) -> Bridge:
    found: Bridge | None = request.app.state.get("slurm")
    if found is None:
        raise Problem("not-ready", "the service does not manage Slurm", "start it with --slurm")
    return found


async def form_of(request: AnyRequest) -> dict[str, str]:
    """The fields of a form; what is not UTF-8 becomes question marks, for names are whatever users typed."""
    try:
        raw = (await request.body()).decode("ascii")
        pairs = parse_qsl(raw, keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Problem("malformed", "the body is not a form", "send key=value&key=value, percent-encoded") from None
    if len(dict(pairs)) < len(pairs):
        raise Problem("malformed", "a field is given twice", "give each once")
    return dict(pairs)


async def _rules(request: AnyRequest, job: str) -> str:
    rules = service_of(request).rules
    if rules is None:
        return "none"
    return str((await asyncio.to_thread(rules.rules_of_job, job)).get("rules_are", "none"))


def _bound(state: State, external: str) -> dict[str, Any] | None:
    """The live job that is bound to a number of Slurm's."""
    for job in state.jobs.values():
        if job.external == external and job.state == "running":
            return job_document(state.occupancy.plant, job)
    return None


def _number(form: dict[str, str]) -> int:
    text = form.get("job", "")
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise Problem("malformed", "job is not the number of a Slurm job", "send job=$SLURM_JOB_ID")
    return int(text)


def _seconds(text: str) -> float:
    return float(text) if re.fullmatch(r"[0-9]{1,3}", text) else 0.0


def _lines(decision: Decision) -> Response[str]:
    return Response(decision.text(), media_type="text/plain")


handlers = [submit, started, ended, alive, take_over, status]
