"""Whatever a file holds, it is read or refused with a message: files come from jobs that crashed."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.errors import InputError
from ropewalk.expect.read.files import read_records
from ropewalk.expect.read.who import ServerNames, measurements_of
from ropewalk.hardware import read_cluster

FABRIC = read_cluster("2x2").fabric()
NCCL_TESTS = """# all_reduce_perf
#  Rank  0 Group  0 Pid 12 on a device  0 [0x18] NVIDIA H100
#  Rank  1 Group  0 Pid 13 on b device  1 [0x2a] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
  1073741824     268435456     float     sum      -1   5000.0  214.75  214.75      0   4000.0  268.44  268.44      0
"""
INSPECTOR = "".join(
    json.dumps({
        "header": {"id": "0x1", "rank": rank, "n_ranks": 2, "nnodes": 2},
        "metadata": {"hostname": "ab"[rank], "pid": 7},
        "coll_perf": {"coll": "AllGather", "coll_sn": 7, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": 400},
    }) + "\n"
    for rank in range(2)
)  # fmt: skip
KINETO = json.dumps({"traceEvents": [{"cat": "kernel", "name": "ncclDevKernel", "dur": 70, "args": {
    "Collective name": "allreduce", "In msg nelems": 1000, "Group size": 2, "dtype": "Float",
    "Process Group Ranks": "[0, 3]"}}]})  # fmt: skip
PAIRS = "ranks,collective,size,busbw\n0 gpu1.0,send,1GB,10\na:1 b:0,,,46GB/s\n0 1 2,,1MiB,5\n"
WHOLE = [NCCL_TESTS, INSPECTOR, KINETO, PAIRS]
WRONG = st.sampled_from(["", "9" * 400, "-1", "1e999", "NaN", "null", "[[[[", '"', "\x00", "é", "{}", ",", "\n"])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([NCCL_TESTS, INSPECTOR, KINETO, PAIRS]), st.floats(0, 1), st.integers(0, 60), WRONG, st.booleans()
)
def test_a_damaged_file_is_read_or_refused(text, at, cut, put, rest):
    place = int(at * len(text))
    damaged = text[:place] + put + (text[place + cut :] if rest else "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "given.txt")
        path.write_text(damaged)
        try:
            found = measurements_of(read_records([path]), ServerNames(FABRIC))
        except InputError:
            return
        assert all(one.seconds > 0 and one.size_bytes > 0 for one in found)
