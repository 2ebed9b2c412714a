"""From the names in a file back to the numbers of a plant."""

from __future__ import annotations

from ropewalk.tenancy.plant import Plant


class Names:
    """Look-ups that raise a KeyError with the name that is not there."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.leaf = {name: leaf for leaf, name in enumerate(plant.leaf_names)}
        self.spine = {name: spine for spine, name in enumerate(plant.spine_names)}
        self.server = {name: server for server, name in enumerate(plant.server_names)}

    def gpu(self, server: str, place: int) -> int:
        """The GPU that is number `place` inside a server."""
        first = self.server[server] * self.plant.gpus_per_server
        if not 0 <= place < self.plant.gpus_per_server:
            raise KeyError(f"GPU {place} of {server}")
        return first + place
