"""The pages in a real Chromium: planning, comparing, exporting, the live cluster; no errors, nothing inaccessible."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import CHROMIUM, PATIENCE_S, needs_browser
from slurm_machine import free_ports
from tiny_profiles import write_profile

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install 'ropewalk[web]'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core: pip install 'ropewalk[web]'")

pytestmark = needs_browser
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATIENT = Path(__file__).parents[1] / "reference" / "patient_ropewalk.py"


@contextmanager
def running(*words, folder):
    """A command that listens; answers its address."""
    environment = os.environ | {"XDG_STATE_HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    log = folder / f"{words[0]}.log"
    with (
        open(log, "w") as written,
        subprocess.Popen(
            [sys.executable, str(PATIENT), *words], env=environment, stderr=written, stdout=subprocess.DEVNULL
        ) as one,
    ):
        try:
            url = address(one, log)
            with urllib.request.urlopen(url + "/ui", timeout=PATIENCE_S) as reply:
                reply.read()
            yield url
        finally:
            one.terminate()
            one.wait(PATIENCE_S)


def address(one, log):
    """Where a command says that it listens: its socket is bound by then."""
    end = time.monotonic() + PATIENCE_S
    while (found := re.search(r"http://127\.0\.0\.1:\d+(?=\D)", log.read_text())) is None:
        assert one.poll() is None, f"it ended before it listened: {log.read_text()[-2000:]}"
        assert time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.05)
    return found[0]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=PATIENCE_S * 1000)
        yield made
        made.close()


@pytest.fixture(scope="module")
def planner(tmp_path_factory):
    with running("ui", "--no-open", "--port", "0", "--time-limit", "1h", folder=tmp_path_factory.mktemp("ui")) as url:
        yield url


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    words = ("--fabric", "leaf-spine:4x4x8", "--gpus-per-server", "4", "--no-auth", "--port", "0", "--timeout", "15min")
    with running("serve", "--database", f"sqlite:///{folder / 'serve.db'}", *words, folder=folder) as url:
        yield url


@contextmanager
def opened(browser, url, *, expected="", **options):
    """A page without errors on its console, other than those that have this text."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True, **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(url)
    yield page
    assert [text for text in said if not expected or expected not in text] == []
    context.close()


def estimates(page):
    return json.loads(page.evaluate("document.body.dataset.estimates ?? '[]'"))


def until(page, met, said="#problem"):
    """Wait for a condition; its policy forbids the page to run conditions that are sent as text."""
    end = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < end, page.inner_text(said)
        page.wait_for_timeout(50)


def estimate_number(page, number):
    """What the page says once it has had so many estimates."""
    until(page, lambda: len(estimates(page)) >= number)
    return page.inner_text("#headline")


def selected(page):
    return int(page.get_attribute("#cloud canvas", "data-selected"))


def estimate_after(page, act):
    before = len(estimates(page))
    act()
    return estimate_number(page, before + 1)


def seriously_inaccessible(page):
    found = axe.Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["target"]) for one in found if one["impact"] in ("serious", "critical")]


ALONE = "model=gpt2&device=h100&servers=2&batch=64&seq=1024&speed=400"


@contextmanager
def quiet(browser, planner, *, background=False, **options):
    """A page of a browser in which nothing is searched in the background unless asked for."""
    with opened(browser, f"{planner}/ui/compare", **options) as page:
        page.evaluate("value => { localStorage.background = value }", "on" if background else "off")
        yield page


@contextmanager
def estimated(browser, planner, query=ALONE, *, background=False, **options):
    """The planner with its first estimate."""
    with quiet(browser, planner, background=background, **options) as page:
        page.goto(f"{planner}/ui/plan?{query}")
        estimate_number(page, 1)
        yield page


