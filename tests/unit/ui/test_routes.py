"""The pages over HTTP: what is open, what is refused, and that nothing changes by GET."""

from __future__ import annotations

import asyncio
import json
import re

import httpx
import pytest

from ropewalk.cli.ui import desk_of
from ropewalk.serve.http.settings import HttpSettings
from ropewalk.ui.application import pages_alone
from ropewalk.ui.asked import Asked
from ropewalk.ui.pages import asset

EVIL = "<script>alert(1)</script>"


class Asking:
    """A client of the application in this process; workers are not started."""

    def __init__(self, folder, *, no_auth=True):
        self.desk = desk_of(folder, 1, "60s", "4GB")
        self.app = pages_alone(self.desk, HttpSettings(no_auth=no_auth))

    def __call__(self, method, path, host="127.0.0.1:8788", **options):
        async def ask():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    return Asking(tmp_path_factory.mktemp("answers"))


def kept(ask, tmp_path, name="gpt2"):
    asked = Asked(("plan",), (name,))
    (tmp_path / "page.html").write_text("<p>page</p>")
    (tmp_path / "plan.json").write_text("{}")
    answer = {"step_time_s": 2.0, "mfu": 0.4, "strands": [{"name": "zero", "gain": 1.2, "said": "zero 3"}]}
    ask.desk.shelf.keep(asked, json.dumps(answer), tmp_path, 0.5)
    return asked.key


@pytest.mark.parametrize(
    "path", ["/ui", "/ui/plan", "/ui/ask/sync", "/ui/ask/cluster+replay", "/ui/compare", f"/ui/answers/{'0' * 32}"]
)
def test_shells_have_no_data_and_a_strict_policy(ask, path):
    reply = ask("GET", path)
    assert reply.status_code == 200
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "<script>" not in reply.text  # all scripts are files of ours
    assert "http://" not in reply.text.replace("http://www.w3.org", "")


def test_a_first_load_is_small(ask):
    page = ask("GET", "/ui/plan")
    names = re.findall(r"/ui/assets/([a-z.]+)", page.text)
    sent = len(page.content) + sum(len(asset(name).compressed) for name in names)
    assert "plan.js" in names
    assert sent < 60_000


def test_assets_are_served_once(ask):
    first = ask("GET", "/ui/assets/ui.js", headers={"Accept-Encoding": "gzip"})
    assert first.status_code == 200
    again = ask("GET", "/ui/assets/ui.js", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert ask("GET", "/ui/assets/nothing.js").status_code == 404
    assert ask("GET", "/ui/assets/..%2fasked.py").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"command": "plan", "values": {"model": "net.py:Net"}}, 422),
        ({"command": "plan", "values": {"model": "/etc/passwd"}}, 422),
        ({"command": "plan", "values": {"page": "x.html", "model": "gpt2"}}, 422),
        ({"command": "serve", "values": {}}, 422),
        ({"command": "lab run", "values": {}}, 422),
        ({"command": "plan"}, 400),
        ([], 400),
        ({"command": "plan", "values": {"model": "gpt2"}, "files": {"x.py": "AAAA"}}, 422),
        ({"command": "plan", "values": {"model": "gpt2"}, "files": {"x.yaml": "!"}}, 400),
        ({"command": EVIL, "values": {}}, 422),
    ],
)
def test_questions_that_may_not_be_asked(ask, body, status):
    reply = ask("POST", "/v1/ui/questions", json=body)
    assert reply.status_code == status
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.json()["error"]["message"]


def test_forms_of_other_sites_and_strange_hosts_are_refused(ask):
    body = {"command": "plan", "values": {"model": "gpt2"}}
    assert ask("POST", "/v1/ui/questions", json=body, headers={"Origin": "https://evil.example"}).status_code == 403
    assert ask("POST", "/v1/ui/questions", json=body, host="rebound.example").status_code == 403
    assert ask("POST", "/v1/ui/questions", data={"command": "plan"}).status_code == 415
    assert ask("GET", "/v1/ui/questions").status_code == 405


def test_an_answer_is_shown_framed_and_downloaded(ask, tmp_path):
    key = kept(ask, tmp_path)
    found = ask("GET", f"/v1/ui/answers/{key}").json()
    assert found["answer"]["step_time_s"] == 2.0
    framed = ask("GET", found["page"])
    assert framed.text == "<p>page</p>"
    assert "sandbox allow-scripts" in framed.headers["content-security-policy"]
    assert framed.headers["x-frame-options"] == "SAMEORIGIN"
    assert ask("GET", found["page"].replace("signature=", "signature=0")).status_code == 404
    assert "attachment" in ask("GET", f"/v1/ui/answers/{key}/plan").headers["content-disposition"]
    assert (
        ask("POST", "/v1/ui/questions", json={"command": "plan", "values": {"model": "gpt2"}}).json()["state"] == "done"
    )


def test_two_answers_beside_each_other(ask, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first, second = kept(ask, folders[0]), kept(ask, folders[1], "gpt2-xl")
    found = ask("GET", f"/v1/ui/compare?first={first}&second={second}").json()
    assert found["asked"]["differs"] == [{"option": "argument 1", "first": "gpt2", "second": "gpt2-xl"}]
    assert found["strands"][0]["first"] == 1.2
    assert ask("GET", f"/v1/ui/compare?first={first}&second={'0' * 32}").status_code == 404


@pytest.mark.parametrize(
    "path", ["/ui/nothing", "/ui/jobs/j1", "/ui/ask/x%3Cimg", f"/ui/framed/{'0' * 32}?signature=0", "/ui/ask/"]
)
def test_links_that_lead_nowhere_show_a_page(ask, path):
    reply = ask("GET", path)
    assert reply.status_code == 404
    assert reply.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "<h1>There is no " in reply.text
    assert "<img" not in reply.text


def test_names_of_users_are_text_in_pages(ask):
    assert EVIL not in ask("GET", f"/ui/answers/{EVIL}").text


def test_where_tokens_are_asked_for_a_browser_opens_the_pages_without_one(tmp_path):
    ask = Asking(tmp_path, no_auth=False)
    for path in ("/ui", "/ui/plan", "/ui/compare", "/ui/assets/ui.js", f"/ui/answers/{'0' * 32}"):
        assert ask("GET", path).status_code == 200
    for path in ("/v1/ui/choices", "/v1/ui/recent", f"/v1/ui/answers/{'0' * 32}"):
        assert ask("GET", path).status_code == 401
    assert ask("POST", "/v1/ui/questions", json={"command": "cost", "values": {"model": "gpt2"}}).status_code == 401
