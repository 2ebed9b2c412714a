"""Every page in a real browser: no error on the console, every chart drawn, light and dark, wide and narrow."""

import re
from pathlib import Path

import numpy as np
import pytest
from browser import browse, needs_browser, plots
from tiny_labs import answer_of_slow_link
from tiny_plans import plan_by_hand
from tiny_profiles import write_profile
from tiny_steps import pipeline_step, run_step

from ropewalk import sync, synthesis
from ropewalk.expect.question import ExpectQuestion
from ropewalk.expect.study import answer as expect_answer
from ropewalk.fabric import Dgx, FatTree, IdealSwitch, Mesh
from ropewalk.fabric.checks import facts
from ropewalk.hardware import Given, read_cluster
from ropewalk.overlap.question import OverlapQuestion
from ropewalk.overlap.study import answer as order_answer
from ropewalk.overlap.study import over_speeds
from ropewalk.palette import INK
from ropewalk.pipeline.links import Machines
from ropewalk.pipeline.planner import plan as plan_pipeline
from ropewalk.pipeline.profile import profile_of
from ropewalk.pipeline.terms import Terms
from ropewalk.report import collective_page, design_page, fabric_page, step_page, sync_page, trace_page
from ropewalk.report.collective_study import collective_study_page
from ropewalk.report.expect import expect_page
from ropewalk.report.lab import lab_page
from ropewalk.report.overlap import overlap_page
from ropewalk.report.pipeline import pipeline_page
from ropewalk.report.step_bars import MemoryBar
from ropewalk.routing import shortest
from ropewalk.sim import simulate
from ropewalk.sim.step import statistics
from ropewalk.sync import SyncQuestion
from ropewalk.synthesis import CollectiveQuestion
from ropewalk.task import Sketch
from ropewalk.workload.imports import from_profile

EVIL = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"

pytestmark = needs_browser


def training_step(label: str = "gradient") -> str:
    fabric = FatTree(4).build()
    sketch = Sketch()
    for host in range(16):
        backward = sketch.compute(host, 1e-3, label="backward")
        sketch.transfer(host, (host + 3) % 16, 5e6, after=[backward], label=label)
    hosts = np.arange(16)
    return trace_page(simulate(sketch.graph(), shortest(fabric, hosts, (hosts + 3) % 16), record_rates=True))


def test_a_page_with_a_mistake_is_noticed(tmp_path):
    _, console = browse("<!doctype html><script>nothing.here()</script>", tmp_path)
    assert len(console) == 1
    assert "ReferenceError" in console[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_study_draws_all_its_charts(tmp_path, scheme):
    asked = SyncQuestion(physical=("bcube", "torus", "switch"), hosts=(16, 64))
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    document, console = browse(sync_page(sync.answer(asked)), tmp_path, "--window-size=1400,1000", *options)
    assert console == []
    assert plots(document) == {"sync-time", "scaling-hosts", "link-load"}
    # Text of charts is in the ink of the scheme, so the swap of colours works.
    ink = {"light": INK.light, "dark": INK.dark}
    assert f'fill="{ink[scheme]}"' in document
    assert f'fill="{ink["dark" if scheme == "light" else "light"]}"' not in document


def test_charts_answer_to_pointer_keys_and_legend(tmp_path):
    act = """<script>
      const plot = document.getElementById("timeline");
      const tip = document.querySelector(".tip");
      plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      const said = [tip.hidden ? "" : tip.textContent];
      const before = plot.querySelectorAll("rect").length;
      document.querySelector("button.chip[data-group]").click();
      const page = plot.getBoundingClientRect();
      plot.dispatchEvent(new PointerEvent("pointermove", { clientX: page.left - 200, clientY: page.top - 200 }));
      document.title = [said[0].includes("backward"), tip.hidden, plot.querySelectorAll("rect").length < before];
    </script></body>"""
    document, console = browse(training_step().replace("</body>", act), tmp_path, "--window-size=1400,1000")
    assert console == []
    assert "<title>true,true,true</title>" in document


def test_labels_of_charts_are_text_whatever_they_contain(tmp_path):
    act = """<script>
      const plot = document.getElementById("timeline");
      for (let turn = 0; turn < 40; turn++) plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    </script></body>"""
    document, console = browse(training_step(EVIL).replace("</body>", act), tmp_path)
    assert console == []
    assert "<title>broken" not in document


def test_the_page_of_a_study_is_no_wider_than_a_narrow_window(tmp_path):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    html = sync_page(sync.answer(SyncQuestion(hosts=(16,)))).replace("</body>", measure)
    document, console = browse(html, tmp_path, "--window-size=800,1000")
    assert console == []
    width, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert width <= room <= 800


def test_a_click_on_a_fabric_shows_its_links_and_one_on_a_heading_sorts(tmp_path):
    click = """<script>
      document.querySelector('[data-chart="link-load"] [data-view="1"]').click();
      document.querySelector('[data-chart="sync-time"] [data-group]').click();
      [...document.querySelectorAll('table.sortable th')].find(cell => cell.textContent === 'Simulated').click();
      const rows = [...document.querySelectorAll('table.sortable tbody tr')];
      const cells = rows.map(row => Number(row.cells[3].dataset.value));
      document.title = cells.every((value, at) => at === 0 || cells[at - 1] <= value) ? 'sorted' : cells.join();
    </script></body>"""
    html = sync_page(sync.answer(SyncQuestion(hosts=(16,), physical=("torus", "switch")))).replace("</body>", click)
    document, console = browse(html, tmp_path)
    assert console == []
    assert "<title>sorted</title>" in document
    assert re.search(r'data-view="1" aria-pressed="true">switch:16', document)
    assert re.search(r'class="chip" data-group="logical ps" aria-pressed="false"', document)


@pytest.mark.parametrize("fabric", [Dgx(2).build(), IdealSwitch(2_000).build()], ids=["small", "large"])
def test_the_page_of_a_fabric_draws_without_a_word(tmp_path, fabric):
    zoom = "<script>document.querySelector('[data-zoom=\"0.7\"]').click()</script></body>"
    document, console = browse(fabric_page(fabric, facts(fabric)).replace("</body>", zoom), tmp_path)
    assert console == []
    box = re.search(r'<svg class="fabric speed" viewBox="([^"]+)"', document).group(1)
    assert float(box.split()[2]) == pytest.approx(700)


def test_the_page_of_a_run_draws_all_its_charts(tmp_path):
    document, console = browse(training_step(), tmp_path)
    assert console == []
    assert plots(document) == {"timeline", "utilisation", "throughput"}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 500)])