def test_plan_move_sliders_prove_compare_export_reload(browser, planner):
    start = "model=llama3-70b&device=h100&servers=64&speed=400&batch=1024&seq=8192"
    with estimated(browser, planner, start) as page:
        first = page.inner_text("#headline")
        assert re.match(r"1\d\.\d+ s per step", first)
        seen = {first}
        for slider, key in (("#servers", "ArrowLeft"), ("#speed", "ArrowLeft"), ("#batch", "ArrowRight")):
            page.focus(slider)
            seen.add(estimate_after(page, lambda key=key: page.keyboard.press(key)))
        assert len(seen) == 4
        again = page.url
        assert "servers=32" in again
        page.goto(again)
        assert estimate_number(page, 1) in seen
    keys = []
    for query in (ALONE, ALONE.replace("speed=400", "speed=100")):
        with estimated(browser, planner, query) as page:
            page.click("#prove")
            page.wait_for_selector("#proved:not([hidden])")
            keys.append(page.get_attribute("#links a", "href").rpartition("/")[2])
            frame = page.frame_locator("#page")
            assert "per step" in frame.locator("h1").inner_text()
    with opened(browser, f"{planner}/ui/answers/{keys[0]}") as page:
        page.wait_for_selector("#links select")
        with page.expect_download() as waiting:
            page.select_option("#links select", "megatron")
        with zipfile.ZipFile(waiting.value.path()) as archive:
            assert archive.namelist() == ["exported.txt"]
        assert seriously_inaccessible(page) == []
    with opened(browser, f"{planner}/ui/compare?first={keys[0]}&second={keys[1]}") as page:
        page.wait_for_selector("#asked tr")
        assert "--bandwidth" in page.inner_text("#asked")
        page.wait_for_selector("#strand-rows tr")
        assert re.match(r"A step of the second takes .* longer than the .* of the first\.", page.inner_text("#brought"))
        assert page.get_attribute("#questions a", "href") == f"/ui/answers/{keys[0]}"
        assert seriously_inaccessible(page) == []


def test_dragging_selects_candidates_and_the_table_follows(browser, planner):
    with estimated(browser, planner) as page:
        canvas = page.locator("#cloud canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        before = page.inner_text("#candidates-fastest tbody")
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.1)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + box["height"] * 0.7, steps=4)
        page.mouse.up()
        until(page, lambda: selected(page) > 0)
        assert selected(page) < int(canvas.get_attribute("data-drawn"))
        assert f"{selected(page)} selected" in page.inner_text("#cloud .status")
        assert page.inner_text("#candidates-fastest tbody") != before
        canvas.focus()
        drawn = int(canvas.get_attribute("data-drawn"))
        page.keyboard.press("Enter")  # enlarges what is selected
        assert int(canvas.get_attribute("data-drawn")) < drawn
        page.keyboard.press("Home")
        assert int(canvas.get_attribute("data-drawn")) == drawn
        assert page.inner_text("#candidates-fastest tbody") == before


def test_candidates_are_selected_by_keyboard_alone(browser, planner):
    with estimated(browser, planner) as page:
        page.focus("#cloud canvas")
        page.keyboard.press("Space")
        counts = [selected(page)]
        for key in ["Shift+ArrowRight", "Shift+ArrowUp"] * 10 + ["ArrowLeft", "ArrowDown"] * 10:
            page.keyboard.press(key)
            counts.append(selected(page))
        assert max(counts) > 0
        assert len(set(counts)) > 1
        page.keyboard.press("Escape")
        assert selected(page) == 0
        assert "selected" not in page.inner_text("#cloud .status")


def test_filters_by_degree_survive_the_next_estimate(browser, planner):
    with estimated(browser, planner) as page:
        page.locator('#cloud [aria-label="Pipeline"] label').filter(has_text=re.compile("^1$")).click()
        assert all("pp " in row for row in page.inner_text("#candidates-fastest tbody").splitlines() if "dp" in row)
        page.focus("#batch")
        estimate_after(page, lambda: page.keyboard.press("ArrowRight"))
        one = page.locator('#cloud [aria-label="Pipeline"] label').filter(has_text=re.compile("^1$")).locator("input")
        assert not one.is_checked()


def test_why_not_another_strategy_is_told_before_any_search(browser, planner):
    with estimated(browser, planner) as page:
        other = page.inner_text("#candidates-fastest tbody tr:nth-child(3) td")
        page.click("#candidates-fastest tbody tr:nth-child(3) button")
        page.wait_for_selector("#why-parts.drawn svg")
        assert page.inner_text("#why-asked") == f"Why not {other}?"
        assert re.search(r"takes .*s, \d.* longer than", page.inner_text("#why-said"))
        assert seriously_inaccessible(page) == []
        page.click("#why-close")
        page.wait_for_selector("#why", state="hidden")


