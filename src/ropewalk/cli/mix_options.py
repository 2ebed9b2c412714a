"""The option that says how fast reductions are added up, as every command that runs them has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.collectives.mixer import Mixer

OVERHEADS = "Communication overheads"

MIX = typer.Option(
    None,
    "--mix",
    metavar="RATE",
    help="Rate at which a rank reduces incoming data: 5GB/s, or cpu:5GB/s; gpu or cpu alone takes the measured rate "
    "of --device; free costs nothing. NCCL's bandwidths already include reduction on GPUs.",
    rich_help_panel=OVERHEADS,
)
REDUCE = typer.Option(None, "--reduce", hidden=True)


@dataclass(frozen=True)
class MixOptions:
    """Who adds up, and how fast."""

    mix: str | None
    reduce: str | None

    def mixer(self, device: str | None = None) -> Mixer | None:
        """What was said, where a place alone means the rate of this device or its host; None where nothing was."""
        if self.reduce is not None:
            raise InputError(
                f"--reduce is now called --mix, and applies where data is reduced: write  --mix {self.reduce}"
            )
        if self.mix is None:
            return None
        from ropewalk.collectives.mixer import Mixer, MixPlace, mixer_named

        if self.mix not in (MixPlace.GPU, MixPlace.CPU):
            return mixer_named(self.mix)
        if device is None:
            raise InputError(
                f"--mix {self.mix} needs a rate, as there is no --device here: write --mix {self.mix}:5GB/s"
            )
        from ropewalk.device.pricer import device_of

        found = device_of(device)
        rate = found.adds if self.mix == MixPlace.GPU else found.host_adding
        if rate is None:
            raise InputError(
                f"how fast the CPU beside {found.title} adds is not known: write it as --mix cpu:5GB/s, or give "
                "--device a table that ropewalk profile wrote"
            )
        return Mixer(rate, MixPlace(self.mix))
