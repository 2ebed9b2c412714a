import gzip

import pytest

from ropewalk.device.device import device
from ropewalk.device.pricer import device_of, pricer, shipped_table
from ropewalk.device.profile import packed
from ropewalk.device.roofline import roofline
from ropewalk.device.table import COLUMNS, CostTable, read_table
from ropewalk.errors import DeviceError
from ropewalk.workload import kernel as k

H200 = device("h200")


def table_of(*rows):
    return CostTable(H200, list(rows), "test table")


def described_by(**changed):
    """The lines of a table that describe a device."""
    facts = {
        "name": "cuda", "title": "Test GPU", "multiprocessors": "10", "memory_bytes": "1e10", "cache_bytes": "1e6",
        "launch_s": "1e-6", "peak_bf16": "1e13", "memory_bandwidth": "1e12",
    } | changed  # fmt: skip
    lines = [",".join(COLUMNS), *(f",device,{name},,{value}" for name, value in facts.items())]
    return "\n".join([*lines, ""]).encode()


def test_a_measured_kernel_is_priced_at_what_was_measured():
    prices = pricer("h200", "bf16")
    kernel = k.matmul("forward", 4096, 4096, 4096)
    rows = shipped_table()._rows["bf16", "matmul", "forward"]
    measured = next(seconds for dims, seconds in rows if dims == kernel.dims)
    assert prices.kernel(kernel) == pytest.approx(measured, rel=1e-9)


def test_between_two_measured_sizes_the_ratio_lies_between_theirs():
    small, large, between = (k.pointwise("map", 2**power) for power in (20, 22, 21))
    numbers = pricer("h200", "bf16").precision
    rows = [
        ("bf16", "pointwise", "map", " ".join(map(str, kernel.dims)), str(ratio * roofline(kernel, H200, numbers)))
        for kernel, ratio in ((small, 1.0), (large, 2.0))
    ]
    assert 1.0 < table_of(*rows).ratio(between, "bf16") < 2.0


def test_a_kernel_whose_kind_was_never_measured_is_refused_with_the_remedy():
    with pytest.raises(DeviceError, match=r"no bf16 measurement of matmul forward: measure it with `ropewalk profile`"):
        table_of().ratio(k.matmul("forward", 8, 8, 8), "bf16")


def test_odd_widths_are_priced_by_odd_widths():
    """A vocabulary of 50257 needs other kernels than one of 50304, though they are almost of one size."""
    prices = pricer("h200", "bf16")
    odd, even = (prices.kernel(k.matmul("forward", 8192, words, 768)) for words in (50257, 50304))
    assert odd > 2 * even


def test_a_table_tells_the_device_it_was_measured_on(tmp_path):
    facts = {
        "name": "cuda", "title": "Test GPU", "multiprocessors": "10", "memory_bytes": "1e10", "cache_bytes": "1e6",
        "launch_s": "1e-6", "peak_bf16": "1e13", "memory_bandwidth": "1e12",
    }  # fmt: skip
    path = tmp_path / "gpu.csv.gz"
    rows = [("", "device", name, "", value) for name, value in facts.items()]
    rows += [("bf16", "pointwise", "map", "1024 1 1", "2e-6")]
    path.write_bytes(packed(rows))
    found = pricer(str(path), "bf16")
    assert found.source == "measured on Test GPU (gpu.csv.gz)"
    assert found.kernel(k.pointwise("map", 1024)) == pytest.approx(2e-6)