def test_a_search_runs_in_the_background_and_gives_way_to_a_change(browser, planner):
    query = "model=gpt2-medium&device=h100&servers=2&batch=64&seq=1024&speed=200"
    with estimated(browser, planner, query, background=True) as page:
        page.wait_for_selector("#proved:not([hidden])")
        assert "Searched and simulated" in page.inner_text("#state")
        page.focus("#speed")
        estimate_after(page, lambda: page.keyboard.press("ArrowRight"))
        assert "Estimate" in page.inner_text("#state")
        assert not page.is_visible("#proved")


def test_clusters_by_preset_with_thinner_uplinks_and_with_ports_to_wire(browser, planner):
    with estimated(browser, planner) as page:
        page.focus("#oversubscription")
        thin = estimate_after(page, lambda: page.keyboard.press("ArrowRight"))
        assert page.inner_text("#oversubscription-shown") == "2 to 1"
        estimate_after(page, lambda: page.select_option("[name=preset]", "dgx-a100"))
        assert page.inner_text("#headline") != thin
        assert "preset=dgx-a100" in page.url
        page.select_option("[name=preset]", "")
        page.fill("[name=fabric]", "wire")
        page.wait_for_selector("#state:has-text('Ports to wire')")
        assert not page.is_visible("#cloud")
        page.click("#prove")  # two servers have one peer each: four ports are too many
        page.wait_for_selector("#problem:has-text('ports per server')")


def test_a_model_is_asked_for_the_sequences_that_it_takes(browser, planner):
    with estimated(browser, planner) as page:
        estimate_after(page, lambda: page.fill("[name=model]", "resnet50"))
        assert not page.is_visible("#seq")
        assert "Samples per second" in page.inner_text("#numbers")
        estimate_after(page, lambda: page.fill("[name=model]", "llama3-8b"))
        page.focus("#seq")
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.wait_for_selector("#seq-shown:has-text('8\u202f192')")
        estimate_after(page, lambda: page.fill("[name=model]", "gpt2"))
        assert page.inner_text("#seq-shown") == "1\u202f024"  # it has no more positions


def test_a_profile_that_is_sent_along_is_the_model(browser, planner, tmp_path):
    measured = write_profile(tmp_path, layers=4)
    with estimated(browser, planner) as page:
        estimate_after(page, lambda: page.set_input_files("#file", measured))
        assert f"{measured.name} is the model" in page.inner_text("#file-note")
        assert re.search(r"MFU\s+–", page.inner_text("#numbers"))
        assert measured.name in page.evaluate("document.getElementById('printed').textContent")


def test_what_is_shown_after_a_refusal_is_said_to_be_older(browser, planner):
    with estimated(browser, planner, expected="status of 422") as page:
        page.fill("[name=model]", "gptx")
        page.wait_for_selector("#problem:has-text('did you mean')")
        assert page.inner_text("#state") == "The last answer, not for what is chosen now"
        assert page.text_content("#short") == "no estimate"  # what phones show in their bar
        page.goto(f"{planner}/ui/plan?model=gptx")
        page.wait_for_selector("#problem:has-text('did you mean')")
        assert page.inner_text("#headline") == "No estimate"
        assert seriously_inaccessible(page) == []


