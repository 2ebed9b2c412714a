"""Measurements as tools write them, whatever stands around them; what cannot be used is refused with a remedy."""

import gzip
import json

import pytest

from ropewalk.errors import InputError
from ropewalk.expect.read import files
from ropewalk.expect.read.files import read_records
from ropewalk.expect.read.who import ServerNames, measurements_of
from ropewalk.hardware import read_cluster

DEVICES = (
    "#  Rank  0 Group  0 Pid 12 on node7 device  0 [0x18] NVIDIA H100\n#  Rank  1 Group  0 Pid 13 on node3 device  1\n"
)
ROW = "1073741824 268435456 float sum -1 5000.0 214.75 214.75 0 4000.0 268.44 268.44 0\n"


@pytest.fixture
def read(tmp_path):
    def run(text, name="out.txt", benchmark=None):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_records([path], benchmark)

    return run


def test_a_table_of_nccl_tests_with_its_devices(read):
    (one,) = read(
        f"$ mpirun all_reduce_perf -b 1G\n# Using devices\n{DEVICES}# size count\n{ROW}# Avg bus bandwidth : 1\n"
    )
    assert (one.benchmark, one.size_bytes, one.seconds) == ("all_reduce", 1 << 30, pytest.approx(5e-3))
    assert one.who == ((("node7", 0), ("node3", 1)),)


@pytest.mark.parametrize("before", ["", "[1,0]<stdout>:", "[1,0]<stdout>: ", "0: ", "node7: "])
def test_what_launchers_put_before_a_line_does_not_matter(read, before):
    (one,) = read(f"algbw busbw\n{before}{ROW}", benchmark="all_reduce")
    assert one.size_bytes == 1 << 30


@pytest.mark.parametrize(
    "row",
    [
        "1024 256 float sum 40.0 0.03 0.03 0e+00 39.0 0.03 0.03 0e+00",  # before 2021
        "1024 256 float sum 40 0.03 0.03 0e+00 39 0.03 0.03 0e+00",
        "1024 256 float none -1 40.0 0.03 0.03 0 39.0 0.03 0.03 0",
        "1024 256 float 40.0 0.03 0.03 0 39.0 0.03 0.03 0",
        "1024 256 bfloat16 sum -1 40.0 0.03 0.03 N/A 39.0 0.03 0.03 N/A",
        "1024 256 float sum -1 N/A N/A N/A N/A 40.0 0.03 0.03 0",
    ],
)
def test_columns_of_all_releases(read, row):
    (one,) = read(f"algbw busbw\n{row}\n", benchmark="reduce_scatter")
    assert (one.size_bytes, one.seconds) == (1024, pytest.approx(40e-6))


@pytest.mark.parametrize(
    ("row", "below", "wrong"),
    [
        ("1024 256 float sum -1 40.0 0.03 0.03 2 39.0 0.03 0.03 3", "# Out of bounds values : 5 FAILED", 5),
        ("1024 256 float sum -1 N/A N/A N/A N/A 40.0 0.03 0.03 3", "", 3),
        ("1024 256 float sum -1 40.0 0.03 0.03 1.04858e+06 39.0 0.03 0.03 2e+06", "", 3_048_580),
        ("1024 256 float sum 40.0 0.03 0.03 2e-07 39.0 0.03 0.03 2e-07", "# Out of bounds values : 0 OK", 0),
        ("1024 256 float sum 40.0 0.03 0.03 7e+00 39.0 0.03 0.03 2e-07", "# Out of bounds values : 4 FAILED", 4),
    ],
)
def test_values_that_came_out_wrong_are_counted(read, row, below, wrong):
    first, second = read(f"{ROW}# Out of bounds values : 0 OK\n{row}\n{below}\n", benchmark="all_reduce")
    assert (first.wrong, second.wrong) == (0, wrong)


def test_several_benchmarks_in_one_file(read):
    text = f"all_gather_perf\n{DEVICES}{ROW}broadcast_perf\n{DEVICES.replace('node7', 'node9')}{ROW}"
    first, second = read(text)
    assert (first.benchmark, second.benchmark) == ("all_gather", "broadcast")
    assert second.who[0][0] == ("node9", 0)


def test_groups_that_ran_at_the_same_time(read):
    others = DEVICES.replace("Group  0", "Group  1").replace("Rank  1", "Rank  3").replace("Rank  0", "Rank  2")
    (one,) = read(f"all_reduce_perf\n{DEVICES}{others}{ROW}")
    assert len(one.who) == 2