def test_a_table_tells_how_fast_its_device_and_its_host_add_up(tmp_path):
    for name, more in (("told", {"adding": "4e11", "host_adding": "8e9"}), ("older", {})):
        (tmp_path / f"{name}.csv").write_bytes(described_by(**more))
    told, older = (device_of(str(tmp_path / f"{name}.csv")) for name in ("told", "older"))
    assert (told.adds, told.host_adding) == (4e11, 8e9)
    assert older.adds == pytest.approx(0.345e12)
    assert older.host_adding is None


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "first line"),
        (b"a,b\n1,2\n", "first line"),
        (",".join(COLUMNS).encode() + b"\nbf16,matmul,forward,1 2 x 4,1e-6\n", "cost table"),
        (",".join(COLUMNS).encode() + b"\nbf16,matmul\n", "cost table"),
        (",".join(COLUMNS).encode() + b"\nbf16,matmul\n", "line 2 does not have 5 columns"),
        (described_by(launch_s="nan"), "launch_s is 'nan', which is impossible"),
        (described_by(memory_bandwidth="0"), "memory_bandwidth is '0', which is impossible"),
        (described_by() + b"bf16,matmul,forward,1 8 8 8,nan\n", "is 'nan', which is impossible"),
        (described_by() + b"bf16,matmul,forward,1 8 8 8,-1\n", "is '-1', which is impossible"),
        (described_by() + b"bf16,host,add,,1e-6;-1\n", "host time of add is '-1', which is impossible"),
        (",".join(COLUMNS).encode() + b"\nbf16,matmul,forward,1 8 8 8,1e-6\n", "does not say the device"),
    ],
)
def test_a_broken_table_is_refused_with_the_remedy(tmp_path, content, fault):
    path = tmp_path / "broken.csv.gz"
    path.write_bytes(content)
    with pytest.raises(DeviceError, match=f"{fault}.*(?s:.)*ropewalk profile"):
        read_table(path)


@pytest.mark.parametrize(
    "content", [gzip.compress(b"hello", mtime=0)[:-4], gzip.compress(b"hello, hello", mtime=0)[:12] + b"\xff" * 20]
)
def test_a_damaged_archive_is_refused(tmp_path, content):
    path = tmp_path / "broken.csv.gz"
    path.write_bytes(content)
    with pytest.raises(DeviceError, match="gzip data: copy the file again"):
        read_table(path)


@pytest.mark.parametrize("dims", ["1 8", "1 -8 8 8", "1 2 3 4 5 6"])
def test_sizes_that_no_kernel_has_are_refused_with_the_remedy(dims):
    table = table_of(("bf16", "matmul", "forward", dims, "1e-6"))
    with pytest.raises(DeviceError, match=r"test table has matmul forward with sizes .* `ropewalk profile`"):
        table.ratio(k.matmul("forward", 8, 8, 8), "bf16")


@pytest.mark.parametrize("kernel", [k.matmul("forward", 10**20, 8, 8), k.pointwise("map", 10**25)])
def test_kernels_beyond_64_bits_have_a_price(kernel):
    assert pricer("h200", "bf16").kernel(kernel) > 1e3


def test_attention_with_dropout_is_as_many_times_longer_as_where_both_were_measured():
    rows = [("forward", "1 8 8 512 512 64 0", "1e-5"), ("forward_dropped", "1 8 8 512 512 64 0", "3e-5"),
            ("forward", "4 8 8 512 512 64 0", "2e-5")]  # fmt: skip
    table = table_of(*(("bf16", "attention", *row) for row in rows))
    plain, dropped = (
        [table.ratio(k.attention(form, batch, 8, 8, 512, 512, 64, False), "bf16") for batch in (1, 2, 4)]
        for form in ("forward", "forward_dropped")
    )
    assert dropped == pytest.approx([3 * ratio for ratio in plain])


def test_the_same_rows_are_packed_into_the_same_bytes():
    rows = [("bf16", "host", "add", "", "1e-6;2e-6")]
    assert packed(rows) == packed(rows)


def test_every_kernel_and_call_of_the_zoo_has_a_price():
    from ropewalk.workload.zoo import ZOO, build

    for precision in ("bf16", "tf32"):
        prices = pricer("h200", precision)
        for name in ZOO:
            for layer in {layer.operators: layer for layer in build(name, 2).layers}.values():
                assert prices.forward_work(layer.operators).gpu_s >= 0
                assert prices.backward_work(layer.operators).host_s >= 0
