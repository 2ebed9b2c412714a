"""Profiles of a few layers as text files: a head that holds almost all of the weights behind layers that compute."""

from pathlib import Path

LINE = (
    "node{number} -- {name} -- forward_compute_time={forward}, backward_compute_time={backward}, "
    "activation_size={activation}, parameter_size={weights}"
)


def profile_text(layers: int = 6, name: str = "layer", *, head_bytes: float = 4e8) -> str:
    """A chain: layers of 2 + 4 ms with 1 MB of weights that hand on 4 MB, and a last one with `head_bytes`."""
    lines = [
        LINE.format(
            number=number,
            name=f"{name} {number}",
            forward=2.0,
            backward=4.0,
            activation=4e6,
            weights=head_bytes if number == layers else 1e6,
        )
        for number in range(1, layers + 1)
    ]
    edges = [f"\tnode{number} -- node{number + 1}" for number in range(1, layers)]
    return "\n".join([*lines, *edges]) + "\n"


def write_profile(folder: Path, layers: int = 6, name: str = "layer", *, head_bytes: float = 4e8) -> Path:
    """The profile in a file whose name says that 8 samples were measured."""
    path = folder / "tiny-pbs-8.txt"
    path.write_text(profile_text(layers, name, head_bytes=head_bytes))
    return path