def test_inspector_by_its_communicators_and_the_last_rank(read):
    def line(rank, host, micros, coll="AllReduce"):
        return json.dumps({
            "header": {"id": "0x1", "rank": rank, "n_ranks": 2, "nnodes": 2},
            "metadata": {"hostname": host, "pid": 100 + rank},
            "coll_perf": {"coll": coll, "coll_sn": 7, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": micros},
        })  # fmt: skip

    (one,) = read(line(0, "a", 900) + "\n" + line(1, "b", 400))
    assert (one.benchmark, one.size_bytes, one.seconds) == ("all_reduce", 1 << 20, pytest.approx(400e-6))
    assert one.who == ((("a", 0), ("b", 0)),)
    (one,) = read(line(0, "a", 900, "AllGather") + line(1, "b", 400, "AllGather"))
    assert one.size_bytes == 2 << 20  # nccl-tests prints what a rank ends with


def trace(**more):
    args = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2,
            "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 3]"} | more  # fmt: skip
    kernels = [
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "dur": dur, "args": args} for dur in (90, 70)
    ]
    other = {"ph": "X", "cat": "kernel", "name": "gemm", "dur": 5, "args": {}}
    return json.dumps({"distributedInfo": {"pg_config": [{"pg_name": "0", "ranks": [0, 5]}]},
                       "traceEvents": [*kernels, other, 7]})  # fmt: skip


def test_kernels_of_a_trace_the_shortest_of_equal_ones(read):
    (one,) = read(trace(), "trace.json")
    assert (one.benchmark, one.size_bytes, one.seconds, one.who) == (
        "all_reduce",
        2000,
        pytest.approx(70e-6),
        ((0, 3),),
    )


def test_traces_of_all_ranks_are_read_together(tmp_path):
    for rank, micros in enumerate((90, 60)):
        (tmp_path / f"{rank}.json").write_text(trace().replace("70", str(micros)))
    (one,) = read_records([tmp_path / "0.json", tmp_path / "1.json"])
    assert one.seconds == pytest.approx(60e-6)


def test_a_packed_trace_whose_groups_are_listed_elsewhere(read):
    (one,) = read(gzip.compress(trace(**{"Process Group Ranks": "[0, ...]"}).encode()), "trace.json.gz")
    assert one.who == ((0, 5),)


