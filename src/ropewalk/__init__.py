"""ropewalk: plan, simulate and run the network side of distributed deep-learning training.

`import ropewalk as rw` has what most scripts need; each function imports its part of ropewalk when it is called:

>>> import ropewalk as rw
>>> rw.cluster("dgx-h100:2").gpus
16
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from ropewalk.api import cluster, collective, load, model, plan, simulate

__all__ = ["cluster", "collective", "load", "model", "plan", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"ropewalk has no {name!r}: it has {', '.join(__all__)}")
    from ropewalk import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
