"""Tables of nccl-tests that people posted, read and judged on clusters as they describe theirs."""

import pytest

from ropewalk.expect.question import ExpectQuestion
from ropewalk.expect.study import answer
from ropewalk.hardware import Given, read_cluster

TWO_SERVERS_ONE_NIC = """
    33554432 1543.4 21.74 40.76
    67108864 3099.2 21.65 40.60
   134217728 5876.9 22.84 42.82
   268435456  11435 23.47 44.01
   536870912  22669 23.68 44.41
  1073741824  45390 23.66 44.36
  2147483648  90808 23.65 44.34
  4294967296 181855 23.62 44.28
  8589934592 364906 23.54 44.14
 17179869184 727698 23.61 44.27
"""
"""nccl-tests issue 319: two HGX H100 with eight NICs each, whose owner calls this bad."""

A100_RINGS = """
   536870912  10052 53.41 93.46
  1073741824  20079 53.48 93.58
  2147483648  39871 53.86 94.26
  4294967296  77194 55.64 97.37
  8589934592 158070 54.34 95.10
"""
"""nccl-tests issue 252: two servers of four A100 with four NICs of 200 Gbps; NCCL's developers call it great."""

THREE_SERVERS = """
   127926280 2560.7 49.96 95.75
   130023432 2584.7 50.31 96.42
   133169160 2666.0 49.95 95.74
"""
"""nccl-tests issue 119: three servers of eight A100 with four NICs of 200 Gbps; NCCL's developers call it perfect."""

H20_DIP = """
     1048576  121.8  8.61  16.14
     4194304  127.6 32.87  61.63
    16777216  203.0 82.65 154.95
    67108864  467.9 143.4 268.90
   134217728 1108.0 121.1 227.14
   268435456 2055.4 130.6 244.88
"""
"""NCCL issue 1244: two servers of eight H20, whose bandwidth falls where it should rise."""


@pytest.fixture
def judged(tmp_path):
    def read(rows, shape, given=None):
        cluster = read_cluster(shape, given)
        path, gpus = tmp_path / "out.txt", cluster.servers[0].gpus
        lines = [
            f"#  Rank {rank:2} Group 0 Pid 1{rank} on host{rank // gpus} device {rank % gpus}"
            for rank in range(cluster.gpus)
        ]
        for row in rows.split("\n"):
            if row:
                size, time, algbw, busbw = row.split()
                lines.append(f"{size} {int(size) // 4} float sum -1 {time} {algbw} {busbw} 0 {time} {algbw} {busbw} 0")
        path.write_text("\n".join(["# all_reduce_perf", *lines, "# Avg bus bandwidth"]))
        return answer(ExpectQuestion(cluster, files=(path,))).diagnosis

    return read


def test_one_nic_of_eight_explains_44_gigabytes(judged):
    found = judged(TWO_SERVERS_ONE_NIC, "dgx-h100:2")
    assert not found.healthy
    assert "one-nic" in found.best.names
    assert any(set(cause.names) == {"ring-only", "one-nic"} for cause in (found.best, *found.ties))


@pytest.mark.parametrize(("rows", "shape"), [(A100_RINGS, "2x4"), (THREE_SERVERS, "3x8")])
def test_what_developers_call_great_is_healthy(judged, rows, shape):
    assert judged(rows, shape, Given(device="a100", nics=4)).healthy


def test_sizes_at_which_bandwidth_falls_are_slow_and_the_others_are_not(judged):
    (series,) = judged(H20_DIP, "dgx-h100:2").series
    assert [row.state for row in series.rows] == ["healthy"] * 4 + ["slow"] * 2