def test_the_answer_is_that_of_the_command(browser, planner, tmp_path):
    query = "model=gpt2&device=h100&servers=1&batch=32&seq=512&speed=400"
    with estimated(browser, planner, query) as page:
        shown = page.evaluate("document.getElementById('headline').textContent")
    words = "plan --batch 32 --seq 512 --dtype bf16 --cluster 1x8 --device h100 --bandwidth 400Gbps --fabric rails gpt2"
    done = subprocess.run(
        [sys.executable, "-m", "ropewalk", *words.split(), "--quick", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    step_s = json.loads(done.stdout)["step_time_s"]
    assert shown == f"{float(f'{step_s * 1e3:.4g}'):g} ms per step"


def test_a_study_from_its_form_looks_as_its_file(browser, planner):
    with opened(browser, f"{planner}/ui/ask/sync") as page:
        page.fill("[name=logical]", "ring,hips")
        page.fill("[name=physical]", "torus:4x4")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/answers/*")
        page.wait_for_selector("#page:not([hidden])")
        assert "--physical torus:4x4" in page.inner_text("#asked")
        page.frame_locator("#page").locator(".plot.drawn svg").first.wait_for()
        assert seriously_inaccessible(page) == []


def test_on_a_phone_numbers_stand_behind_their_bars_and_titles_are_whole(browser, planner):
    with opened(browser, f"{planner}/ui/ask/collective?kind=allreduce&named=torus:4x4") as page:
        page.set_viewport_size({"width": 420, "height": 900})
        page.click("#ask .button")
        page.wait_for_url("**/ui/answers/*")
        page.wait_for_selector("#page:not([hidden])")
        page.goto(planner + page.get_attribute("#page", "src"))
        page.wait_for_selector(".plot.drawn svg")
        assert page.locator(".plot text:has-text('GB/s')").count() > 5
        over = """() => [...document.querySelectorAll(".plot text")].filter((text) => text.textContent.includes("%"))
          .filter((text) => [...text.ownerSVGElement.querySelectorAll("g rect")].some((bar) => {
            const [own, other] = [text, bar].map((one) => one.getBoundingClientRect());
            const middle = (own.top + own.bottom) / 2;
            return other.top < middle && middle < other.bottom && own.left < other.right - 1;
          })).map((text) => text.textContent)"""
        assert page.locator(".plot text:has-text('%')").count() > 5
        assert page.evaluate(over) == []
        outside = """() => [...document.querySelectorAll(".plot text")].filter((text) => {
          const [own, figure] = [text, text.ownerSVGElement].map((one) => one.getBoundingClientRect());
          return own.left < figure.left - 1 || own.right > figure.right + 1;
        }).map((text) => text.textContent)"""
        assert page.evaluate(outside) == []
        assert seriously_inaccessible(page) == []  # tables that scroll can be reached by keyboard


def test_networks_beside_each_other_have_a_headline_a_plan_and_exports(browser, planner):
    with estimated(browser, planner, f"{ALONE}&network=rail-only") as page:
        page.click("#prove")
        page.wait_for_selector("#proved:not([hidden])")
        assert re.search(r"ms per step on (own|rail-only)$", page.inner_text("#headline"))
        assert "is recommended" in page.inner_text("#strategy")
        with page.expect_download() as waiting:
            page.select_option("#links select", "pytorch")
        with zipfile.ZipFile(waiting.value.path()) as archive:
            assert archive.namelist() == ["exported.py"]


def test_a_form_takes_the_files_that_its_values_name(browser, planner, tmp_path):
    (tmp_path / "hall.yaml").write_text("servers:\n- {count: 2, gpus: 4, device: a100}\nnetwork: leaf-spine:2x2x4\n")
    with opened(browser, f"{planner}/ui/ask/collective") as page:
        page.fill("[name=kind]", "allreduce")
        page.fill("[name=named]", "hall.yaml")
        page.set_input_files("#files", tmp_path / "hall.yaml")
        page.click("#ask .button")
        page.wait_for_url("**/ui/answers/*")
        page.wait_for_selector("#page:not([hidden])")
        assert page.inner_text("#asked") == "ropewalk collective allreduce hall.yaml"


def test_the_example_of_a_form_fills_it_in_and_can_be_asked(browser, planner):
    with opened(browser, f"{planner}/ui/ask/fabric") as page:
        page.click("a:has-text('ropewalk fabric')")
        page.wait_for_url("**/ui/ask/fabric?*")
        until(page, lambda: page.input_value("[name=bandwidth]") == "100Gbps")
        assert page.is_visible("[name=bandwidth]")  # its panel is open
        page.click("#ask .button")
        page.wait_for_url("**/ui/answers/*")
        page.wait_for_selector("#page:not([hidden])")
        assert page.inner_text("#asked") == "ropewalk fabric --bandwidth 100Gbps leaf-spine:16x8x4"


def test_a_link_that_leads_nowhere_shows_a_page_that_leads_on(browser, planner):
    with opened(browser, f"{planner}/ui/nothing", expected="status of 404") as page:
        assert page.inner_text("h1") == "There is no such page"
        assert seriously_inaccessible(page) == []
        page.click("text=All pages and answers")
        page.wait_for_selector("text=Studies")


def test_what_is_wrong_is_said_where_it_was_typed(browser, planner):
    with opened(browser, f"{planner}/ui/ask/sync") as page:
        page.fill("[name=logical]", "rong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#problem:not([hidden])")
        assert "did you mean" in page.inner_text("#problem")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/ui/", "/ui/plan", "/ui/ask/plan", "/ui/compare"])
def test_pages_fit_a_phone_and_can_be_read_by_everybody(browser, planner, path, scheme):
    with quiet(browser, planner, color_scheme=scheme) as page:
        page.set_viewport_size({"width": 420, "height": 900})
        page.goto(planner + path)
        page.wait_for_load_state("networkidle")
        if path == "/ui/plan":
            estimate_number(page, 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 420
        assert seriously_inaccessible(page) == []


def test_submit_watch_drain_and_end_on_the_live_page(browser, cluster):
    with opened(browser, f"{cluster}/ui/cluster") as page:
        page.wait_for_selector("#connection:has-text('live')")
        page.fill("#what-if [name=gpus]", "16")
        page.click("#what-if button:has-text('Look ahead')")
        page.wait_for_selector("#would:has-text('would start now')")
        page.click("#submit")
        page.wait_for_selector("#running a")
        page.wait_for_selector("#headline:has-text('16 of 32 GPUs')")
        page.fill("#what-if [name=gpus]", "16")
        page.click("#what-if button:has-text('Look ahead')")
        page.wait_for_selector("#would:has-text('What helps: ')")
        page.fill("#operate [name=part]", "server:server7")
        page.click("[value=drain]")
        page.wait_for_selector(".map i.out")
        assert seriously_inaccessible(page) == []
        page.click("#running a")
        page.wait_for_selector("#place tr")
        assert "dedicated links" in page.inner_text("#facts")
        asked = []
        page.once("dialog", lambda dialog: asked.append(dialog.message) or dialog.accept())
        page.click("text=End it")
        page.wait_for_selector("#state:has-text('ended')")
        assert "16 GPUs" in asked[0]
        assert seriously_inaccessible(page) == []


def test_a_job_that_waits_says_what_is_in_its_way_and_one_that_lost_links_gets_them_back(browser, tmp_path):
    def post(path, body):
        sent = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(sent, timeout=PATIENCE_S) as reply:
            return json.loads(reply.read())

    words = ("serve", "--database", f"sqlite:///{tmp_path / 'serve.db'}", "--no-auth", "--port", "0")
    with running(*words, "--fabric", "fat-tree:8", "--gpus-per-server", "4", folder=tmp_path) as url:
        first = post("/v1/jobs", {"name": "over pods", "gpus": 32, "expected_s": 3600})["id"]
        waits = post("/v1/jobs", {"name": "all of it", "gpus": 128})["id"]
        with opened(browser, f"{url}/ui/jobs/{waits}") as page:
            page.wait_for_selector("#ahead a")
            assert re.search(r"it starts in \S+ (min|s) at the earliest", page.inner_text("#because"))
            assert page.get_attribute("#ahead a", "href") == f"/ui/jobs/{first}"
        with opened(browser, f"{url}/ui/jobs/{first}") as page:
            page.wait_for_selector("#numbers:has-text('32 + 32 to cores')")
            assert len(page.query_selector_all("#place tr")) == 1  # servers that give the same GPUs
            post("/v1/failures", {"parts": ["spine:agg0.0"]})
            page.wait_for_selector("#facts:has-text('it has lost dedicated links')")
            post("/v1/repairs", {"parts": ["spine:agg0.0"]})
            page.wait_for_selector("#facts:has-text('its NICs never wait for others')")
        with opened(browser, f"{url}/ui/cluster") as page:
            page.wait_for_selector(".map i.link")
            assert page.locator(".map i.link.none").count() == 0  # spines of other pods have no place


def test_nothing_ends_or_fails_before_it_is_confirmed(browser, cluster):
    with opened(browser, f"{cluster}/ui/cluster") as page:
        page.wait_for_selector("#connection:has-text('live')")
        asked = []
        page.on("dialog", lambda dialog: asked.append(dialog.message) or dialog.dismiss())
        sent = []
        page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        page.fill("#operate [name=part]", "server:server6")
        page.click("[value=failures]")
        assert asked == ["server:server6 has failed: jobs on it lose what they hold there."]
        assert sent == []
        page.click("[value=drain]")
        page.wait_for_selector("#done:has-text('Done')")
        page.click("[value=restore]")
        until(page, lambda: len(sent) == 2)


def test_a_job_that_there_is_none_of_is_said_in_the_headline(browser, cluster):
    with opened(browser, f"{cluster}/ui/jobs/j999", expected="status of 404") as page:
        page.wait_for_selector("#headline:has-text('There is no job j999')")
        assert not page.is_visible("#place")
        assert seriously_inaccessible(page) == []


def test_speed_promised_and_measured_load_of_links_and_the_day(browser, cluster):
    def post(path, body):
        sent = urllib.request.Request(cluster + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(sent, timeout=PATIENCE_S) as reply:
            return json.loads(reply.read())

    name = "<img src=x onerror=alert(1)>"
    job = post("/v1/jobs", {"name": name, "gpus": 16, "promised_step_s": 0.4})["id"]
    post(f"/v1/jobs/{job}/progress", {"step": 40, "steps": 40, "seconds": 20.0})
    with opened(browser, f"{cluster}/ui/jobs/{job}") as page:
        page.wait_for_selector("#steps.drawn svg")
        assert page.inner_text("#headline") == name
        assert "25.0 % longer than promised" in page.inner_text("#speed-said")
        assert seriously_inaccessible(page) == []
    with opened(browser, f"{cluster}/ui/cluster") as page:
        page.wait_for_selector("#jobs.drawn g rect")
        page.click("[data-cables=load]")
        page.wait_for_selector("#load-legend:not([hidden])")
        assert "100 %" in page.inner_text("#numbers")
        assert page.locator("#map img, #jobs img, #events img").count() == 0
        assert "25 % slower" in page.inner_text("#running")
    post(f"/v1/jobs/{job}/end", {})


def test_a_service_that_comes_back_is_followed_again_and_the_page_says_so(browser, tmp_path):
    port = str(free_ports(1)[0])
    words = ("serve", "--database", f"sqlite:///{tmp_path / 'serve.db'}", "--no-auth", "--port", port)
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    with running(*words, "--fabric", "leaf-spine:4x4x8", "--gpus-per-server", "4", folder=tmp_path) as url:
        page.goto(f"{url}/ui/cluster")
        page.wait_for_selector("#connection:has-text('live')")
    page.wait_for_selector("#connection:has-text('connection lost')")
    with running(*words, "--fabric", "leaf-spine:4x4x8", "--gpus-per-server", "4", folder=tmp_path):
        page.wait_for_selector("#connection:has-text('live')")
        page.fill("#what-if [name=gpus]", "4")
        page.click("#submit")
        page.wait_for_selector("#events li:has-text('started')")
        page.wait_for_selector("#running a")
    context.close()


def test_a_page_asks_for_the_token_and_keeps_to_its_role(browser, tmp_path):
    database = f"sqlite:///{tmp_path / 'serve.db'}"
    added = [sys.executable, "-m", "ropewalk", "serve", "token", "add", "--database", database]
    made = subprocess.run([*added, "--role", "read", "--name", "me"], capture_output=True, text=True, check=True)
    token = re.search(r"rw_\S+", made.stdout)[0]
    words = ("serve", "--database", database, "--fabric", "leaf-spine:4x4x8", "--gpus-per-server", "4", "--port", "0")
    with (
        running(*words, folder=tmp_path) as url,
        opened(browser, f"{url}/ui/cluster", expected="the server responded with a status of 40") as page,
    ):
        page.wait_for_selector("#token-dialog[open]")
        assert seriously_inaccessible(page) == []
        assert not page.is_visible("#token-problem")
        page.fill("#token", "rw_wrong")
        page.click("#token-dialog button")
        page.wait_for_selector("#token-problem:has-text('token')")
        page.fill("#token", token)
        page.click("#token-dialog button")
        page.wait_for_selector("#connection:has-text('live')")
        page.fill("#what-if [name=gpus]", "4")
        page.click("#submit")
        page.wait_for_selector("#would:has-text('needs the role')")
        page.fill("#operate [name=part]", "server:server7")
        page.click("[value=drain]")
        page.wait_for_selector("#done:has-text('needs the role')")


def test_a_full_queue_says_when_to_come_back(browser, planner):
    with estimated(browser, planner, expected="status of 429") as page:
        page.route("**/v1/ui/estimates", lambda route: route.fulfill(
            status=429, headers={"Retry-After": "2"}, content_type="application/json",
            body=json.dumps({"error": {"code": "too-many", "message": "200 people wait", "remedy": "ask in 2 s"}}),
        ), times=1)  # fmt: skip
        page.evaluate(
            """() => {
              const problem = document.getElementById("problem");
              window.said = [];
              new MutationObserver(() => said.push(problem.textContent)).observe(problem, { childList: true });
            }"""
        )
        page.focus("#batch")
        page.keyboard.press("ArrowLeft")
        until(page, lambda: len(estimates(page)) >= 2)  # it has asked again by itself
        assert any("200 people wait" in text for text in page.evaluate("window.said"))
        assert not page.is_visible("#problem")
