"""Routes of the pages: shells and assets open to everybody, questions and answers by role, changes by POST alone."""

from __future__ import annotations

import asyncio
import base64
import binascii
from pathlib import Path
from typing import Any

from litestar import Request, Response, get, post

from ropewalk.documents import parse_json
from ropewalk.errors import InputError
from ropewalk.export.of_plan import EXPORTS
from ropewalk.serve.http.ask import AnyRequest, answered, body_of, principal_of
from ropewalk.serve.http.routes import ROLE
from ropewalk.serve.problems import Problem, too_many
from ropewalk.ui import pages
from ropewalk.ui.compare import compare
from ropewalk.ui.desk import Desk
from ropewalk.ui.model_list import models, options_of_planner
from ropewalk.ui.pool import QueueFull
from ropewalk.ui.process import WorkerLost
from ropewalk.ui.quick import Superseded

READS = {ROLE: "read"}
HTML = "text/html"  # the framework adds the charset
SHELL_HEADERS = {"Content-Security-Policy": pages.POLICY, "Cache-Control": "no-cache"}
WAIT_S = 20.0
"""How long a request for news about a question is held open."""


def desk_of(request: AnyRequest) -> Desk:
    found: Desk = request.app.state.desk
    return found


def user_of(request: AnyRequest) -> str:
    """Whose turn it is: the token, and the tab that says who it is."""
    tab = request.headers.get("x-tab", "")
    return f"{principal_of(request).actor}/{tab[:40]}"


def page(request: AnyRequest, template: str, status: int = 200, **context: Any) -> Response[str]:
    """A shell; where a controller runs, it links to the page of its cluster."""
    live = hasattr(request.app.state, "service")
    made = pages.shell(template, live=live, **context)
    return Response(made, media_type=HTML, headers=SHELL_HEADERS, status_code=status)


def missing(request: AnyRequest, title: str, remedy: str) -> Response[str]:
    """What somebody sees who follows a link that leads nowhere."""
    return page(request, "missing.html", 404, title=title, remedy=remedy)


@get("/", name="get-root")
async def root(request: Request[Any, Any, Any]) -> Response[bytes]:
    return Response(b"", status_code=302, headers={"Location": "/ui/"})


@get("/ui", name="get-ui")
async def home(request: Request[Any, Any, Any]) -> Response[str]:
    forms = [{"name": name, "about": form.about} for name, form in desk_of(request).forms.items() if name != "plan"]
    return page(request, "home.html", forms=forms)


@get("/ui/plan", name="get-ui-plan")
async def planner(request: Request[Any, Any, Any]) -> Response[str]:
    return page(request, "plan.html")


@get("/ui/ask/{name:str}", name="get-ui-ask")
async def ask_page(request: Request[Any, Any, Any]) -> Response[str]:
    name = str(request.path_params["name"]).replace("+", " ")
    try:
        return page(request, "ask.html", form=desk_of(request).form(name), name=name)
    except InputError as problem:
        title, _, remedy = str(problem).partition(": ")
        return missing(request, title[:1].upper() + title[1:], f"{remedy[:1].upper()}{remedy[1:]}.")


@get(["/ui/{path:path}", "/ui/ask", "/ui/answers", "/ui/framed"], name="get-ui-missing")
async def missing_page(request: Request[Any, Any, Any]) -> Response[str]:
    return missing(request, "There is no such page", "The link is wrong, or made for another version.")


@get("/ui/answers/{key:str}", name="get-ui-answer")
async def answer_page(request: Request[Any, Any, Any]) -> Response[str]:
    return page(request, "answer.html", key=str(request.path_params["key"])[:64])


@get("/ui/compare", name="get-ui-compare")
async def compare_page(request: Request[Any, Any, Any]) -> Response[str]:
    return page(request, "compare.html")


