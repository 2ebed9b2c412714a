"""`ropewalk profile` on the CPU at hand: a few kernels, a table, a model priced by it."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from typer.testing import CliRunner  # noqa: E402

from ropewalk.cli import app  # noqa: E402
from ropewalk.device import profile as profiling  # noqa: E402
from ropewalk.device.measure import grid as grids  # noqa: E402
from ropewalk.device.measure import host, network, run  # noqa: E402
from ropewalk.device.measure.build import runnable  # noqa: E402
from ropewalk.device.pricer import pricer  # noqa: E402
from ropewalk.workload.kernel import rebuilt  # noqa: E402

pytestmark = pytest.mark.extras


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of the smallest kernel of every kind and form, and calls measured once or twice."""
    smallest = {}
    for kernel in grids.grid(small=True):
        key = (kernel.kind, kernel.form, kernel.dims[1:2] if kernel.kind == "pointwise" else ())
        if key not in smallest or kernel.moved_bytes(4) < smallest[key].moved_bytes(4):
            smallest[key] = kernel
    monkeypatch.setattr(run, "grid", lambda small: list(smallest.values()))
    for module in (host, network):
        monkeypatch.setattr(module, "REPEATS", 1)
        monkeypatch.setattr(module, "WARM_UP", 1)
    monkeypatch.setattr(host, "CALLS", 2)
    monkeypatch.setattr(network, "BLOCKS", 1)


def test_a_profile_prices_a_model_and_says_so(short: None, tmp_path: Path) -> None:
    table = tmp_path / "here.csv.gz"
    found = profiling.profile(table, ["tf32"])
    assert found.measurements > 50
    assert not found.failed
    prices = pricer(str(table), "tf32")
    assert prices.source.startswith("measured on ")
    assert 1e8 < prices.device.adds < 1e13
    assert prices.device.host_adding is not None
    result = CliRunner().invoke(app, ["cost", "resnet18", "--device", str(table), "--dtype", "tf32", "--batch", "2"])
    assert result.exit_code == 0, result.output
    assert "measured on" in result.output


def test_kernels_do_what_their_names_say() -> None:
    product = runnable(rebuilt("matmul", "weight_grad", (1, 8, 16, 32)), "cpu", torch.float32)()
    assert product.shape == (8, 16)
    image = runnable(rebuilt("convolution", "forward", (2, 3, 8, 8, 4, 3, 3, 1, 1, 1, 1, 1)), "cpu", torch.float32)()
    assert image.shape == (2, 4, 8, 8)
