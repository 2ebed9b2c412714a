"""Bytes that a GPU of every pipeline stage needs, and whether they fit.

Weights, gradients and the optimiser's state follow from the parameters a rank holds (Rajbhandari et al., ZeRO, 2020);
activations from what its operators keep and from how many micro-batches are in flight in the stage's order of passes.
What is left is an assumption, and stated: a fixed workspace and a fraction that the allocator cannot use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ropewalk.arrays import Floats
from ropewalk.device.host import STATE_BYTES
from ropewalk.device.numbers import Numbers
from ropewalk.errors import StrategyError
from ropewalk.strategy.shares import Share, kept_bytes, shares_of, working_bytes
from ropewalk.strategy.stages import Pieces
from ropewalk.strategy.strategy import SERVER, Strategy
from ropewalk.workload.operator import part
from ropewalk.workload.workload import Workload

OPTIMISER_BYTES: dict[str, float] = {
    "none": 0.0,
    "sgd": 0.0,
    "momentum": 4.0,
    "adamw": 8.0,
    "adamw_fused": 8.0,
    "adamw_mixed": 8.0,
    "adamw_cpu": 0.0,
}
"""Bytes of state for each parameter on the GPU, in 32-bit numbers: none, a momentum, or two moments. `none` updates
nothing; that of `adamw_cpu` lies in the host's memory."""

ON_HOST = "adamw_cpu"
"""The optimiser whose state, copies of weights in 32 bits among it, lies in the host's memory."""
WORKSPACE_BYTES = 1e9
"""Assumed for the context of the driver, workspaces of libraries and buffers of collectives on every GPU."""
FRAGMENTATION = 0.05
"""Assumed fraction of all other bytes that lies idle between blocks of the allocator."""


def usable_bytes(capacity_bytes: float) -> float:
    """What of the memory of a GPU is left for weights, gradients, optimiser and activations.

    >>> usable_bytes(80e9) / 1e9
    75.23809523809523
    """
    if capacity_bytes <= WORKSPACE_BYTES:
        raise StrategyError(
            f"a GPU with {capacity_bytes / 1e9:g} GB has no room besides its workspace of {WORKSPACE_BYTES / 1e9:g} "
            "GB: "
            "give more memory"
        )
    return (capacity_bytes - WORKSPACE_BYTES) / (1 + FRAGMENTATION)


@dataclass(frozen=True, eq=False)
class Memory:
    """Bytes on one GPU of each stage at the fullest moment of a step; where ranks are servers, of each server."""

    weights: Floats
    gradients: Floats
    optimiser: Floats
    activations: Floats
    workspace: Floats
    fragmentation: Floats

    def parts(self) -> dict[str, Floats]:
        names = ("weights", "gradients", "optimiser", "activations", "workspace", "fragmentation")
        return {name: getattr(self, name) for name in names}

    @property
    def total(self) -> Floats:
        return np.asarray(np.sum(list(self.parts().values()), axis=0), np.float64)

    @property
    def most(self) -> float:
        return float(self.total.max())

    @property
    def fullest(self) -> Memory:
        """That of the fullest GPU alone."""
        at = int(self.total.argmax())
        return Memory(*(part[at : at + 1] for part in self.parts().values()))


def memory(strategy: Strategy, shares: tuple[Share, ...], pieces: Pieces, numbers: Numbers) -> Memory:
    """What a GPU of every stage needs for these shares of a workload; where ranks are servers, of every server."""
    if strategy.grain == SERVER and strategy.parts:
        return _on_servers(strategy, shares, numbers)
    columns = [
        _states(view, [shares[at] for at in pieces.layers_of_stage(stage)], numbers)
        for stage, view in enumerate(strategy.on_stages())
    ]
    weights, gradients, optimiser = np.array(columns).T
    activations = _activations(strategy, shares, pieces, numbers)
    return _with_room_lost(weights, gradients, optimiser, activations)