@get("/ui/assets/{name:str}", name="get-ui-asset")
async def asset(request: Request[Any, Any, Any]) -> Response[bytes]:
    try:
        found = pages.asset(str(request.path_params["name"]))
    except KeyError:
        raise Problem("not-found", "there is no such asset", "load the page again") from None
    headers = {"ETag": f'"{found.tag}"', "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(b"", status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, media_type=found.kind, headers=headers | {"Content-Encoding": "gzip"})
    return Response(found.body, media_type=found.kind, headers=headers)


@get("/ui/framed/{key:str}", name="get-ui-framed")
async def framed(request: Request[Any, Any, Any]) -> Response[bytes] | Response[str]:
    """The page that the command has written, for a frame; the link is signed, because frames send no token."""
    desk, key = desk_of(request), str(request.path_params["key"])
    signature = str(request.query_params.get("signature", ""))
    shown = desk.shelf.has(key) and desk.shelf.is_signed(key, signature)
    path = desk.shelf.page(key) if shown else None
    if path is None:
        return missing(request, "There is no such answer", "Its link is incomplete, or the answer is no longer kept.")
    headers = {
        "Content-Security-Policy": pages.FRAMED,
        "X-Frame-Options": "SAMEORIGIN",
        "Cache-Control": "private, max-age=60",
    }
    return Response(await asyncio.to_thread(path.read_bytes), media_type=HTML, headers=headers)


@get("/v1/ui/choices", opt=READS, name="get-choices")
async def choices(request: Request[Any, Any, Any]) -> Response[bytes]:
    """What the planner's form offers: models, devices, networks, stacks, precisions."""
    exports = [{"name": name, "about": one.about} for name, one in EXPORTS.items()]
    return answered({"models": await asyncio.to_thread(models), "exports": exports, **options_of_planner()})


@get("/v1/ui/recent", opt=READS, name="get-recent")
async def recent(request: Request[Any, Any, Any]) -> Response[bytes]:
    return answered({"answers": await asyncio.to_thread(desk_of(request).shelf.recent)})


@post("/v1/ui/estimates", opt=READS, name="post-estimates", status_code=200)
async def estimate(request: Request[Any, Any, Any]) -> Response[bytes]:
    """An estimate of the planner, within a second or two; with `explain`, why another strategy is not the best."""
    desk = desk_of(request)
    name, values, files = _form_of(await request.body())
    # What is asked about an estimate does not take the place of the next one.
    user = user_of(request) + ("/why" if values.get("explain") else "")
    if name != "plan":
        raise Problem("invalid", f"{name!r} has no estimates", "ask for an estimate of plan")
    try:
        return answered(await desk.estimates.ask(desk.asked(name, values, files), user))
    except Superseded:
        raise Problem("conflict", "a newer question has taken its place", "wait for that one") from None
    except (InputError, WorkerLost) as problem:
        raise Problem("invalid", str(problem)) from None
    except QueueFull as full:
        raise too_many(str(full), full.retry_s) from None


@post("/v1/ui/questions", opt=READS, name="post-questions")
async def ask(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Queue a question; the same one that was answered before is there at once."""
    desk = desk_of(request)
    name, values, files = _form_of(await request.body())
    try:
        asked = desk.asked(name, values, files)
        if desk.shelf.has(asked.key):
            return answered(_kept(desk, asked.key), 200)
        work = desk.ask(asked, user_of(request))
    except InputError as problem:
        raise Problem("invalid", str(problem)) from None
    except QueueFull as full:
        raise too_many(str(full), full.retry_s) from None
    return answered(work.as_document(), 202)


@get("/v1/ui/questions/{key:str}", opt=READS, name="get-question")
async def question(request: Request[Any, Any, Any]) -> Response[bytes]:
    """How far a question is; with ?wait=1 held open until there is news."""
    desk, key = desk_of(request), str(request.path_params["key"])
    work = desk.pool.work(key)
    if work is not None and not work.ended and request.query_params.get("wait"):
        changed = work.changed
        try:
            async with asyncio.timeout(WAIT_S):
                await changed.wait()
        except TimeoutError:
            pass
    if desk.shelf.has(key):
        return answered(_kept(desk, key))
    if work is None:
        raise _unknown(key)
    return answered(work.as_document())


@post("/v1/ui/questions/{key:str}/cancel", opt=READS, name="post-question-cancel", status_code=200)
async def cancel(request: Request[Any, Any, Any]) -> Response[bytes]:
    desk, key = desk_of(request), str(request.path_params["key"])
    return answered({"id": key, "cancelled": desk.pool.cancel(key, user_of(request))})


@get("/v1/ui/answers/{key:str}", opt=READS, name="get-answer")
async def answer(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The whole answer of a command, as JSON."""
    desk, key = desk_of(request), str(request.path_params["key"])
    if not desk.shelf.has(key):
        raise _unknown(key)
    return answered({**_kept(desk, key), "answer": await asyncio.to_thread(desk.shelf.answer, key)})


@get("/v1/ui/answers/{key:str}/plan", opt=READS, name="get-answer-plan")
async def plan_file(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The plan file of an answer."""
    desk, key = desk_of(request), str(request.path_params["key"])
    path = desk.shelf.plan(key) if desk.shelf.has(key) else None
    if path is None:
        raise _unknown(key)
    return _download(path, "plan.json", "application/json")


@get("/v1/ui/answers/{key:str}/page", opt=READS, name="get-answer-page")
async def page_file(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The page of an answer as the file that the command writes."""
    desk, key = desk_of(request), str(request.path_params["key"])
    path = desk.shelf.page(key) if desk.shelf.has(key) else None
    if path is None:
        raise _unknown(key)
    return _download(path, "answer.html", HTML)


@post("/v1/ui/answers/{key:str}/exports", opt=READS, name="post-exports")
async def export(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The plan of an answer for another tool: {"to": "megatron"}; the file is that of the question that this makes."""
    desk, key = desk_of(request), str(request.path_params["key"])
    to = str(body_of(request).get("to"))
    if not desk.shelf.has(key):
        raise _unknown(key)
    if to not in EXPORTS:
        raise Problem("invalid", f"a plan cannot be written as {to[:40]!r}", f"use one of {', '.join(EXPORTS)}")
    try:
        return answered(desk.export(key, to, user_of(request)).as_document(), 202)
    except InputError as problem:
        raise Problem("invalid", str(problem)) from None
    except QueueFull as full:
        raise too_many(str(full), full.retry_s) from None


@get("/v1/ui/answers/{key:str}/export", opt=READS, name="get-export")
async def export_file(request: Request[Any, Any, Any]) -> Response[bytes]:
    """What an export has written, as an archive."""
    desk, key = desk_of(request), str(request.path_params["key"])
    path = desk.shelf.export(key) if desk.shelf.has(key) else None
    if path is None:
        raise _unknown(key)
    return _download(path, "export.zip", "application/zip")


@get("/v1/ui/compare", opt=READS, name="get-compare")
async def compared(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Two answers beside each other."""
    desk = desk_of(request)
    keys = [str(request.query_params.get(name, "")) for name in ("first", "second")]
    for key in keys:
        if not desk.shelf.has(key):
            raise _unknown(key)
    questions = [desk.shelf.question(key) for key in keys]
    answers = await asyncio.to_thread(lambda: tuple(desk.shelf.answer(key) for key in keys))
    return answered(compare(questions[0], questions[1], (answers[0], answers[1])))


def _kept(desk: Desk, key: str) -> dict[str, Any]:
    question = desk.shelf.question(key)
    signed = f"/ui/framed/{key}?signature={desk.shelf.sign(key)}"
    return {
        "id": key, "state": "done", "progress": {}, "failure": None, **question,
        "page": signed if desk.shelf.page(key) else None, "plan": desk.shelf.plan(key) is not None,
    }  # fmt: skip


def _form_of(body: bytes) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """A filled-in form: {"command", "values", "files": {name: base64}}."""
    try:
        found = parse_json(body.decode(), "the request", InputError)
    except (InputError, UnicodeDecodeError) as problem:
        raise Problem("malformed", str(problem), "send a JSON object") from None
    if (
        not isinstance(found, dict)
        or not isinstance(found.get("command"), str)
        or not isinstance(found.get("values"), dict)
    ):
        raise Problem("malformed", "a question has a command and values", 'send {"command": "plan", "values": {…}}')
    sent = found.get("files") or {}
    if not isinstance(sent, dict) or not all(isinstance(text, str) for text in sent.values()):
        raise Problem("malformed", "files are an object of names and base64", "send it like that")
    try:
        return found["command"], found["values"], {str(n): base64.b64decode(t, validate=True) for n, t in sent.items()}
    except (binascii.Error, ValueError):
        raise Problem("malformed", "a file is not base64", "encode it") from None


def _unknown(key: str) -> Problem:
    return Problem(
        "not-found",
        f"there is no answer {key[:40]!r}",
        "ask the question again, by the link of the planner or by its command",
    )


def _download(path: Path, name: str, kind: str) -> Response[bytes]:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(path.read_bytes(), media_type=kind, headers=headers)


UI_ROUTES = [
    root, home, planner, ask_page, answer_page, compare_page, missing_page, asset, framed, choices, recent,
    estimate, ask, question, cancel, answer, plan_file, page_file, export, export_file, compared,
]  # fmt: skip
"""All routes of the pages."""
