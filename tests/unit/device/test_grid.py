from ropewalk.device.measure.grid import grid
from ropewalk.workload.kernel import rebuilt


def test_every_kernel_of_the_grid_is_the_one_its_line_of_the_table_says():
    for kernel in grid():
        assert rebuilt(kernel.kind, kernel.form, kernel.dims) == kernel


def test_the_small_grid_has_every_kind_and_form_of_the_whole():
    small, whole = ({(kernel.kind, kernel.form) for kernel in grid(small=few)} for few in (True, False))
    assert small == whole


def test_the_grid_is_the_same_every_time():
    assert grid() == grid()
