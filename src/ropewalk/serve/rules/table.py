"""Every driver by name: who tells which devices their rules, with the options that each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ropewalk.choices import Choice, Choices
from ropewalk.errors import ClusterError, Findings
from ropewalk.units import seconds

if TYPE_CHECKING:
    from ropewalk.export.cluster.addresses import AddressPlan
    from ropewalk.serve.rules.driver import Driver
    from ropewalk.serve.rules.reach import Reach
    from ropewalk.tenancy.plant import Plant

Options = Mapping[str, str]
Make = Callable[["Plant", "AddressPlan", Options], "Driver"]
REACH = {
    "reach": "command that opens a shell on a leaf, such as 'ssh root@{device}' or 'ip netns exec {device}'",
    "timeout": "time limit for a device, default 5s",
}
FOLDER = {"folder": "folder for the documents of devices"}
EXAMPLES = {"lab": "NAME", "reach": "'ssh root@{device}'", "folder": "rules"}


@dataclass(frozen=True)
class DriverChoice(Choice[Make]):
    """A driver, and the options that `make` reads."""

    options: Mapping[str, str] = field(default_factory=dict)
    one_of: tuple[str, ...] = ("folder",)
    """Options of which it needs one."""

    def facts(self) -> dict[str, str]:
        return {"devices": self.where, "options": "; ".join(f"{name}: {about}" for name, about in self.options.items())}


def _linux(plant: Plant, addresses: AddressPlan, options: Options) -> Driver:
    from ropewalk.serve.rules.linux import LinuxDriver

    dead = options.get("dead_links", "wait")
    if dead not in ("wait", "share"):
        raise ClusterError(f"there is no dead_links={dead}: use wait or share")
    return LinuxDriver(plant, addresses, _reach(options), dead == "wait")


def _frr(plant: Plant, addresses: AddressPlan, options: Options) -> Driver:
    from ropewalk.serve.rules.folder import FolderDriver
    from ropewalk.serve.rules.frr import FrrDriver, FrrLeafs

    leafs = FrrLeafs(plant, addresses)
    leafs.check()
    if "folder" in options:
        return FolderDriver("frr", Path(options["folder"]), dict.fromkeys(plant.leaf_names, leafs.format))
    return FrrDriver(leafs, _reach(options), options.get("vtysh", "vtysh"))


def _sonic(plant: Plant, addresses: AddressPlan, options: Options) -> Driver:
    from ropewalk.serve.rules.folder import FolderDriver
    from ropewalk.serve.rules.sonic import SonicLeafs

    leafs = SonicLeafs(plant, addresses).format
    return FolderDriver("sonic", Path(options["folder"]), dict.fromkeys(plant.leaf_names, leafs))


def _optical(plant: Plant, _: AddressPlan, options: Options) -> Driver:
    from ropewalk.serve.rules.folder import FolderDriver
    from ropewalk.serve.rules.optical import Switches
    from ropewalk.tenancy.optical.plant import OpticalPlant

    if not isinstance(plant, OpticalPlant):
        raise ClusterError(f"driver optical: {plant.name} has no optical switches: choose a policy such as ocs-vclos")
    return FolderDriver("optical", Path(options["folder"]), Switches(plant).formats())


def _files(plant: Plant, _: AddressPlan, options: Options) -> Driver:
    from ropewalk.serve.rules.folder import FolderDriver
    from ropewalk.serve.rules.neutral import NEUTRAL

    devices = (*plant.leaf_names, *plant.spine_names)
    return FolderDriver("files", Path(options["folder"]), dict.fromkeys(devices, NEUTRAL))


DRIVERS = Choices(
    "driver",
    (
        DriverChoice("linux", _linux, "policy routing of the kernel (ip rule, ip route)", where="leafs that run Linux, "
                     "or leafs of a lab", options={"lab": "the lab whose leafs they are, instead of `reach`", **REACH,
                     "dead_links": "wait (the default: traffic over a dead cable waits for new links) or share"},
                     one_of=("lab", "reach")),
        DriverChoice("frr", _frr, "policy-based routing of FRR (pbrd), by vtysh", where="leafs that run FRR",
                     options={**REACH, "vtysh": "the command, with its options", **FOLDER},
                     one_of=("reach", "folder")),
        DriverChoice("sonic", _sonic, "ACL tables of CONFIG_DB, one document per leaf", where="leafs that run SONiC",
                     options=FOLDER),
        DriverChoice("optical", _optical, "circuits in the order in which mirrors move, one document per switch",
                     where="optical switches and the spines connected to them", options=FOLDER),
        DriverChoice("files", _files, "plain JSON, one document per device", where="all devices", options=FOLDER),
    ),
    error=ClusterError,
)  # fmt: skip
"""All drivers. Adding one is a file and a line here."""


def driver_named(name: str, options: Options, plant: Plant, addresses: AddressPlan) -> Driver:
    """The driver of this name; options that it does not have are refused."""
    choice = DRIVERS.named(name)
    require_options([name], options)
    return choice.make(plant, addresses, options)


def drivers_named(
    names: Sequence[str], options: Options, plant: Plant, addresses: AddressPlan
) -> tuple[Driver, ...]:  # fmt: skip
    """Drivers that work side by side; each takes the options that it has."""
    require_options(names, options)
    return tuple(
        driver_named(name, {key: value for key, value in options.items() if key in DRIVERS[name].options}, plant,
                     addresses)
        for name in dict.fromkeys(names)
    )  # fmt: skip


def addresses_for(options: Options, plant: Plant, given: str | None) -> AddressPlan:
    """The addresses that rules speak of: those of the lab, of a table, or made up (`numbered`)."""
    from ropewalk.export.cluster import AddressPlan, read_addresses

    require_addresses(options, given)
    if "lab" in options:
        from ropewalk.lab.lifecycle import network_of
        from ropewalk.serve.rules.lab import lab_addresses, lab_named

        return lab_addresses(plant, network_of(lab_named(options["lab"])))
    return AddressPlan.numbered(plant) if given == "numbered" else read_addresses(str(given), plant)


def require_addresses(options: Options, given: str | None) -> None:
    """Refuse rules without addresses; a lab that is up has its own."""
    if "lab" in options:
        from ropewalk.serve.rules.lab import lab_named

        lab_named(options["lab"])
    elif given is None:
        raise ClusterError("rules need addresses: give --addresses FILE, or --addresses numbered to generate a plan")


def require_options(names: Sequence[str], options: Options) -> None:
    """Refuse options that none of the drivers has, and drivers without those that they need."""
    findings = Findings(ClusterError, f"options of driver {' and '.join(names)}")
    known = {key for name in names for key in DRIVERS.named(name).options}
    for key in options:
        if key not in known:
            findings.add(f"there is no {key!r}: use {', '.join(sorted(known))}")
    for name in names:
        needed = DRIVERS[name].one_of
        if not options.keys() & set(needed):
            told = " or ".join(f"{key}={EXAMPLES[key]}" for key in needed)
            findings.add(f"driver {name} needs the location of its devices: give --driver-option {told}")
    findings.raise_if_any()


def _reach(options: Options) -> Reach:
    from ropewalk.serve.rules.lab import lab_named, lab_reach
    from ropewalk.serve.rules.reach import reach_by

    timeout_s = seconds(options.get("timeout", "5s"))
    if not timeout_s > 0:
        raise ClusterError(f"timeout is {options['timeout']}: give a time above 0s")
    if "lab" in options:
        return lab_reach(lab_named(options["lab"]), timeout_s)
    return reach_by(options["reach"], timeout_s)