def test_a_table_of_pairs(read):
    one, two, three = read("ranks,collective,size,busbw\n0 gpu1.0,send,1GB,10\na:1 b:0,,,\n".replace(",,,", ",,,46GB/s")
                           + "0 1 2,,1MiB,5\n", "pairs.csv")  # fmt: skip
    assert (one.benchmark, one.seconds, one.who) == ("send", pytest.approx(0.1), ((0, "gpu1.0"),))
    assert (two.benchmark, two.size_bytes, two.who) == ("sendrecv", 1 << 30, ((("a", 1), ("b", 0)),))
    assert three.benchmark == "all_reduce"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "is not an output of nccl-tests"),
        ("\n", "is empty: wait until it is written, or copy it again"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"\x1f\x8b\x08\x00", "is truncated gzip data: copy the file again"),
        (gzip.compress(b"x" * 9000, mtime=0)[:-9], "is truncated gzip data"),
        ("all_reduce_perf busbw algbw\n", "contains no table row"),
        (f"algbw busbw\n{ROW[:45]}", "the output is truncated: copy all of the output, or remove the row"),
        (f"algbw busbw\n{ROW.replace('5000.0', '5o00.0')}", "line 2: '5o00.0' is not a number: copy all of the output"),
        (
            f"all_reduce_perf\n{DEVICES}node7: Test NCCL failure common.cu:958 'unhandled system error'\n",
            "nccl-tests failed (Test NCCL failure common.cu:958 'unhandled system error'): fix the cause and run",
        ),
        (
            f"all_reduce_perf\n{DEVICES}{ROW} .. node7 pid 12: Test failure common.cu:1020\n",
            "run it again, or remove the lines that report the failure to check only the rows above",
        ),
        (
            '{\n  "schemaVersion": 1,\n  "devic',
            "3: Unterminated string: fix the JSON; or export",
        ),
        ("algbw busbw\n8 2 float none -1 5.0 0.0 0.0 0", "name it with --measured"),
        (trace()[:-40], "or export the trace again and wait until it is written"),
        ('{"traceEvents": 3}', "traceEvents is not a list"),
        ('{"traceEvents": []}', "record it with PyTorch 2.4 or later"),
        ('{"traceEvents": ' + "[" * 100_000, "nested too deeply"),
        ('{"coll_perf": {"coll": "AllReduce"}}', "lacks its header, name, size or time"),
        ('{"coll_perf": {"coll"', "wait for the job to end, or remove the last line"),
        ('{"coll_perf": ' + '{"a":' * 100_000, "nested too deeply"),
        ("ranks,speed\n0 1,3\n", "there is no column 'speed': use ranks, collective, size, busbw, time"),
        ("ranks,busbw\n0,3\n", "are not two ranks or more"),
        ("ranks,busbw\n0 1,fast\n", "write it like"),
        ("ranks,busbw\n0 1,-3\n", "is not above 0: give GB/s"),
        ("ranks,collective,busbw\n0 1,scan,3\n", "there is no benchmark 'scan'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_remedy(read, text, said):
    with pytest.raises(InputError) as problem:
        read(text, "given.csv")
    assert said in str(problem.value)


def test_a_file_that_unpacks_to_too_much_is_refused(read, monkeypatch):
    monkeypatch.setattr(files, "MOST_OF_A_TRACE", 10**6)
    with pytest.raises(InputError, match="unpacks to more than 1 MB, the limit"):
        read(gzip.compress(b" " * (2 << 20)))
    with pytest.raises(InputError, match="is larger than 1 MB"):
        read(b" " * (2 << 20))


def test_servers_are_numbered_as_files_name_them_unless_told(read):
    fabric = read_cluster("2x2").fabric()
    records = read(f"all_reduce_perf\n{DEVICES}{ROW}")
    assert measurements_of(records, ServerNames(fabric))[0].groups == ((0, 3),)
    assert measurements_of(records, ServerNames(fabric, ("node3", "node7")))[0].groups == ((2, 1),)


@pytest.mark.parametrize(
    ("shape", "hosts", "said"),
    [
        ("1x2", (), "server node3 is one more than the 1 of the cluster"),
        ("2x1", (), "server node3 has no GPU 1, only 1"),
        ("2x2", ("node7",), "server node3 is not among --hosts (node7): add it"),
    ],
)
def test_measurements_of_another_cluster_are_refused(read, shape, hosts, said):
    with pytest.raises(InputError) as problem:
        measurements_of(read(f"all_reduce_perf\n{DEVICES}{ROW}"), ServerNames(read_cluster(shape).fabric(), hosts))
    assert said in str(problem.value)


def test_a_table_without_devices_tells_its_ranks_by_its_factor(read):
    row = "1073741824 268435456 float sum -1 5000.0 100.00 175.00 0 4000.0 268.44 268.44 0"
    with pytest.raises(InputError, match="8 ranks took part, but the named cluster has 4"):
        measurements_of(read(f"all_reduce_perf\n{row}"), ServerNames(read_cluster("2x2").fabric()))


def test_a_list_of_devices_of_which_only_the_end_was_copied_says_how_many_there_are(read):
    last = "#  Rank 15 Group  0 Pid 9 on node9 device  7 [0x18] NVIDIA H100\n"
    records = read(f"{last}algbw busbw\n1073741824 268435456 float sum -1 5000.0 214.75 402.65 0\n")
    assert (records[0].who, records[0].ranks) == ((), 16)
    (one,) = measurements_of(records, ServerNames(read_cluster("dgx-h100:2").fabric()))
    assert one.groups == (tuple(range(16)),)
    with pytest.raises(InputError, match="16 ranks took part, but the named cluster has 32"):
        measurements_of(records, ServerNames(read_cluster("dgx-h100:4").fabric()))


def test_trays_of_an_nvl72_are_computers_of_four_gpus(read):
    devices = "".join(f"# Rank {r} Group 0 Pid 1 on tray{r // 4} device {r % 4} [0x01] GB200\n" for r in range(72))
    records = read(f"# all_reduce_perf\n{devices}1073741824 268435456 float sum -1 3108.8 345.38 681.17 0\n")
    (one,) = measurements_of(records, ServerNames(read_cluster("gb200-nvl72:1").fabric()))
    assert one.groups == (tuple(range(72)),)
    with pytest.raises(InputError, match="one more than the 2 of the cluster"):
        measurements_of(records, ServerNames(read_cluster("dgx-h100:2").fabric()))