def memory_on_one_gpu(workload: Workload, optimiser: str, numbers: Numbers) -> Memory:
    """What a GPU needs that runs a step of the whole workload alone, as one micro-batch."""
    strategy = Strategy(optimiser="adamw" if optimiser == "adamw_loop" else optimiser)
    whole = Pieces((0,), len(workload.layers), (0,))
    return memory(strategy, shares_of(workload, strategy), whole, numbers)


def memory_of_layer(strategy: Strategy, share: Share, numbers: Numbers) -> Memory:
    """What a GPU needs for one layer alone, under the degrees that its ranks see."""
    return memory(strategy, (share,), ALONE, numbers)


ALONE = Pieces((0,), 1, (0,))
"""The pieces of a model of one layer."""


def _on_servers(strategy: Strategy, shares: tuple[Share, ...], numbers: Numbers) -> Memory:
    """A server holds what it holds of each of its layers: all micro-batches of all of them are kept at once."""
    held = np.zeros((4, strategy.ranks))
    for one, share in zip(strategy.parts, shares, strict=True):
        alone = memory_of_layer(strategy.on_part(one, share.server.gpus), share, numbers)
        parts = alone.weights, alone.gradients, alone.optimiser, alone.activations
        held[:, list(one.workers)] += np.array(parts)
    return _with_room_lost(*held)


def _with_room_lost(weights: Floats, gradients: Floats, optimiser: Floats, activations: Floats) -> Memory:
    """With the workspace and what the allocator cannot use."""
    fragmentation = FRAGMENTATION * (weights + gradients + optimiser + activations)
    workspace = np.full(len(weights), WORKSPACE_BYTES)
    return Memory(weights, gradients, optimiser, activations, workspace, fragmentation)


def _states(strategy: Strategy, shares: list[Share], numbers: Numbers) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimiser state of a stage with these layers."""
    element_bytes = numbers.element_bytes
    per_gradient = gradient_bytes(strategy, element_bytes)
    per_state = state_bytes(strategy.optimiser, element_bytes, master_weights=strategy.master_weights)
    whole, trained = held_parameters(shares), sum(share.all_parameters for share in shares) + tied_copy(shares)
    # A sparse table has gradients for the rows of one step alone, and is updated in place without a copy in 32 bits.
    sparse = sum(share.sparse for share in shares)
    mine, _ = updated(strategy, shares)
    largest = sorted((share.held_parameters for share in shares), reverse=True)
    weights, copied = whole, sum(share.narrow for share in shares)
    if strategy.zero >= 3 and strategy.regather:
        # The layer that runs and the next one, of each of two passes side by side.
        at_once = (1 + strategy.prefetch) * (1 + bool(strategy.timetable.paired.any()))
        kept = mine + _frozen_part(strategy, shares)
        weights = kept + min(sum(largest[:at_once]), whole - kept)
        copied = sum(sorted((share.narrow for share in shares), reverse=True)[:at_once])
    most = max(share.all_parameters for share in shares)
    gradients = mine + min(most, trained - mine) if strategy.zero >= 2 else trained - sparse
    state = mine * per_state + sparse * state_bytes(strategy.optimiser, element_bytes, master_weights=False)
    wide = weights - copied if strategy.narrow_weights and numbers.narrow_bytes is not None else weights
    return wide * element_bytes + copied * numbers.copy_bytes, gradients * per_gradient, state


def host_bytes(strategy: Strategy, shares: tuple[Share, ...], pieces: Pieces) -> float:
    """Bytes in the host's memory for the fullest GPU: the state of an optimiser that lies there."""
    if strategy.optimiser != ON_HOST:
        return 0.0
    views = enumerate(strategy.on_stages())
    held = [updated(view, [shares[at] for at in pieces.layers_of_stage(stage)])[0] for stage, view in views]
    return max(held) * STATE_BYTES