def test_the_page_of_a_lab_draws_all_its_charts_within_the_window(tmp_path, scheme, width):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    html = lab_page(answer_of_slow_link(part=0.5)).replace("</body>", measure)
    document, console = browse(html, tmp_path, f"--window-size={width},1200", *options)
    assert console == []
    assert plots(document) == {"link", "predicted", "measured", "flows", "runs"}
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def pipelined_step() -> str:
    run = run_step(pipeline_step(stages=4, tensor=2, micro_batches=6), fabric=Dgx(1).build())
    memory = [MemoryBar(f"stage {stage}", {"weights": 3e10, "activations": 2e10}, 8e10) for stage in range(4)]
    found = statistics(run, peak_flops=1e13, tokens=4096)
    return step_page(run, found, subject="a step on 8 GPUs", stage_of_rank=np.arange(8) // 2, memory=memory)


def bars_drawn(document: str) -> int:
    return int(re.search(r'<canvas[^>]* data-drawn="(\d+)"', document).group(1))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 1400])
def test_the_page_of_a_step_draws_all_its_charts_within_the_window(tmp_path, scheme, width):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    html = pipelined_step().replace("</body>", measure)
    document, console = browse(html, tmp_path, f"--window-size={width},1200", *options)
    assert console == []
    assert plots(document) == {"breakdown", "memory", "utilisation", "spread"}
    assert bars_drawn(document) > 100
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def test_the_timeline_of_a_step_zooms_hides_and_explains(tmp_path):
    act = """<script>
      const canvas = document.querySelector('figure.timeline canvas');
      const seen = [canvas.dataset.drawn];
      const press = (what) => { document.querySelector(what).click(); seen.push(canvas.dataset.drawn); };
      for (let times = 0; times < 3; times++) document.querySelector('[data-key="+"]').click();
      press('[data-key="+"]');
      press('[data-key="Home"]');
      press('figure.timeline [data-group]');
      const box = canvas.getBoundingClientRect();
      const at = { clientX: box.left + box.width * 0.6, clientY: box.top + 42 };
      canvas.dispatchEvent(new PointerEvent('pointermove', at));
      const tip = document.querySelector('figure.timeline .tip');
      document.title = seen.join(' ') + ' ' + (tip.hidden ? 'nothing' : tip.textContent);
    </script></body>"""
    document, console = browse(pipelined_step().replace("</body>", act), tmp_path, "--window-size=1400,1200")
    assert console == []
    whole, zoomed, back, hidden, tip = re.search(r"<title>(\d+) (\d+) (\d+) (\d+) ([^<]+)</title>", document).groups()
    assert int(zoomed) < int(whole) == int(back)
    assert 0 < int(hidden) < int(whole)
    assert "backward" in tip
    assert "long" in tip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 1400])
