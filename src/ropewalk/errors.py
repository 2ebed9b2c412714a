"""Everything that can go wrong, as one tree.

    RopewalkError
    ├── InputError            what the user gave; the command line exits with code 2
    │   ├── UnitError         a quantity that cannot be read ("10 parsecs")
    │   ├── FabricError       a fabric that cannot be built, read or used
    │   ├── RouteError        a pair of hosts without a usable path
    │   ├── ProgramError      a collective that does not exist for these ranks
    │   ├── GraphError        a task graph that cannot be read or run
    │   ├── WorkloadError     a model that cannot be read, built or scaled
    │   ├── DeviceError       a device or a table of costs that is not known or cannot be read
    │   ├── StrategyError     a way to split a model that does not fit the model, the GPUs or their memory
    │   │   └── MemoryShortage    that needs more memory than a GPU has
    │   ├── LabError          a network of namespaces that cannot be made, found or changed
    │   ├── PlanError         a plan file that cannot be read, or whose parts contradict each other
    │   └── ClusterError      a cluster, a job list, a request or a state that cannot be read or used
    ├── ProofError            a collective program that does not do what it promises
    └── PhysicsError          a result that no network could produce

A message says the thing, the fact and the remedy. Checks of user input collect all findings in a `Findings` and
raise once.

>>> findings = Findings(FabricError, "fabric file rack.yaml")
>>> findings.add("node 'h1' is listed twice: remove one of the two")
>>> findings.raise_if_any()
Traceback (most recent call last):
    ...
ropewalk.errors.FabricError: fabric file rack.yaml: node 'h1' is listed twice: remove one of the two
"""

from __future__ import annotations


class RopewalkError(Exception):
    """The root: catch this to catch everything ropewalk raises on purpose."""


class InputError(RopewalkError):
    """The input is wrong; the message names the remedy."""


class UnitError(InputError):
    """A quantity that cannot be read."""


class FabricError(InputError):
    """A fabric that cannot be built, read or used."""


class RouteError(InputError):
    """A pair of hosts without a usable path."""


class ProgramError(InputError):
    """A collective that does not exist for these ranks."""


class GraphError(InputError):
    """A task graph that cannot be read or run."""


class WorkloadError(InputError):
    """A model that cannot be read, built or scaled."""


class DeviceError(InputError):
    """A device or a table of costs that is not known or cannot be read."""


class StrategyError(InputError):
    """A way to split a model that does not fit the model, the GPUs or their memory."""


class MemoryShortage(StrategyError):
    """A way to split a model that needs more memory than a GPU has."""

    def __init__(self, message: str, needed_bytes: float) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes
        """Of the fullest GPU."""


class LabError(InputError):
    """A network of namespaces that cannot be made, found or changed."""


class PlanError(InputError):
    """A plan file that cannot be read, or whose parts contradict each other."""


class ClusterError(InputError):
    """A cluster, a job list, a request or a state that cannot be read or used."""


class ProofError(RopewalkError):
    """A collective program that does not do what it promises."""


class PhysicsError(RopewalkError):
    """A result that no network could produce: a bug or a slip of units, never something to report."""


class Findings:
    """What a check has found so far; raised together, so that one run shows every mistake."""

    def __init__(self, error: type[RopewalkError], subject: str) -> None:
        self.error = error
        self.subject = subject
        self.messages: list[str] = []

    def add(self, message: str) -> None:
        self.messages.append(message)

    def __bool__(self) -> bool:
        return bool(self.messages)

    def raise_if_any(self) -> None:
        if not self.messages:
            return
        if len(self.messages) == 1:
            raise self.error(f"{self.subject}: {self.messages[0]}")
        listed = "\n".join(f"  {number}. {message}" for number, message in enumerate(self.messages, 1))
        raise self.error(f"{self.subject}: {len(self.messages)} findings\n{listed}")