def state_bytes(optimiser: str, element_bytes: float, *, master_weights: bool = True) -> float:
    """Bytes of the optimiser's state for each parameter, with the copy in 32 bits of weights that have less.

    >>> state_bytes("adamw", 2.0), state_bytes("sgd", 4.0)
    (12.0, 0.0)
    """
    has_master = master_weights and optimiser not in ("none", ON_HOST) and element_bytes < 4
    return OPTIMISER_BYTES[optimiser] + (4.0 if has_master else 0.0)


def updated(strategy: Strategy, shares: list[Share]) -> tuple[int, int]:
    """Parameters that a rank with these layers updates, and the tensors that hold them.

    Under ZeRO that is its part of what is shared out, otherwise all it holds; sparse tables have been updated already.
    """
    tensors = sum(share.tensors for share in shares)
    if not strategy.zero:
        return sum(share.all_parameters - share.sparse for share in shares) + tied_copy(shares), tensors
    copies = strategy.expert_replicas
    parts = sum(
        part(share.parameters - share.sparse, strategy.replicas)
        + part(share.expert_parameters, copies)
        + share.table_parameters
        for share in shares
    )
    return parts + part(tied_copy(shares), strategy.replicas), tensors


def held_parameters(shares: list[Share]) -> int:
    """Parameters of a stage with these layers, trained or not, with copies of embeddings on other stages."""
    held = sum(share.held_parameters for share in shares)
    return held + tied_copy(shares) + tied_copy(shares, frozen=True)


def _frozen_part(strategy: Strategy, shares: list[Share]) -> int:
    """Parameters that are never updated, of those that a rank keeps where weights are shared out."""
    copies = strategy.expert_replicas
    parts = sum(part(share.frozen, strategy.replicas) + part(share.frozen_experts, copies) for share in shares)
    return parts + part(tied_copy(shares, frozen=True), strategy.replicas)


def gradient_bytes(strategy: Strategy, element_bytes: float) -> float:
    """Bytes of one gradient, as it is kept and as it is sent."""
    return element_bytes if strategy.gradient_bytes is None else strategy.gradient_bytes


def tied_copy(shares: list[Share], *, frozen: bool = False) -> int:
    """Parameters of a tied embedding that a stage holds a copy of because the embedding itself is on another one."""
    own = {size for share in shares for size in share.embeddings}
    ties = [share.frozen_tied if frozen else share.tied for share in shares]
    return sum(tied for tied in ties if tied and tied not in own)


def _activations(strategy: Strategy, shares: tuple[Share, ...], pieces: Pieces, numbers: Numbers) -> Floats:
    """By stage, the most that is kept at once for backward passes, and what a layer needs to be computed again.

    What was computed again stays until gradients of weights that are put off.
    """
    of_layer = np.array([kept_bytes(share, numbers) for share in shares])
    again = np.array([working_bytes(share, numbers) for share in shares])
    every = range(len(pieces.homes))
    firsts = [pieces.of(piece).start for piece in every]
    kept, whole = np.add.reduceat(of_layer, firsts), np.add.reduceat(of_layer + again, firsts)
    back = np.maximum.reduceat(again, firsts)
    if strategy.recompute == "stage":
        kept = np.array([_entering(shares, pieces, piece, numbers.element_bytes) for piece in every])
        back, whole = whole, whole + kept
    return strategy.timetable.peak_kept(kept, whole, back)


def _entering(shares: tuple[Share, ...], pieces: Pieces, piece: int, element_bytes: float) -> float:
    """Bytes of a micro-batch that a rank reads of layers before this piece, each once."""
    layers, own = pieces.of(piece), pieces.of(piece % pieces.count)
    read = {
        source: elements / (shares[at].split.context * (shares[at].split.tensor if shares[at].split.sequence else 1))
        for at in layers
        for source, elements in zip(shares[at].layer.inputs, shares[at].read, strict=True)
        if source not in own
    }
    return sum(read.values()) * element_bytes
