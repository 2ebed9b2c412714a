"""Devices as data: rates, memory and overheads of accelerators, each line with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ropewalk.choices import Choice, Choices
from ropewalk.device.host import Host
from ropewalk.device.numbers import Numbers
from ropewalk.device.power import Power
from ropewalk.documents.from_toml import packaged_toml
from ropewalk.errors import DeviceError
from ropewalk.units import show_size, watts
from ropewalk.workload.kernel import PRODUCTS, Kernel


@dataclass(frozen=True)
class Precision:
    """How numbers are kept and multiplied: `tf32` keeps float32 and multiplies matrices in 19 bits."""

    name: str
    element_bytes: float
    measured_as: str
    """The precision whose measurements stand for it."""
    otherwise: str = ""
    """The precision of all kernels that are not of `kinds`: only products differ."""
    kinds: tuple[str, ...] = PRODUCTS
    """The kinds of kernels that run in it."""
    narrowed: tuple[str, ...] = ()
    """Kernels that make operands of products narrow, by the form of `quantise`: once for every input and gradient."""
    narrow_bytes: float = 0.0
    """Bytes of a narrow number, its part of the scale of its block included."""
    blocks: bool = False
    """Small blocks have scales of their own, along the numbers that a product sums over: a tensor that is read along
    its rows and along its columns is kept twice."""
    expert_rows: int = 1
    """Rows of each expert come in multiples of this: Transformer Engine pads them."""
    expert_launches: int = 0
    """Kernels by which Transformer Engine narrows the rows of one expert, each by itself (`split_quantize`): one, or
    three where it finds the largest number and makes a scale of it first; 0: one kernel narrows those of all."""
    weight_bytes: float | None = None
    """Bytes of a narrow number of a weight whose blocks are squares: scaled alike along rows and columns, so it is sent
    narrow; None: as all other operands."""
    slower: float = 1.0
    """Time and energy of its products against those at the same rate with one scale for a tensor."""
    architecture: str = ""
    """The only architecture whose libraries multiply so; empty: every device that has the rate."""

    @property
    def rate(self) -> str:
        """The precision whose rate and energy of a FLOP its products have."""
        return RATES.get(self.name, self.name)

    @property
    def is_narrow(self) -> bool:
        """Are products narrower than the tensors of the step?"""
        return bool(self.narrowed)

    def of(self, kernel: Kernel) -> Precision:
        """The precision that a kernel runs in: itself, or the one that other kernels keep."""
        own = not self.otherwise or (kernel.kind in self.kinds and not (kernel.exact and self.is_narrow))
        return self if own else PRECISIONS[self.otherwise]


_WEIGHTS = ("matmul", "grouped_matmul")
"""What FP8 multiplies: linear layers and experts. Attention, heads over words and routers stay as they are."""

PRECISIONS = {
    "bf16": Precision("bf16", 2, "bf16"),
    "fp16": Precision("fp16", 2, "bf16"),
    "tf32": Precision("tf32", 4, "tf32"),
    "fp32": Precision("fp32", 4, "fp32", otherwise="tf32"),
    "fp8": Precision("fp8", 2, "fp8", "bf16", _WEIGHTS, ("amax", "both"), 1.0, False, 16, 3),
    "fp8-delayed": Precision("fp8-delayed", 2, "fp8", "bf16", _WEIGHTS, ("both",), 1.0, expert_rows=16),
    "fp8-block": Precision(
        "fp8-block",
        2,
        "fp8",
        "bf16",
        _WEIGHTS,
        ("block", "block"),
        1 + 4 / 128,
        True,
        16,
        1,
        weight_bytes=1 + 4 / 128**2,
        slower=1.22,
        architecture="Hopper",
    ),
    "mxfp8": Precision("mxfp8", 2, "fp8", "bf16", _WEIGHTS, ("block", "block"), 1 + 1 / 32, True, 32, 1),
    "nvfp4": Precision("nvfp4", 2, "fp8", "bf16", _WEIGHTS, ("amax", "block", "block"), 1 / 2 + 1 / 16, True, 128, 1),
}
"""How a step may be computed. The last five keep weights and activations in bf16 and multiply in fewer bits, as
Transformer Engine does: with one scale for a tensor, found as it is made or remembered from the step before, or with
one for each small block.

