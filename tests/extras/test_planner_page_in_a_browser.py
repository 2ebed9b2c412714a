"""The page of a search in a real browser: points are coloured, filtered, enlarged and explained."""

import re

import pytest
from browser import browse, needs_browser, plots

from ropewalk.hardware import read_cluster
from ropewalk.planner.question import PlannerQuestion
from ropewalk.planner.space import Space
from ropewalk.planner.study import answer
from ropewalk.report.planner import planner_page

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page() -> str:
    space = Space(
        tensor=(1, 2), context=(1,), pipeline=(1, 2), micro_batch=(1, 2), zero=(0, 1), schedules=("1f1b", "interleaved")
    )
    return planner_page(answer(PlannerQuestion("gpt2", read_cluster("1x4"), batch=8, sequence=64, space=space)))


def title_after(page: str, act: str, folder, *options: str) -> str:
    document, console = browse(page.replace("</body>", f"<script>{act}</script></body>"), folder, *options)
    assert console == []
    return re.search(r"<title>(.*?)</title>", document).group(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [700, 1400])
def test_everything_is_drawn_within_the_window(tmp_path, page, scheme, width):
    options = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    measure = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    document, console = browse(page.replace("</body>", measure), tmp_path, f"--window-size={width},1200", *options)
    assert console == []
    assert plots(document) == {"ladder", "strands"}
    drawn = [int(count) for count in re.findall(r'<canvas[^>]* data-drawn="(\d+)"', document)]
    assert len(drawn) == 3
    assert min(drawn) > 10
    needed, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", document).groups())
    assert needed <= room == width


def test_values_are_filtered_and_the_table_follows(tmp_path, page):
    act = """
      const figure = document.querySelector('figure.points');
      const canvas = figure.querySelector('canvas');
      const body = document.getElementById('candidates-fastest').tBodies[0];
      const split = () => [...body.rows].filter(row => row.textContent.includes('tp 2')).length;
      const seen = () => `${canvas.dataset.drawn}/${split()}`;
      const before = seen();
      const values = [...figure.querySelectorAll('[aria-label="Tensor"] label')];
      const two = values.find(one => one.textContent.trim() === '2');
      two.click();
      const without = seen();
      two.click();
      document.title = [before, without, seen()].join(' ');
    """
    before, without, again = title_after(page, act, tmp_path).split()
    assert before == again
    assert int(without.split("/")[0]) < int(before.split("/")[0])
    assert without.endswith("/0")
    assert not before.endswith("/0")


def test_a_dragged_part_is_selected_enlarged_by_enter_and_home_shows_all(tmp_path, page):
    act = """
      const canvas = document.querySelector('figure.points canvas');
      canvas.setPointerCapture = () => {};
      const box = canvas.getBoundingClientRect();
      const at = (x, y) => ({
        clientX: box.left + box.width * x, clientY: box.top + box.height * y, pointerId: 1, button: 0,
      });
      const seen = [canvas.dataset.drawn];
      canvas.dispatchEvent(new PointerEvent('pointerdown', at(0.1, 0.5)));
      canvas.dispatchEvent(new PointerEvent('pointermove', at(0.5, 0.88)));
      canvas.dispatchEvent(new PointerEvent('lostpointercapture', at(0.5, 0.88)));
      seen.push(canvas.dataset.selected);
      canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
      seen.push(canvas.dataset.drawn);
      canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home' }));
      seen.push(canvas.dataset.drawn);
      document.title = seen.join(' ');
    """
    whole, selected, part, again = map(int, title_after(page, act, tmp_path).split())
    assert 0 < selected == part < whole == again


def test_a_point_under_the_pointer_is_said_in_words(tmp_path, page):
    act = """
      const figure = document.querySelector('figure.points');
      const canvas = figure.querySelector('canvas');
      const box = canvas.getBoundingClientRect();
      const tip = figure.querySelector('.tip');
      for (let y = 20; y < 420 && tip.hidden; y += 4) for (let x = 60; x < box.width && tip.hidden; x += 4) {
        canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y }));
      }
      document.title = tip.hidden ? 'nothing' : tip.textContent;
    """
    said = title_after(page, act, tmp_path)
    assert re.search(r"(dp|tp|pp) \d.*micro-batch.*ms \((simulated|bound: not simulated)\), .*GB", said)


def test_colours_follow_the_chosen_degree(tmp_path, page):
    act = """
      const figure = document.querySelector('figure.points');
      const canvas = figure.querySelector('canvas');
      const before = canvas.toDataURL();
      figure.querySelector('[aria-label="colour by ZeRO"]').click();
      const rows = [...figure.querySelectorAll('.degrees > div')];
      const shown = rows.filter(row => getComputedStyle(row.querySelector('i')).display !== 'none');
      document.title = `${before !== canvas.toDataURL()} ${shown.map(row => row.textContent.trim().split(/\\s/)[0])}`;
    """
    assert title_after(page, act, tmp_path) == "true ZeRO"