def test_the_page_of_a_plan_draws_all_its_charts_within_the_window(tmp_path, scheme, width):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    html = design_page(plan_by_hand(EVIL)).replace("</body>", measure)
    document, console = browse(html, tmp_path, f"--window-size={width},1400", *options)
    assert console == []
    assert plots(document) == {"baselines", "traffic-rings", "traffic-pairs", "load", "history"}
    assert bars_drawn(document) > 20
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def test_the_page_of_a_plan_shows_cost_at_a_click(tmp_path):
    click = '<script>document.querySelector(\'[data-chart="baselines"] [data-view="1"]\').click()</script></body>'
    document, console = browse(design_page(plan_by_hand()).replace("</body>", click), tmp_path)
    assert console == []
    assert "$136k" in document
    assert re.search(r'data-view="1" aria-pressed="true">cost of the network', document)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 1400])
def test_the_page_of_a_collective_draws_all_its_charts_within_the_window(tmp_path, scheme, width):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    answer = synthesis.answer(CollectiveQuestion("allreduce", Mesh((3, 3)).build(), sizes=(1_000, 10**9)))
    html = collective_page(answer).replace("</body>", measure)
    document, console = browse(html, tmp_path, f"--window-size={width},1400", *options)
    assert console == []
    assert plots(document) == {"bandwidth", "time"}
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def test_rows_of_a_study_of_collectives_say_their_optimum_below_their_name(tmp_path):
    found = synthesis.answer(CollectiveQuestion("allreduce", Mesh((2, 2)).build()))
    document, console = browse(collective_study_page("A study", {"a mesh": [found]}), tmp_path)
    assert console == []
    texts = [re.sub("<[^>]*>", "", text) for text in re.findall(r"<text[^>]*>.*?</text>", document)]
    at = texts.index("a mesh")
    assert texts[at + 1].startswith("optimum ")


def test_a_label_that_looks_like_a_script_does_nothing(tmp_path):
    document, console = browse(training_step(EVIL), tmp_path)
    assert console == []
    assert "<title>broken</title>" not in document
    assert plots(document) == {"timeline", "utilisation", "throughput"}


def cut_in_two(folder: Path) -> str:
    profile = profile_of(from_profile(write_profile(folder, name=EVIL)))
    place = Machines(2, (1, 2), 1.25e9, 1.25e9, 10e9)
    return pipeline_page(plan_pipeline(profile, place, Terms(64, 8, memory_bytes=16e9, schedules=("1f1b", "zb-h1"))))


def ordered(folder: Path) -> str:
    slow = read_cluster("2x2", Given(nics=1, nic_bandwidth=1.25e9, nvlink_bandwidth=1e11))
    asked = OverlapQuestion(str(write_profile(folder, name=EVIL)), slow)
    found = order_answer(asked)
    return overlap_page(found, over_speeds(asked, (1.0, 10.0, 100.0)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1400])
@pytest.mark.parametrize(
    ("draw", "charts"),
    [
        (cut_in_two, {"alternatives", "balance", "memory", "communication", "live"}),
        (ordered, {"ways", "streams", "settings", "speeds"}),
    ],
    ids=["pipeline", "overlap"],
)
def test_pages_of_pipelines_and_orders_draw_all_their_charts_within_the_window(tmp_path, draw, charts, width, scheme):
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    document, console = browse(
        draw(tmp_path).replace("</body>", measure), tmp_path, f"--window-size={width},1400", *options
    )
    assert console == []
    assert plots(document) == charts
    drawn = [int(count) for count in re.findall(r'<canvas[^>]* data-drawn="(\d+)"', document)]
    assert len(drawn) >= 2
    assert min(drawn) > 10
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def test_long_names_of_bars_break_into_lines_where_the_page_is_narrow(tmp_path):
    narrow = ordered(tmp_path).replace("</head>", "<style>main { max-width: 360px; }</style></head>")
    document, console = browse(narrow, tmp_path)
    assert console == []
    streams = re.search(r'<div[^>]* id="streams".*?</svg>', document, re.DOTALL)[0]
    texts = [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<text.*?</text>", streams, re.DOTALL)]
    assert {"fused + mixing +", "computing"} <= set(texts)
    assert not any("…" in text for text in texts)


def test_the_pages_of_a_cluster_draw_what_is_expected_and_what_was_measured(tmp_path):
    table = tmp_path / "pairs.csv"
    table.write_text("ranks,busbw\ngpu0.3 gpu1.3,11.6\ngpu0.3 gpu2.3,11.5\ngpu1.3 gpu2.3,46.2\ngpu0.2 gpu0.3,361\n")
    cluster = read_cluster("dgx-h100:4")
    for asked, chart in ((ExpectQuestion(cluster), "expected"), (ExpectQuestion(cluster, files=(table,)), "measured")):
        document, console = browse(expect_page(expect_answer(asked)), tmp_path)
        assert console == []
        assert plots(document) == {chart}