`fp8-block` is DeepSeek-V3's: a float32 scale for every 128 numbers of a row, for every 128 x 128 numbers of a weight.
Hopper adds up its products 128 numbers at a time outside of the tensor cores; Transformer Engine runs it on Blackwell
as `mxfp8`. 1.22: median of 693 products of 1 to 10 TFLOP on an H200, 1.24 on an H100, what makes operands narrow taken
out (AIConfigurator, systems/data/*/gemm, TensorRT-LLM 1.3). Experts are padded to 16 rows (Megatron-Core,
`fp8_utils.py`)."""


RATES = {"fp8-delayed": "fp8", "fp8-block": "fp8"}
"""Precisions whose products run at the rate of another."""


FLOPS_PER_CYCLE = {"Volta": 1024, "Ampere": 2048, "Hopper": 4096, "Blackwell": 8192}
"""FLOP of dense 16-bit products that a multiprocessor does in a cycle, by architecture (NVIDIA's white papers)."""


ADDED = 0.345
"""Bytes that a device adds for each that it could stream: 1.45 TB/s of 4.2 on an H200, bf16 and float32 alike."""


@dataclass(frozen=True)
class Device:
    """One accelerator."""

    name: str
    title: str
    multiprocessors: int
    peak_flops: Mapping[str, float]
    """FLOP/s of dense matrix products by precision, as the vendor states them."""
    achievable: float
    """Part of the peak that large matrix products reach."""
    memory_bandwidth: float
    streaming: float
    """Part of the memory bandwidth that large copies reach."""
    memory_bytes: float
    cache_bytes: float
    launch_s: float
    """The least time of a kernel, back to back."""
    host_factor: float
    """Time of the host's launches against the host of the shipped measurements."""
    source: str
    interpreter_factor: float | None = None
    """The same of what Python's interpreter runs between calls of PyTorch; None: as much as of launches."""
    scans: float = 1.0
    """What a multiprocessor does of scans of Mamba-2 layers in the time of one of an H200."""
    short_heads: float = 1.0
    """Time of attention of heads of 64 numbers or fewer, against what tensor cores alone would need."""
    expert_s: float = 0.0
    """Seconds that a product of one expert takes beyond its share of a product of them all, where each is launched by
    itself; gradients of weights take no more."""
    uneven: Mapping[str, float] = field(default_factory=dict)
    """Time of attention whose values are shorter than its keys, by pass, against heads of the mean size."""
    architecture: str = ""
    """Whose kernels it runs: Hopper, Blackwell; empty where that is not known."""
    power: Power | None = None
    """What it may draw, and what work costs it in energy, where that is known."""
    held_to: float | None = None
    """Watts that it is held to; None: it runs at full clock."""
    adding: float | None = None
    """Bytes/s of one operand that it adds to another, as reductions do, where that was measured; see `adds`."""
    host_adding: float | None = None
    """The same of its host's CPU."""
    host: Host | None = None
    """Its part of the CPUs of the server that it is sold in, where that is known."""

    @property
    def adds(self) -> float:
        """Bytes/s that it adds to what it has: read twice and written once, at the H200's share of streaming.

        >>> [round(device(name).adds / 1e12, 2) for name in ("h200", "h100", "a100", "b200")]
        [1.45, 1.01, 0.62, 2.07]
        """
        return self.adding or ADDED * self.memory_bandwidth * self.streaming

    def numbers(self, precision: Precision) -> Numbers:
        """How wide numbers are that are kept, where the stack keeps operands narrow.

        A weight is read along its rows and along its columns. Hopper's products in 8 bits want what they sum over to
        lie in a row, so both are kept; Blackwell's read one copy either way, unless blocks have scales of their own.

        >>> [device(name).numbers(PRECISIONS["fp8"]).copy_bytes for name in ("h100", "b200")]
        [2.0, 1.0]
        """
        if not precision.is_narrow:
            return Numbers(precision.element_bytes)
        narrow = precision.narrow_bytes
        weight = precision.weight_bytes or narrow
        copies = weight if self._reads_either_way(precision) else 2 * weight
        sent = None if precision.blocks and precision.weight_bytes is None else weight
        return Numbers(precision.element_bytes, narrow, copies, sent, precision.expert_rows)

    def narrowing(self, precision: Precision) -> tuple[str, ...]:
        """Kernels that make an operand narrow; one layout is written where products read it along rows and columns.

        >>> [device(name).narrowing(PRECISIONS["fp8"]) for name in ("h100", "b200")]
        [('amax', 'both'), ('amax', 'tensor')]
        """
        if not self._reads_either_way(precision):
            return precision.narrowed
        return tuple("tensor" if form == "both" else form for form in precision.narrowed)

    def _reads_either_way(self, precision: Precision) -> bool:
        return "mxfp8" in self.peak_flops and not precision.blocks

    @property
    def cycles_per_s(self) -> float | None:
        """Cycles of all multiprocessors together in a second, as the stated peak has them; None where not known.

        >>> a100, h100 = device("a100").cycles_per_s, device("h100").cycles_per_s
        >>> round(a100 / 108 / 1e6), round(h100 / 132 / 1e6)
        (1411, 1829)
        """
        each = FLOPS_PER_CYCLE.get(self.architecture)
        return None if each is None else self.peak_flops["fp16"] / each

    def peak(self, precision: Precision) -> float:
        if not self._multiplies(precision):
            known = ", ".join(name for name, other in PRECISIONS.items() if self._multiplies(other))
            raise DeviceError(f"{unlimited(self.name)} has no {precision.name} rate: use one of {known}")
        return self.peak_flops[precision.rate]

    def _multiplies(self, precision: Precision) -> bool:
        return precision.rate in self.peak_flops and precision.architecture in ("", self.architecture)

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True)
class DeviceChoice(Choice[Device]):
    """A line of the table of devices."""

    def facts(self) -> dict[str, str]:
        rates = ", ".join(f"{name} {round(rate / 1e12, 1):g}" for name, rate in self.make.peak_flops.items())
        return {
            "memory": f"{show_size(self.make.memory_bytes)}, {self.make.memory_bandwidth / 1e12:.3g} TB/s",
            "peak TFLOP/s": rates,
            "source": self.make.source.partition(";")[0],
        }

    def as_json(self) -> dict[str, Any]:
        return asdict(self.make)


def device_choice(device: Device) -> DeviceChoice:
    return DeviceChoice(device.name, device, device.title)


def _devices() -> Choices[DeviceChoice]:
    made = [_device(name, record) for name, record in packaged_toml("ropewalk.device", "data/devices.toml").items()]
    return Choices("device", map(device_choice, made), error=DeviceError)


def _device(name: str, record: dict[str, Any]) -> Device:
    power, host = record.pop("power", None), record.pop("host", None)
    record |= {"power": power and _power(power), "host": host and Host(**host)}
    return Device(name=name, peak_flops=record.pop("peak"), **record)


def _power(record: dict[str, float]) -> Power:
    own = {name: record.pop(name) for name in ("limit", "idle", "byte")}
    return Power(**own, kept=bool(record.pop("kept", False)), flop=record)


DEVICES = _devices()
"""Every device of `data/devices.toml`, by name."""


def device(name: str) -> Device:
    """A device by name, at full clock (`h200`, `h200@none`) or held to a power limit (`h200@500W`).

    >>> device("h200").multiprocessors
    132
    >>> device("h200@500W").held_to, device("h200@none").held_to
    (500.0, None)
    """
    plain, _, limit = name.partition(HELD_TO)
    found = DEVICES.named(plain.lower()).make
    return found if limit.lower() in ("", NO_LIMIT) else _held(found, watts(limit), name)


def unlimited(name: str) -> str:
    """The name of a device without its power limit.

    >>> unlimited("h200@500W"), unlimited("h200")
    ('h200', 'h200')
    """
    return name.partition(HELD_TO)[0]


HELD_TO = "@"
"""Stands before the power limit behind a device's name."""
NO_LIMIT = "none"
"""Stands there for full clock."""


def _held(found: Device, limit: float, name: str) -> Device:
    if found.power is None:
        known = ", ".join(one for one, choice in DEVICES.items() if choice.make.power is not None)
        raise DeviceError(
            f"the energy model of {found.name} is not known: use one of {known}, or no power limit (leave --power out)"
        )
    if limit <= found.power.idle:
        raise DeviceError(
            f"{found.name} draws {found.power.idle:g} W when idle and cannot be limited to {limit:g} W: "
            f"give more, such as {found.power.limit:g}W"
        )
    return replace(found, name=name, power=replace(found.power, limit=limit), held_to=limit)


def precision(name: str) -> Precision:
    """A precision by name."""
    if name.lower() not in PRECISIONS:
        raise DeviceError(f"there is no precision {name!r}: use one of {', '.join(PRECISIONS)}")
    return PRECISIONS[name.lower()]
