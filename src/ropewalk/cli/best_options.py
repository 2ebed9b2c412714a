"""Options of `ropewalk plan` on a network that exists: what the search may choose from, and what is explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from ropewalk.cli.lists import each, not_empty, split, whole_number
from ropewalk.documents.numbers import is_count

if TYPE_CHECKING:
    from ropewalk.planner.space import Space
    from ropewalk.strategy import Strategy

SPACE = "Search space (lists)  [default: every degree that divides]"

TP = typer.Option(None, metavar="LIST", help="Tensor degrees, such as 1,2,4,8.", rich_help_panel=SPACE)
PP = typer.Option(None, metavar="LIST", help="Pipeline degrees.", rich_help_panel=SPACE)
CP = typer.Option(None, metavar="LIST", help="Context degrees.", rich_help_panel=SPACE)
EP = typer.Option(None, metavar="LIST", help="Expert degrees.", rich_help_panel=SPACE)
CP_EXCHANGE = typer.Option(
    None, metavar="LIST", help="How context ranks exchange keys and values in attention: {context-exchanges}.  "
        "[default: gather; all of "
    "these for samples of 16,384 tokens or more]", rich_help_panel=SPACE,
)  # fmt: skip
FOLD_EXPERTS = typer.Option(
    None, "--fold-experts/--no-fold-experts", rich_help_panel=SPACE,
    help="Spread whole experts over tensor and context ranks as well, or over data ranks only.  [default: both]",
)  # fmt: skip
MICRO_BATCH = typer.Option(None, metavar="LIST", help="Samples per micro-batch.", rich_help_panel=SPACE)
INTERLEAVE = typer.Option(
    None, metavar="LIST", help="Model chunks (virtual stages) per pipeline stage.", rich_help_panel=SPACE
)
ZERO = typer.Option(None, metavar="LIST", help="ZeRO stages: 0,1,2,3.", rich_help_panel=SPACE)
RECOMPUTE = typer.Option(
    None,
    metavar="LIST",
    help="Recomputation: none, selective, full, or blocks (as many as are needed to fit).",
    rich_help_panel=SPACE,
)
SCHEDULES = typer.Option(
    None,
    "--schedules",
    metavar="LIST",
    help="Schedules: {schedules}.  [default: those with one copy of the model that do not depend on its times]",
    rich_help_panel=SPACE,
)
ROUTING = typer.Option("default", help="How the network routes: {routers}.", rich_help_panel=SPACE)
MOST = typer.Option(200, "--most", min=1, help="Maximum number of strategies to simulate.", rich_help_panel=SPACE)
EXPLAIN = typer.Option(
    None, help="Explain why a strategy was not chosen, such as 'tp 4, pp 8'. May be repeated.", rich_help_panel=SPACE
)


@dataclass(frozen=True)
class SpaceOptions:
    """What the search may choose from."""

    tp: str | None
    pp: str | None
    cp: str | None
    ep: str | None
    cp_exchange: str | None
    fold_experts: bool | None
    micro_batch: str | None
    interleave: str | None
    zero: str | None
    recompute: str | None
    schedules: str | None
    routing: str
    most: int
    explain: list[str] | None

    def space(self, gpus_per_server: int, usual_strategy: Strategy) -> Space:
        """The space that these options leave, all of it with what is usual and not searched."""
        from ropewalk.planner.space import Space

        usual = Space()
        numbers = {
            "--tp": self.tp, "--pp": self.pp, "--cp": self.cp, "--ep": self.ep, "--micro-batch": self.micro_batch,
            "--interleave": self.interleave,
        }  # fmt: skip
        tensor, pipeline, context, expert, micro_batch, interleave = (
            () if text is None else not_empty(each(text, whole_number), option) for option, text in numbers.items()
        )
        space = Space(
            server=gpus_per_server, tensor=tensor, pipeline=pipeline, context=context, expert=expert,
            micro_batch=micro_batch, interleave=interleave,
            zero=usual.zero if self.zero is None else tuple(_zero(text) for text in split(self.zero)),
            recompute=usual.recompute if self.recompute is None else split(self.recompute),
            schedules=usual.schedules if self.schedules is None else split(self.schedules),
            exchange=() if self.cp_exchange is None else not_empty(split(self.cp_exchange), "--cp-exchange"),
            fold=usual.fold if self.fold_experts is None else (self.fold_experts,),
            usual=usual_strategy,
        )  # fmt: skip
        space.check()
        return space


def _zero(text: str) -> int:
    return int(text) if is_count(text) else -1
