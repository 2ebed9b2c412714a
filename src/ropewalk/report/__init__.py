"""Pages people look at: plans, studies, collectives, fabrics, runs and training steps, each one HTML file, offline.

The same input gives the same bytes. Each page is a function from a finished result to text; nothing is run again. Its
module is imported when somebody asks for it: whoever wants a number in words waits for no solver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ropewalk.report.collective import collective_page
    from ropewalk.report.design import design_page
    from ropewalk.report.fabric import fabric_page
    from ropewalk.report.step import step_page
    from ropewalk.report.sync import sync_page
    from ropewalk.report.trace import trace_page

__all__ = ["collective_page", "design_page", "fabric_page", "step_page", "sync_page", "trace_page"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"ropewalk.report has no {name!r}: it has {', '.join(__all__)}")
    return getattr(import_module(f"ropewalk.report.{name.removesuffix('_page')}"), name)
