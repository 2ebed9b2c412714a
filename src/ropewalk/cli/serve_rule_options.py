"""Options of `ropewalk serve` about rules: which drivers put them on devices, how often all of them are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.errors import InputError
from ropewalk.files import require_writable

if TYPE_CHECKING:
    from ropewalk.serve.controller import Controller
    from ropewalk.serve.rules.service import RuleService, Say
    from ropewalk.serve.writer import Writer

RULES = "Rules on devices"

DRIVER = typer.Option(
    None, help="Driver that installs the rules of jobs on devices: {drivers}. May be repeated.  [default: none]",
    rich_help_panel=RULES,
)  # fmt: skip
DRIVER_OPTION = typer.Option(
    None, metavar="KEY=VALUE", help="Options of drivers (see `ropewalk list drivers`). May be repeated.",
    rich_help_panel=RULES,
)  # fmt: skip
ADDRESSES = typer.Option(
    None, metavar="FILE", help="Addresses of NICs, leaf subnets and uplinks (CSV); `numbered` generates a plan. A lab "
    "has its own.", rich_help_panel=RULES,
)  # fmt: skip
RECONCILE_EVERY = typer.Option(
    "5s",
    help="Interval at which all devices are reconciled with the wanted rules; devices of a changed job are "
    "reconciled at once.",
    rich_help_panel=RULES,
)


@dataclass(frozen=True)
class RuleOptions:
    """Rules of jobs on devices."""

    driver: list[str]
    driver_option: list[str]
    addresses: str | None
    reconcile_every: str

    def given(self) -> dict[str, str]:
        """Options of drivers by name."""
        found: dict[str, str] = {}
        for text in self.driver_option or ():
            key, equals, value = text.partition("=")
            if not equals or key in found:
                raise InputError(f"--driver-option {text!r} is not KEY=VALUE, or is repeated: write it like lab=NAME")
            found[key] = value
        return found

    def check(self) -> None:
        """Refuse what no driver can do, before anything is opened."""
        from ropewalk.serve.rules.table import require_addresses, require_options

        given = self.given()
        if self.driver:
            require_options(self.driver, given)
            require_addresses(given, self.addresses)
        elif self.driver_option or self.addresses:
            raise InputError("driver options and addresses need a driver: give --driver")
        if not units.seconds(self.reconcile_every) > 0:
            raise InputError(f"--reconcile-every is {self.reconcile_every}: give a time above 0s")


def rules_for(options: RuleOptions, writer: Writer, say: Say) -> RuleService | None:
    """What puts rules of a running writer's jobs on devices; nothing without a driver.

    With one, links of ended jobs stay taken until their rules are gone; without one nobody could say when that is.
    """
    if options.driver:
        writer.read(_check_that_rules_are_written).result()
    service = _service(options, writer, say) if options.driver else None
    keeps = writer.read(lambda controller: controller.state.settings.keep_links).result()
    if keeps != bool(options.driver):
        from ropewalk.serve.operation import ChangePolicy

        writer.submit(ChangePolicy(keep_links=bool(options.driver)), actor="command line").result()
    return service


def _check_that_rules_are_written(controller: Controller) -> None:
    """Refuse drivers for a policy whose rules nobody writes."""
    replace(controller.state.settings, keep_links=True).check(controller.state.plant)


def _service(options: RuleOptions, writer: Writer, say: Say) -> RuleService:
    from ropewalk.serve.rules.reconciler import Reconciler
    from ropewalk.serve.rules.service import RuleService
    from ropewalk.serve.rules.source import ControllerSource
    from ropewalk.serve.rules.table import addresses_for, drivers_named

    plant = writer.read(lambda controller: controller.state.occupancy.plant).result()
    given = options.given()
    if "folder" in given:
        require_writable(Path(given["folder"]) / "document")
    addresses = addresses_for(given, plant, options.addresses)
    drivers = drivers_named(options.driver, given, plant, addresses)
    service = RuleService(
        ControllerSource(writer, plant, addresses), Reconciler(drivers),
        period_s=units.seconds(options.reconcile_every), say=say,
    )  # fmt: skip
    writer.news.call(service.hint)
    return service
