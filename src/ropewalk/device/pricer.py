"""What work costs: kernels on the GPU, and the host that launches them.

The GPU and the host work at the same time: a stretch of work takes as long as its kernels or as its launches, whichever
is longer. On a device that was measured, a kernel takes its roofline times the ratio measured there; on another device
its roofline times the ratio measured on the H200, so that what makes kernels inefficient is taken over and only rates
are exchanged. `source` says which of the two it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import as_file, files
from math import ceil
from pathlib import Path

from ropewalk.device.device import DEVICES, PRECISIONS, Device, Precision, device, precision, unlimited
from ropewalk.device.numbers import Numbers
from ropewalk.device.roofline import is_limited_by_memory, roofline
from ropewalk.device.scans import scanned
from ropewalk.device.table import CostTable, has_odd_width, read_table
from ropewalk.device.update import UPDATES
from ropewalk.device.work import Work
from ropewalk.errors import DeviceError
from ropewalk.units import show_percent
from ropewalk.workload.experts import Experts
from ropewalk.workload.kernel import PRODUCTS, Kernel, evened, optimiser, quantise
from ropewalk.workload.operator import Operator
from ropewalk.workload.workload import Workload

REFERENCE = "h200"
"""The device whose measurements are shipped."""
WIDE_BYTES = 4
"""Bytes of a float32, to which careful code casts before sums."""
MODEL_CODE = {"forward": 1.1, "backward": 1.1}
"""What the code of real models adds to their calls. From bf16 steps of torchvision's and transformers' models on the
H200 that are limited by the host; such steps vary by a quarter from run to run."""
INTERPRETER = "interpreter"
"""A call that stands for a microsecond in which the host runs code of the model that calls nothing."""
INTERPRETER_S = 1e-6
CORE_CODE = {"core_forward": (1e-5, 0.0), "core_backward": (0.0, 1e-5)}
"""The same in the code of Megatron-Core, ten microseconds of one of the passes each."""
NARROW_CODE = {"narrow_core_forward": "core_forward"}
"""What Transformer Engine's grouped layers take once more on the way forth where they multiply in 8 bits or fewer:
scheduling a layer then took the host more than twice as long as in bf16 (TransformerEngine, issue 761). Linear layers
have been made quicker since (issue 2126); grouped ones still set up every expert by itself."""
EXPERT, WIDE_EXPERT = "expert", "wide_expert"
"""Calls that stand for the product of one expert, where each is launched by itself; one that is never narrowed."""
EXPERT_S = 9.1e-6
"""Seconds of the host for it. Of 108 grouped products of Transformer Engine on a B200 (SimuMax, b200_bf16_ceperm.json)
those of many experts with little to do take 9.1 to 9.2 µs for each expert, whatever the sizes."""
DRAW_S = 3.9e-12
"""Seconds of the H200 for a random number that is made by itself, all its multiprocessors drawing: one call of Philox
makes four, of which torch.compile's kernels keep one. Fused attention, which keeps all four, takes 0.90 to 1.05 ps more
for each pair of a query and a key where it drops scores (two sizes of `h200_parts.csv`, 75 and 105 million pairs)."""
TABLE_SUFFIXES = (".csv", ".gz")
SHORT_HEAD = 64
"""Numbers of a head up to which exponentials, not products, may hold attention back."""
BUSY_TOKENS, BUSY_SAMPLES = 4096, 64
"""Tokens, or samples that are no sequences, of a micro-batch that keeps a GPU busy."""
BUSY_EXPERT_TOKENS = 1024
"""Tokens that keep an expert busy: what it gets from all ranks that share the experts out."""


class Pricer:
    """Prices of kernels and operators on one device in one precision."""

    def __init__(self, device: Device, precision: Precision, table: CostTable, source: str, clock: float = 1.0) -> None:
        device.peak(precision)
        self.device = device
        self.precision = precision
        self.table = table
        self.source = source
        self.clock = clock
        """Part of the full clock at which it runs."""
        self._seconds: dict[Kernel, float] = {}
        self._host = table.hosts[precision.otherwise or precision.measured_as]

    @property
    def numbers(self) -> Numbers:
        """How wide numbers are that are kept."""
        return self.device.numbers(self.precision)

    def kernel(self, kernel: Kernel) -> float:
        """Seconds of one kernel, others running before and behind it."""
        if kernel.kind == "measured":
            return kernel.dims[0] * 1e-12
        if kernel.form == "cast" and self.precision.element_bytes == WIDE_BYTES:
            return 0.0  # numbers are float32 already: nothing is launched
        if kernel not in self._seconds:
            narrowing_s = self.gpu(self._narrowing(kernel)) + self._narrowed_apart(kernel)
            self._seconds[kernel] = self.alone(kernel) + narrowing_s
        return self._seconds[kernel]

    def alone(self, kernel: Kernel) -> float:
        """Seconds of a kernel whose operands are there as it wants them."""
        if kernel.kind == "scan":
            return scanned(kernel, self.device)
        even = evened(kernel)
        if even is not None:
            return self.device.uneven.get(even.form, 1.0) * self.alone(even)
        numbers = self._numbers_of(kernel)
        ratio, best = self.table.ratio(kernel, numbers.measured_as), roofline(kernel, self.device, numbers)
        if kernel.kind in PRODUCTS:
            bent = self.device.short_heads if kernel.kind == "attention" and kernel.dims[5] <= SHORT_HEAD else 1.0
            clocked = bent * ratio * (self._waiting_for_loads(kernel, numbers) or best) / self.clock
            return clocked + self._apart(kernel)
        drawing_s = kernel.draws * DRAW_S * DEVICES[REFERENCE].make.multiprocessors / self.device.multiprocessors
        return max(ratio * best, best + (ratio - 1) * self._on_as_many(kernel, numbers), drawing_s)

    def _numbers_of(self, kernel: Kernel) -> Precision:
        """The precision that a kernel runs in here: float32 is multiplied as TF32 where the device does that."""
        if not kernel.wide or self.precision.element_bytes == WIDE_BYTES:
            return self.precision.of(kernel)
        return PRECISIONS["tf32" if "tf32" in self.device.peak_flops else "fp32"]

    def _apart(self, kernel: Kernel) -> float:
        """What products of experts take more because each is a launch of its own, at any clock."""
        return kernel.dims[0] * self.device.expert_s if kernel.apart and kernel.form != "weight_grad" else 0.0

    def _on_as_many(self, kernel: Kernel, numbers: Precision) -> float:
        """Seconds of a kernel at best on the device that was measured, if it had as many multiprocessors as this one.

        What a kernel that is no product takes beyond its bytes is spent in multiprocessors, which wait for memory or
        compute addresses: it shrinks with more of them, not with a faster memory.
        """
        measured = self.table.device
        return roofline(kernel, measured, numbers) * measured.multiprocessors / self.device.multiprocessors

    def _waiting_for_loads(self, kernel: Kernel, numbers: Precision) -> float | None:
        """Roofline of a product of odd widths on another architecture than the measured one; None for all others.

        Odd widths cannot be copied in wide pieces: such products wait for their loads, of which multiprocessors issue
        as many in a cycle on every architecture, however much their tensor cores multiply meanwhile.
        """
        here, measured = self.device, self.table.device
        cycles, measured_cycles = here.cycles_per_s, measured.cycles_per_s
        if cycles is None or measured_cycles is None or here.architecture == measured.architecture:
            return None
        if not has_odd_width(kernel) or is_limited_by_memory(kernel, here, numbers):
            return None
        loading_s = roofline(kernel, measured, numbers) - measured.launch_s
        return here.launch_s + loading_s * measured_cycles / cycles

    def _narrowing(self, kernel: Kernel) -> list[Kernel]:
        """What makes the operands of a product narrow: its input, or the gradient of its result for both gradients.

        Weights are narrowed once, when they are updated.
        """
        numbers = self.precision.of(kernel)
        if not numbers.is_narrow or kernel.form == "weight_grad" or kernel.handed:
            return []
        _, rows, _, inner = kernel.dims
        return [quantise(form, rows * inner) for form in self.device.narrowing(numbers)]

    def _narrowed_apart(self, kernel: Kernel) -> float:
        """What it takes more to narrow the rows of each expert by kernels of their own."""
        if not kernel.apart or not self._narrowing(kernel):
            return 0.0
        return (kernel.dims[0] - 1) * self.precision.expert_launches * self.device.launch_s

    def sustained(self, workload: Workload) -> Pricer:
        """Prices at the clock that a device which is held to a power limit keeps while it trains a model for long.

        The clock is that of micro-batches large enough to keep the GPU busy, whatever micro-batch is asked for. Without
        a limit nothing changes but `source`, which says the clock and the stack.
        """
        clock = self._clock_of(workload)
        stack = f"{workload.stack} stack" if workload.stack else ""
        source = ", ".join(part for part in (self.source, self._clock_in_words(clock), stack) if part)
        return Pricer(self.device, self.precision, self.table, source, clock)

    def _clock_in_words(self, clock: float) -> str:
        """At which clock it runs, and why; nothing of the user's own measurements, which have the clock they have."""
        if self.table is not shipped_table():
            return ""
        if self.device.held_to is not None:
            return f"at {show_percent(clock, 0)} of the full clock under {self.device.held_to:g} W"
        power = self.device.power
        if power is None:
            return f"at full clock (energy model of {self.device.name} not known)"
        return f"at the clock of its limit, {power.limit:g} W" if power.kept else "at full clock"

    def _clock_of(self, workload: Workload) -> float:
        """Part of the full clock that the device keeps while it trains a model for long."""
        power = self.device.power
        if power is None or self.device.held_to is None:
            return 1.0
        batch = max(1, BUSY_TOKENS // workload.sequence) if workload.sequence else BUSY_SAMPLES
        sized = workload if workload.resize is None else _with_busy_experts(workload.at_batch(batch), batch)
        alike = Counter(id(layer.operators) for layer in sized.layers)
        clocked_s = whole_s = joules = 0.0
        for operators in {id(layer.operators): layer.operators for layer in sized.layers}.values():
            times = alike[id(operators)]
            for kernel in self._in_both_passes(self._padded(operators)):
                numbers = self._numbers_of(kernel)
                joules += times * numbers.slower * power.joules(kernel, numbers.rate, numbers.element_bytes)
                if kernel.kind in PRODUCTS:
                    clocked_s += times * (self.alone(kernel) - self._apart(kernel))
            whole_s += times * (self.forward_work(operators) + self.backward_work(operators)).gpu_s
        return power.clock(clocked_s, whole_s - clocked_s, joules)

    def _in_both_passes(self, operators: Iterable[Operator]) -> Iterator[Kernel]:
        """The kernels of operators, and those that narrow their operands."""
        for operator in operators:
            for kernel in (*operator.forward(), *operator.backward()):
                yield kernel
                yield from self._narrowing(kernel)

    def gpu(self, kernels: Iterable[Kernel]) -> float:
        """Seconds of the GPU for kernels in sequence."""
        return sum(self.kernel(kernel) for kernel in kernels)

    def host(self, calls: Iterable[str], *, backward: bool = False) -> float:
        """Seconds of the host for calls in sequence."""
        times = self._host.backward if backward else self._host.forward
        in_a_model = times.get("network", 1.0) * MODEL_CODE["backward" if backward else "forward"]
        return in_a_model * sum(self._slower(call) * self._call(times, call) for call in calls)

    def _slower(self, call: str) -> float:
        """Time of a call against the host of the shipped measurements."""
        interpreted = self.device.interpreter_factor if call == INTERPRETER or call in CORE_CODE else None
        return self.device.host_factor if interpreted is None else interpreted

    def _call(self, times: dict[str, float], call: str) -> float:
        if call == INTERPRETER:
            return INTERPRETER_S if times is self._host.forward else 0.0
        if call in CORE_CODE:
            return CORE_CODE[call][times is self._host.backward]
        if call in NARROW_CODE:
            told = self.precision.is_narrow and times is self._host.forward
            return self._call(times, NARROW_CODE[call]) if told else 0.0
        if call in (EXPERT, WIDE_EXPERT):  # two products go back for each that went forth
            products = 1 if times is self._host.forward else 2
            narrowed = len(self.device.narrowing(self.precision)) if call == EXPERT else 0  # expert by expert
            return (products + narrowed) * EXPERT_S
        if call not in times:
            raise DeviceError(f"{self.table.origin} has no host time of {call!r}: measure it with `ropewalk profile`")
        return times[call]

    def forward_work(self, operators: Sequence[Operator]) -> Work:
        """The forward pass of operators in sequence."""
        padded = self._padded(operators)
        return Work(
            self.gpu(kernel for operator in padded for kernel in operator.forward()),
            self.host(_calls(padded)),
        )

    def backward_work(self, operators: Sequence[Operator]) -> Work:
        """The backward pass of operators in sequence."""
        padded = self._padded(operators)
        return Work(
            self.gpu(kernel for operator in padded for kernel in operator.backward()),
            self.host(_calls(padded), backward=True),
        )

    def weight_work(self, operators: Sequence[Operator]) -> Work:
        """What of the backward pass makes gradients of weights alone; its launches are counted with the whole pass."""
        padded = self._padded(operators)
        return Work(self.gpu(kernel for operator in padded for kernel in operator.weight_backward()))

    def _padded(self, operators: Sequence[Operator]) -> list[Operator]:
        """The operators with as many rows for each expert as products in this precision want."""
        return [operator.padded(self.precision.expert_rows) for operator in operators]

    def update_work(self, parameters: int, tensors: int, name: str = "adamw") -> Work:
        """The update of parameters held in this many tensors by an optimiser."""
        if name not in UPDATES:
            raise DeviceError(f"there is no optimiser {name!r}: use one of {', '.join(UPDATES)}")
        update = UPDATES[name]
        if parameters and update.on_host:
            return Work(self._update_on_host(parameters))
        if not parameters or not update.kernels:
            return Work()
        if update.element_bytes not in (0.0, self.precision.element_bytes):
            raise DeviceError(f"optimiser {name} keeps copies of weights in 16 bits, not in {self.precision.name}")
        sized = min(parameters, update.most)
        once_s = sum(often * self.kernel(optimiser(form, int(sized), 1)) for form, often in update.kernels.items())
        copies = self.gpu(quantise(form, parameters) for form in self.device.narrowing(self.precision))
        gpu_s = once_s * parameters / sized + copies
        host_s = self.device.host_factor * self._call(self._host.forward, update.called or name) * tensors
        waiting_s = update.waiting(tensors) * host_s
        return Work(max(0.0, gpu_s - waiting_s), host_s - waiting_s, waiting_s)

    def _update_on_host(self, parameters: int) -> float:
        """Seconds of an update in the host's memory, and of making weights narrow again."""
        host = self.device.host
        if host is None:
            known = ", ".join(name for name in DEVICES if DEVICES[name].make.host is not None)
            raise DeviceError(
                f"the update rate of the host of {unlimited(self.device.name)} is not known: use the optimiser "
                "adamw_fused, "
                f"or one of {known}"
            )
        copies = self.gpu(quantise(form, parameters) for form in self.device.narrowing(self.precision))
        return host.update_s(parameters, self.numbers.element_bytes) + copies

    def forward(self, operators: Sequence[Operator]) -> float:
        """Seconds of the forward pass of operators in sequence."""
        return self.forward_work(operators).seconds

    def backward(self, operators: Sequence[Operator]) -> float:
        """Seconds of the backward pass of operators in sequence."""
        return self.backward_work(operators).seconds

    def weight(self, operators: Sequence[Operator]) -> float:
        """Seconds of the GPU in the backward pass of operators for gradients of weights alone."""
        return self.weight_work(operators).gpu_s

    def update(self, parameters: int, tensors: int, name: str = "adamw") -> float:
        """Seconds in which an optimiser updates parameters held in this many tensors."""
        return self.update_work(parameters, tensors, name).seconds


def _with_busy_experts(workload: Workload, batch: int) -> Workload:
    """The workload with as many samples as keep its experts busy: ranks that share them out pool their tokens."""
    experts = [one for layer in workload.layers for one in layer.operators if isinstance(one, Experts)]
    short = max((BUSY_EXPERT_TOKENS * one.experts / one.slots for one in experts), default=0.0)
    return workload.at_batch(batch * ceil(short)) if short > 1 else workload


def _calls(operators: Iterable[Operator]) -> Iterator[str]:
    """What the host calls for operators; those in CUDA graphs are launched together."""
    return (call for operator in operators if not operator.captured for call in operator.host())


def pricer(device_or_table: str = REFERENCE, precision_name: str = "bf16") -> Pricer:
    """Prices by the name of a device, or by the path of a table that `ropewalk profile` wrote.

    >>> pricer("h200", "bf16").source
    'measured on h200 (shipped table)'
    """
    numbers = precision(precision_name)
    if _is_table(device_or_table):
        table = read_table(Path(device_or_table))
        return Pricer(table.device, numbers, table, f"measured on {table.device.title} ({Path(device_or_table).name})")
    chosen = device(device_or_table)
    source = f"measured on {REFERENCE} (shipped table)"
    if unlimited(chosen.name) != REFERENCE:
        source = f"roofline of {unlimited(chosen.name)}, calibrated on {REFERENCE} measurements"
    return Pricer(chosen, numbers, shipped_table(), source)


def device_of(device_or_table: str) -> Device:
    """The device of that name, or the one that a table was measured on.

    >>> device_of("h200").multiprocessors
    132
    """
    return read_table(Path(device_or_table)).device if _is_table(device_or_table) else device(device_or_table)


def _is_table(device_or_table: str) -> bool:
    return device_or_table.lower().endswith(TABLE_SUFFIXES)


@cache
def shipped_table() -> CostTable:
    """The measurements that come with ropewalk."""
    with as_file(files("ropewalk.device").joinpath(f"data/{REFERENCE}.csv.gz")) as path:
        return read_table(path, device(REFERENCE))
