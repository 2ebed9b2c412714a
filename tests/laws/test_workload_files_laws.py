"""Whatever can be written down as a workload is read back as the same workload."""

from hypothesis import given
from hypothesis import strategies as st
from written_out import workload_of_json, workload_of_yaml

from ropewalk.workload.adapted import Adapted, Weights
from ropewalk.workload.dense import Linear
from ropewalk.workload.elementwise import Pointwise
from ropewalk.workload.exchange import Exchange, Meeting
from ropewalk.workload.files import to_json, to_yaml
from ropewalk.workload.opaque import Measured
from ropewalk.workload.operator import Role
from ropewalk.workload.workload import Layer, Workload

sizes = st.integers(1, 2**40)
fractions = st.floats(0, 1e12, allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12)
plain = st.one_of(
    st.builds(Linear, sizes, sizes, sizes, st.booleans(), st.sampled_from(Role), st.booleans(), st.booleans()),
    st.builds(Pointwise, sizes, st.integers(0, 3), saved=fractions),
    st.builds(Measured, fractions, fractions, st.integers(0, 2**40), fractions),
    st.builds(Exchange, st.sampled_from(Meeting), sizes),
    st.builds(Weights, sizes, sizes),
)
operators = st.one_of(
    plain,
    st.builds(Adapted, plain, st.integers(0, 9), st.integers(0, 9), fractions, st.tuples(st.integers(0, 3))),
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    rows = []
    for number in range(draw(st.integers(1, 4))):
        inputs = draw(st.lists(st.integers(0, number - 1), unique=True).map(sorted)) if number else []
        held = tuple(draw(st.lists(operators, max_size=3)))
        rows.append(Layer(draw(words), held, draw(st.integers(0, 2**40)), tuple(inputs), draw(words)))
    return Workload(draw(words), tuple(rows), draw(sizes), draw(st.integers(0, 9)), draw(words))


@given(workloads())
def test_a_workload_comes_back_from_its_files(workload: Workload) -> None:
    assert workload_of_yaml(to_yaml(workload)) == workload
    assert workload_of_json(to_json(workload)) == workload
