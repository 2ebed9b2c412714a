"""Devices as data: rates, memory and overheads of accelerators, each line with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from ropewalk.choices import Choice, Choices
from ropewalk.errors import DeviceError
from ropewalk.units import show_size


@dataclass(frozen=True)
class Precision:
    """How numbers are kept and multiplied: `tf32` keeps float32 and multiplies matrices in 19 bits."""

    name: str
    element_bytes: float
    measured_as: str
    """The precision whose measurements stand for it."""
    otherwise: str = ""
    """Whose measurements stand for kinds of kernels that were not measured in it: only products differ."""


PRECISIONS = {
    "bf16": Precision("bf16", 2, "bf16"),
    "fp16": Precision("fp16", 2, "bf16"),
    "tf32": Precision("tf32", 4, "tf32"),
    "fp32": Precision("fp32", 4, "fp32", otherwise="tf32"),
}


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

    def peak(self, precision: Precision) -> float:
        if precision.name not in self.peak_flops:
            known = ", ".join(self.peak_flops)
            raise DeviceError(f"{self.name} has no {precision.name} rate: use one of {known}")
        return self.peak_flops[precision.name]

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True)
class DeviceChoice(Choice[Device]):
    """A line of the table of devices."""

    def facts(self) -> dict[str, str]:
        rates = ", ".join(f"{name} {rate / 1e12:.4g}" for name, rate in self.make.peak_flops.items())
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
    text = files("ropewalk.device").joinpath("data/devices.toml").read_text(encoding="utf-8")
    made = [_device(name, record) for name, record in tomllib.loads(text).items()]
    return Choices("device", map(device_choice, made), error=DeviceError)


def _device(name: str, record: dict[str, Any]) -> Device:
    return Device(name=name, peak_flops=record.pop("peak"), **record)


DEVICES = _devices()
"""Every device of `data/devices.toml`, by name."""


def device(name: str) -> Device:
    """A device by name.

    >>> device("h200").multiprocessors
    132
    """
    return DEVICES.named(name.lower()).make


def precision(name: str) -> Precision:
    """A precision by name."""
    if name.lower() not in PRECISIONS:
        raise DeviceError(f"there is no precision {name!r}: use one of {', '.join(PRECISIONS)}")
    return PRECISIONS[name.lower()]
