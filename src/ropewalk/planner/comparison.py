"""Networks beside each other: what is comparable with what, and one sentence that compares like with like.

Two networks have *equal bandwidth* where the same GPUs have NICs of the same speed, and *equal cost* where they cost
the same within 5 %. Whatever is neither is shown, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ropewalk import units
from ropewalk.hardware import Cluster, Ports
from ropewalk.hardware.bill import Price
from ropewalk.hardware.cabling import cabling_of

NETWORK = "network"
ABOUT_EQUAL = 0.05
"""Parts by which costs may differ and still be equal."""
AS_FAST = 0.01
"""Parts by which step times may differ and still be called the same."""


@dataclass(frozen=True)
class Hosts:
    """What stands at the ends of a network: networks that join the same of it have equal bandwidth."""

    gpus: int
    device: str
    nvlink: float
    """Bytes/s of a GPU inside its server, of the slowest."""
    per_gpu: float
    """Bytes/s that servers can send into the network, per GPU."""

    def equals(self, other: Hosts) -> bool:
        same = (self.gpus, self.device, self.nvlink) == (other.gpus, other.device, other.nvlink)
        return same and abs(self.per_gpu - other.per_gpu) <= 1e-6 * max(self.per_gpu, other.per_gpu)

    def against(self, other: Hosts) -> str:
        """What differs, in words: `200 against 400 Gbps per GPU`."""
        if (self.gpus, self.device) != (other.gpus, other.device):
            return f"{self.gpus} x {self.device} against {other.gpus} x {other.device}"
        if self.per_gpu != other.per_gpu:
            return f"{units.show_bandwidth(self.per_gpu)} against {units.show_bandwidth(other.per_gpu)} per GPU"
        return "different NVLink bandwidths"


def hosts_of(cluster: Cluster) -> Hosts:
    """The hosts of a cluster, as a comparison sees them.

    >>> from ropewalk.hardware import on_network, read_cluster
    >>> pod = read_cluster("dgx-h100:4")
    >>> [hosts_of(on_network(pod, name)).per_gpu / 1e9 for name in ("rails", "torus", "wire:4x100Gbps")]
    [50.0, 50.0, 6.25]
    """
    if isinstance(cluster.network, Ports):
        sent = sum(group.count * group.nics * group.nic_bandwidth for group in cluster.servers)
    else:
        sent = cabling_of(replace(cluster, failed=()).fabric()).bandwidth_of_servers()
    gpus = sum(group.count * group.gpus for group in cluster.servers)
    nvlink = min(group.nvlink_bandwidth for group in cluster.servers)
    return Hosts(cluster.gpus, cluster.device, nvlink, sent / gpus)


@dataclass(frozen=True)
class NetworkResult:
    """What the best strategy reaches on one network."""

    name: str
    """The network as it was typed."""
    cluster: Cluster
    hosts: Hosts
    step_time_s: float
    samples_per_s: float
    tokens_per_s: float | None
    """None where samples have no tokens."""
    mfu: float | None
    price: Price
    strategy: str = ""
    """In a few words."""
    bound_s: float | None = None
    """What no strategy beats on this network, where that was proved."""

    @property
    def throughput(self) -> float:
        """Tokens/s, or samples/s where there are no tokens."""
        return self.samples_per_s if self.tokens_per_s is None else self.tokens_per_s


@dataclass(frozen=True)
class NetworkRow:
    """One network beside the reference."""

    result: NetworkResult
    slowdown: float
    """Step time over that of the reference."""
    cost_ratio: float
    """Dollars over those of the reference."""
    per_dollar: float
    """Tokens/s (samples/s) per dollar."""
    equal_bandwidth: bool
    equal_cost: bool

    @property
    def kind(self) -> str:
        """What the comparison with the reference is."""
        named = [word for word, holds in (("bandwidth", self.equal_bandwidth), ("cost", self.equal_cost)) if holds]
        return f"equal {' and '.join(named)}" if named else "unequal hosts"


@dataclass(frozen=True)
class NetworkComparison:
    """Networks beside each other, the fastest first."""

    reference: str
    """The network that the others are compared with: the first one that was named."""
    rows: tuple[NetworkRow, ...]
    dollars_of: str
    """What is priced: `network`, or `network and servers` where the price list has the servers."""
    prices: str
    pick: str
    """The network to take: of those with equal bandwidth that are as fast as the fastest, the cheapest."""
    verdict: str

    @property
    def counted(self) -> str:
        """What throughput counts: tokens/s, or samples/s where there are no tokens."""
        return "tokens/s" if all(row.result.tokens_per_s is not None for row in self.rows) else "samples/s"

    def as_json(self) -> dict[str, Any]:
        return {
            "reference": self.reference,
            "prices": self.prices,
            "dollars_of": self.dollars_of,
            "pick": self.pick,
            "verdict": self.verdict,
            "networks": [_row_as_json(row) for row in self.rows],
        }


def compared(results: Sequence[NetworkResult]) -> NetworkComparison:
    """All networks against the first, and the verdict."""
    assert results, "somebody named a network"
    first = results[0]
    whole = all(result.price.with_servers is not None for result in results)

    def row(result: NetworkResult) -> NetworkRow:
        spent, reference = _dollars(result, whole), _dollars(first, whole)
        return NetworkRow(
            result,
            result.step_time_s / first.step_time_s,
            spent / reference,
            result.throughput / spent,
            result.hosts.equals(first.hosts),
            abs(spent / reference - 1) <= ABOUT_EQUAL,
        )

    rows = tuple(sorted(map(row, results), key=lambda made: made.result.step_time_s))
    of = f"{NETWORK} and servers" if whole else NETWORK
    pick = _pick([made for made in rows if made.equal_bandwidth]).result.name
    return NetworkComparison(first.name, rows, of, first.price.prices, pick, verdict(rows, first, of))


def _dollars(result: NetworkResult, whole: bool) -> float:
    both = result.price.with_servers
    return both if whole and both is not None else result.price.total


def verdict(rows: Sequence[NetworkRow], first: NetworkResult, dollars_of: str) -> str:
    """Which network to take, in one sentence; what has other hosts is never in the headline without saying so."""
    if len(rows) == 1:
        took = units.show_seconds(first.step_time_s)
        return f"{first.name}: {took} per step; name a second network to compare it with."
    equal = [row for row in rows if row.equal_bandwidth]
    speed = units.show_bandwidth(first.hosts.per_gpu)
    parts = [_headline(equal, speed, dollars_of)] if len(equal) > 1 else []
    parts += [_unequal(row, equal[0]) for row in rows if not row.equal_bandwidth]
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _as_fast(equal: Sequence[NetworkRow]) -> list[NetworkRow]:
    """Those that are as fast as the fastest, which stands first."""
    return [row for row in equal if row.result.step_time_s <= (1 + AS_FAST) * equal[0].result.step_time_s]


def _pick(equal: Sequence[NetworkRow]) -> NetworkRow:
    """The cheapest of the fastest."""
    return min(_as_fast(equal), key=lambda row: (row.cost_ratio, row.result.step_time_s))


def _headline(equal: Sequence[NetworkRow], speed: str, dollars_of: str) -> str:
    """The cheapest of the fastest, and what gives most for the money where that is another."""
    pick, as_fast = _pick(equal), _as_fast(equal)
    said = [f"with equal bandwidth per GPU ({speed}), {pick.result.name} is recommended"]
    dearest, cheapest = max(equal, key=lambda row: row.cost_ratio), min(equal, key=lambda row: row.cost_ratio)
    value = max(equal, key=lambda row: row.per_dollar)
    trade = pick.cost_ratio > (1 + ABOUT_EQUAL) * cheapest.cost_ratio and value is not pick
    beside = "" if trade and equal[1] is value else _beside(equal, as_fast, pick)
    said.append(f": {units.show_seconds(pick.result.step_time_s)} per step{beside}")
    if pick.cost_ratio <= (1 + ABOUT_EQUAL) * cheapest.cost_ratio:
        saved = 1 - pick.cost_ratio / dearest.cost_ratio
        costs = f"its {dollars_of} cost{'s' if dollars_of == NETWORK else ''}"
        less = f", and {costs} {_percent(saved)} less than {dearest.result.name}"
        said.append(less if saved > ABOUT_EQUAL else f", at equal cost ({dollars_of})")
    elif value is pick:
        said.append(f", and it has the highest throughput per dollar ({dollars_of})")
    else:
        saved = 1 - value.cost_ratio / pick.cost_ratio
        said.append(
            f"; {value.result.name} takes {_longer(value, pick)} and costs {_percent(saved)} less ({dollars_of})"
        )
    return "".join(said)


def _beside(equal: Sequence[NetworkRow], as_fast: Sequence[NetworkRow], pick: NetworkRow) -> str:
    """How the time compares with the others."""
    others = [row.result.name for row in as_fast if row is not pick]
    if len(others) > 2 and len(as_fast) == len(equal):
        return f", as fast as all {len(others)} others"
    if others:
        return f", as fast as {_listed(others)}"
    second = equal[1]
    return f" ({second.result.name}, the next fastest, takes {_longer(second, pick)})"


def _longer(row: NetworkRow, pick: NetworkRow) -> str:
    return f"{_percent(row.result.step_time_s / pick.result.step_time_s - 1)} longer"


def _unequal(row: NetworkRow, best: NetworkRow) -> str:
    """A network with other hosts against the fastest of those that have the same."""
    times = best.result.step_time_s / row.result.step_time_s
    against = row.result.hosts.against(best.result.hosts)
    ratio = row.cost_ratio / best.cost_ratio
    cost = "at equal cost but " if abs(ratio - 1) <= ABOUT_EQUAL else ""
    spent = "" if cost else f" and at {ratio:.2f}x the cost"
    faster = f"{times:.2f}x faster than" if times >= 1 else f"{1 / times:.2f}x slower than"
    return f"{cost}with unequal hosts ({against}){spent}, {row.result.name} is {faster} {best.result.name}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if abs(part) < 0.1 else f"{100 * part:.0f} %"


def _row_as_json(row: NetworkRow) -> dict[str, Any]:
    result = row.result
    return {
        "network": result.name,
        "cluster": result.cluster.said,
        "strategy": result.strategy,
        "step_time_s": result.step_time_s,
        "bound_s": result.bound_s,
        "tokens_per_s": result.tokens_per_s,
        "samples_per_s": result.samples_per_s,
        "mfu": result.mfu,
        "gpus": result.hosts.gpus,
        "bandwidth_per_gpu_bytes_per_s": result.hosts.per_gpu,
        "slowdown": row.slowdown,
        "cost_ratio": row.cost_ratio,
        "throughput_per_dollar": row.per_dollar,
        "comparison": row.kind,
        "price": result.price.as_json(),
    }
