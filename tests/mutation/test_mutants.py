"""The slips that mutation testing makes are slips: sound code, another text, in the place that is named."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from mutants import mutants
from nearest import Imports

ROOT = Path(__file__).parents[2]
SOURCE = '''
"""Text is left alone: a < b."""

@kept(1)
def steps(ä: int = 2) -> int:
    total = 0
    while total < ä and not done(f"{ä + 1}"):
        total += -ä
    return total
'''


def test_every_kind_of_slip_is_made_where_it_stands():
    found = [(one.line, one.was, one.now) for one in mutants(SOURCE)]
    assert found == [
        (5, "2", "3"),
        (6, "0", "1"),
        (7, "total < ä", "(total <= ä)"),
        (7, 'total < ä and not done(f"{ä + 1}")', "(not (total < ä and (not done(f'{ä + 1}'))))"),
        (7, 'total < ä and not done(f"{ä + 1}")', "(total < ä or not done(f'{ä + 1}'))"),
        (7, 'not done(f"{ä + 1}")', "(done(f'{ä + 1}'))"),
        (8, "total += -ä", "total -= -ä"),
        (8, "-ä", "(ä)"),
        (9, "return total", "return None"),
    ]


@pytest.mark.parametrize("module", ["collectives/ring.py", "tenancy/queue.py", "sim/packet/buffer.py"])
def test_a_source_with_a_slip_is_sound_and_another_one(module):
    source = (ROOT / "src" / "ropewalk" / module).read_text("utf-8")
    before = ast.dump(ast.parse(source))
    made = [ast.dump(ast.parse(one.applied(source))) for one in mutants(source)]
    assert len(made) > 10
    assert before not in made


def test_tests_that_import_a_module_are_nearest_through_packages_too():
    imports = Imports(ROOT)
    near = [
        (away, path.relative_to(ROOT).as_posix())
        for away, path in imports.tests_near(ROOT / "src" / "ropewalk" / "collectives" / "ring.py")
    ]
    assert near[0] == (0, "src/ropewalk/collectives/ring.py")  # its examples
    assert (1, "tests/unit/collectives/test_rings_and_meshes.py") in near  # from ropewalk.collectives import …
    assert [away for away, _ in near] == sorted(away for away, _ in near)
