"""PyTorch modules as workloads: arithmetic as PyTorch counts it, parameters as it holds them, layers as written."""

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk.errors import WorkloadError
from ropewalk.workload.attention import FusedAttention
from ropewalk.workload.dense import Linear
from ropewalk.workload.imports import cross_entropy, from_module, mean_square, module_from_path
from ropewalk.workload.kernel import Kernel
from ropewalk.workload.lstm import Lstm
from ropewalk.workload.source import open_workload
from ropewalk.workload.workload import Workload

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "ropewalk[torch]"')
pytestmark = pytest.mark.extras
nn, fn = torch.nn, torch.nn.functional

COUNTED = ("matmul", "convolution", "attention")


class Block(nn.Module):  # type: ignore[misc]
    """A block of a language model, with attention in one kernel."""

    def __init__(self, width: int = 32, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x: Any) -> Any:
        heads = [part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.mixed(self.norms[0](x)).chunk(3, -1)]
        met = fn.scaled_dot_product_attention(*heads, is_causal=self.causal)
        x = x + self.out(met.transpose(1, 2).flatten(-2))
        return x + self.mlp(self.norms[1](x))


class Language(nn.Module):  # type: ignore[misc]
    """A small language model whose first table is its last weight too."""

    def __init__(self, blocks: int = 3, causal: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.places = nn.Parameter(torch.zeros(1, 64, 32))
        self.blocks = nn.ModuleList([Block(causal=causal) for _ in range(blocks)])
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 100, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: Any) -> Any:
        x = self.words(tokens) + self.places[:, : tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Bottleneck(nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        return fn.relu(self.norm(self.conv(x)) + x, inplace=True)


def image_net() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        nn.Sequential(Bottleneck(16), Bottleneck(16)), nn.Conv2d(16, 24, 3, dilation=2, padding=2),
        nn.ConvTranspose2d(24, 8, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10),
    )  # fmt: skip


class Written(nn.Module):  # type: ignore[misc]
    """Attention whose scores are written down, by products and by letters."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Parameter(torch.zeros(16, 4, 8))

    def forward(self, x: Any) -> Any:
        q = torch.einsum("bsd,dhk->bhsk", self.first(x), self.second)
        return torch.softmax(q @ q.transpose(-1, -2), -1) @ q


class Pair(nn.Module):  # type: ignore[misc]
    """Two inputs that meet a constant and each other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.weight = nn.Linear(6, 4), nn.Parameter(torch.zeros(4, 6))
        self.register_buffer("fixed", torch.zeros(6, 6))

    def forward(self, left: Any, right: Any) -> Any:
        met = torch.addmm(self.layer.bias, left @ self.fixed, self.weight.t())
        return met - self.layer(right) @ self.weight @ self.fixed @ self.fixed[:, :4]


def tokens(batch: int = 2) -> Any:
    return torch.zeros(batch, 16, dtype=torch.long)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]] = {
    "language": (Language, tokens, cross_entropy),
    "image": (image_net, lambda: torch.zeros(4, 3, 64, 64), cross_entropy),
    "sound": (lambda: nn.Conv1d(4, 8, 5, stride=2), lambda: torch.zeros(2, 4, 64), mean_square),
    "video": (lambda: nn.Conv3d(3, 8, 3, padding=1), lambda: torch.zeros(2, 3, 6, 8, 8), mean_square),
    "written": (Written, lambda: torch.zeros(2, 5, 16), mean_square),
    "pair": (Pair, lambda: (torch.zeros(8, 6), torch.zeros(8, 6)), mean_square),
}  # fmt: skip


def counted_by_pytorch(module: Any, inputs: Any, loss: Callable[[Any], Any]) -> tuple[int, int]:
    """Flops of both passes as FlopCounterMode sees them, told about the attention kernel of CPUs."""
    from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

    aten = torch.ops.aten
    known = {
        aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
        aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda g, q, k, v, *_, **__: (
            sdpa_backward_flop_count(g, q, k, v)
        ),
    }
    with FlopCounterMode(display=False, custom_mapping=known) as forward:
        scalar = loss(module(*inputs) if isinstance(inputs, tuple) else module(inputs))
    with FlopCounterMode(display=False, custom_mapping=known) as backward:
        scalar.backward()
    return forward.get_total_flops(), backward.get_total_flops()


def counted_here(workload: Workload) -> tuple[float, float]:
    operators = [op for layer in workload.layers for op in layer.operators]

    def flops(kernels: list[Kernel]) -> float:
        return sum(kernel.flops for kernel in kernels if kernel.kind in COUNTED)

    return flops([k for op in operators for k in op.forward()]), flops([k for op in operators for k in op.backward()])


@pytest.mark.parametrize("name", MODELS)
def test_products_convolutions_and_attention_have_the_flops_that_pytorch_counts(name: str) -> None:
    make, inputs, loss = MODELS[name]
    module = make()
    assert counted_here(from_module(module, inputs(), loss=loss)) == counted_by_pytorch(module, inputs(), loss)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_of_the_module_tied_ones_once(name: str) -> None:
    make, inputs, loss = MODELS[name]
    with torch.device("meta"):
        module = make()
        workload = from_module(module, inputs(), loss=loss)
    assert workload.parameters() == sum(parameter.numel() for parameter in module.parameters())
    assert workload.parameter_tensors() == len([*module.parameters()])


def test_the_gradient_of_a_grouped_convolution_is_twice_its_forward_pass() -> None:
    """PyTorch's counter has the weight gradient once for each group, so it cannot be the judge here."""
    module = nn.Sequential(nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8))
    forward, backward = counted_here(from_module(module, torch.zeros(2, 8, 16, 16)))
    first, grouped = 2 * 512 * 8 * 8, 2 * 512 * 8 * 9
    assert (forward, backward) == (first + grouped, first + 2 * grouped)


def held_by_autograd(module: Any, inputs: Any, loss: Callable[[Any], Any]) -> int:
    """Bytes of the distinct tensors that autograd keeps for the backward pass, parameters left out."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    held, alive = {}, []

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            held[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # memory that is given back could be counted under the same address again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss(module(*inputs) if isinstance(inputs, tuple) else module(inputs))
    return sum(held.values())


@pytest.mark.parametrize(
    ("name", "tolerance"), [("language", 0.06), ("image", 0.01), ("sound", 0.0), ("video", 0.0), ("pair", 0.0)]
)
def test_what_is_kept_for_the_backward_pass_is_what_autograd_holds(name: str, tolerance: float) -> None:
    make, inputs, loss = MODELS[name]
    module = make()
    workload = from_module(module, inputs(), loss=loss)
    kept = sum(layer.saved_bytes(4) for layer in workload.layers)
    assert kept == pytest.approx(held_by_autograd(module, inputs(), loss), rel=tolerance)


def test_causal_attention_does_half_the_work_of_full_attention() -> None:
    causal, full = (from_module(Language(causal=causal), tokens()) for causal in (True, False))
    attentions = [
        [op for layer in w.layers for op in layer.operators if isinstance(op, FusedAttention)] for w in (causal, full)
    ]
    assert [op.causal for op in attentions[0]] == [True] * 3
    assert sum(k.flops for op in attentions[0] for k in op.forward()) * 2 == sum(
        k.flops for op in attentions[1] for k in op.forward()
    )


def test_a_mask_is_taken_as_causal_only_when_told_so() -> None:
    class Masked(nn.Linear):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            x = super().forward(x)
            return fn.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(8, 8, device=x.device).tril() > 0)

    found = []
    for told in (False, True):
        workload = from_module(Masked(16, 16), torch.zeros(2, 4, 8, 16), causal_masks=told)
        bare = [getattr(op, "operator", op) for layer in workload.layers for op in layer.operators]
        found += [op.causal for op in bare if isinstance(op, FusedAttention)]
    assert found == [False, True]


def test_layers_are_the_elements_of_the_list_of_blocks_and_what_stands_beside() -> None:
    workload = from_module(Language(), tokens(), loss=cross_entropy)
    assert [(layer.name, layer.kind) for layer in workload.layers] == [
        ("words", "embedding"), ("blocks.0", "block"), ("blocks.1", "block"), ("blocks.2", "block"), ("norm", "layer"),
        ("head", "layer"),
    ]  # fmt: skip
    assert workload.is_chain
    assert [layer.output_elements for layer in workload.layers] == [1024] * 5 + [1]
    assert workload.layers[1].operators == workload.layers[2].operators
    assert workload.layers[-1].operators[0] == Linear(32, 32, 100, bias=False, tied=True)


def test_a_list_of_lists_is_taken_apart_and_parts_without_parameters_stay_with_those_before() -> None:
    workload = from_module(image_net(), torch.zeros(4, 3, 64, 64))
    assert [layer.name for layer in workload.layers] == ["0", "1", "4.0", "4.1", "5", "6", "9"]


def test_a_module_that_wraps_another_is_looked_through() -> None:
    class Wrapped(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = Language()

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    assert from_module(Wrapped(), tokens()).layers[1].name == "inner.blocks.0"


def test_a_module_that_runs_twice_is_two_layers_with_one_set_of_weights() -> None:
    class Twice(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.step, self.end = nn.Linear(8, 8), nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            return self.end(self.step(self.step(x)))

    workload = from_module(Twice(), torch.zeros(4, 8))
    assert [(layer.name, layer.parameters()) for layer in workload.layers] == [("step", 72), ("step#2", 0), ("end", 18)]


def test_branches_are_edges() -> None:
    class Forked(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.left, self.right, self.head = (nn.Linear(8, 8) for _ in range(4))

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            left, right = self.left(x), self.right(x)
            return self.head(torch.cat((left, right, x), 0))

    workload = from_module(Forked(), torch.zeros(4, 8))
    assert [(layer.name, layer.inputs) for layer in workload.layers] == [
        ("stem", ()), ("left", (0,)), ("right", (0, 1)), ("head", (2,)),
    ]  # fmt: skip
    assert [layer.output_elements for layer in workload.layers] == [32, 32, 96, 96]


def test_another_batch_is_traced_anew() -> None:
    small = from_module(Language(), tokens(2), loss=cross_entropy)
    assert (small.batch, small.sequence) == (2, 16)
    assert small.at_batch(6) == from_module(Language(), tokens(6), loss=cross_entropy)


def test_a_batch_in_the_second_dimension() -> None:
    workload = from_module(nn.LSTM(8, 16), torch.zeros(5, 3, 8), batch_dim=1)
    assert workload.batch == 3
    assert Lstm(5, 12, 8, 16) in workload.at_batch(12).layers[0].operators


def test_keyword_arguments_and_both_kinds_of_arguments() -> None:
    module, x = Pair(), torch.zeros(8, 6)
    ways = [(x, x), {"left": x, "right": x}, ((x,), {"right": x})]
    made = [from_module(module, way) for way in ways]
    assert made[0] == made[1] == made[2]


def test_what_pytorch_can_take_apart_needs_no_entry_of_its_own() -> None:
    workload = from_module(nn.GRU(8, 16), torch.zeros(5, 3, 8), batch_dim=1)
    flops = 2 * 5 * 3 * 3 * 16 * (8 + 16)
    assert counted_here(workload)[0] == flops
    assert workload.parameters() == sum(p.numel() for p in nn.GRU(8, 16).parameters())


def test_the_module_is_left_in_the_mode_it_was_in() -> None:
    module = Language().eval()
    from_module(module, tokens())
    assert not any(part.training for part in module.modules())


def test_an_operation_that_is_not_known_is_named_with_its_module() -> None:
    class Solver(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.linalg.eigvalsh(x)

    with pytest.raises(WorkloadError) as caught:
        from_module(nn.Sequential(nn.Linear(4, 4), Solver()), torch.zeros(2, 4, 4), name="net")
    message = str(caught.value)
    assert message.startswith("module net: operation aten._linalg_eigh.default in module '1' of class Solver")
    assert "test_own_modules.py, line" in message
    assert "is not known and not element-wise" in message


@pytest.mark.parametrize(
    "bad",
    [lambda x: x[x > 0].sum(), lambda x: x * x.sum().item() if x.sum() > 0 else x, lambda x: torch.nonzero(x).float()],
)
def test_shapes_and_branches_that_depend_on_data_are_refused_with_a_remedy(bad: Callable[[Any], Any]) -> None:
    class Dynamic(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return bad(x)

    for device in ("cpu", "meta"):
        with pytest.raises(WorkloadError, match=r"depend.* on data.*: write the forward pass so that shapes"):
            from_module(Dynamic(), torch.zeros(2, 4, device=device))


def test_inputs_that_do_not_fit_say_so() -> None:
    with pytest.raises(WorkloadError, match="module Linear cannot be traced"):
        from_module(nn.Linear(4, 4), torch.zeros(2, 5))
    with pytest.raises(WorkloadError, match="example inputs are a int: give a tensor"):
        from_module(nn.Linear(4, 4), 3)
    with pytest.raises(WorkloadError, match="no example input has a dimension 3"):
        from_module(nn.Linear(4, 4), torch.zeros(2, 4), batch_dim=3)
    with pytest.raises(WorkloadError, match=r"is a function, not a torch.nn.Module"):
        from_module(lambda x: x, torch.zeros(2, 4))


def test_frozen_parameters_are_refused() -> None:
    module = nn.Linear(4, 4)
    module.weight.requires_grad_(False)
    with pytest.raises(WorkloadError, match=r"1 parameters are frozen \(weight\).*requires_grad_\(True\)"):
        from_module(module, torch.zeros(2, 4))


# Modules in files, as the command line names them.

FACTORY = """
import torch
from torch import nn

def net(batch=32):
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), torch.zeros(batch, 784)

def fixed():
    return nn.Linear(8, 8), torch.zeros(4, 8)

def wrong():
    return nn.Linear(8, 8)

def greedy(batch, depth):
    return nn.Linear(8, 8), torch.zeros(batch, 8)

def numbers():
    return nn.Linear(int(torch.ones(()).item()), 8), torch.zeros(4, 8)

def on_cpu():
    with torch.device("cpu"):
        width = int(torch.full((), 8).item())
    return nn.Linear(width, 8), torch.zeros(4, width)

number = 3
"""

CLASS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)
        assert self.head.weight.is_meta

    def forward(self, tokens):
        return self.head(self.table(tokens))

def example_inputs(batch=8, sequence=128):
    return torch.zeros(batch, sequence, dtype=torch.long)

def loss(logits):
    return nn.functional.cross_entropy(logits.flatten(0, 1), torch.zeros(logits.shape[0] * logits.shape[1]).long())
"""


@pytest.fixture
def factory(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(FACTORY)
    return str(tmp_path / "net.py")


@pytest.fixture
def language(tmp_path: Path) -> str:
    (tmp_path / "lang.py").write_text(CLASS)
    return str(tmp_path / "lang.py")


def test_a_factory_is_told_the_batch_and_nothing_takes_memory(factory: str) -> None:
    assert module_from_path(f"{factory}:net").batch == 32
    assert open_workload(f"{factory}:net", batch=64).layers[0].operators[0] == Linear(64, 784, 512, first=True)
    assert module_from_path(f"{factory}:fixed", batch=16).batch == 16
    assert module_from_path(f"{factory}:on_cpu").parameters() == 72


def test_a_class_finds_its_inputs_and_its_loss_in_the_file(language: str) -> None:
    workload = module_from_path(f"{language}:Net", batch=2, sequence=64)
    assert (workload.name, workload.batch, workload.sequence) == ("Net", 2, 64)
    assert workload.layers[-1].output_elements == 1
    assert module_from_path(f"{language}:Net").sequence == 128


def test_the_example_in_the_docstring_runs(tmp_path: Path) -> None:
    lines = (module_from_path.__doc__ or "").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.strip() == "# net.py")
    end = next(at for at, line in enumerate(lines) if at > begin and line.startswith("    so that"))
    (tmp_path / "net.py").write_text(textwrap.dedent("\n".join(lines[begin:end])))
    assert module_from_path(f"{tmp_path / 'net.py'}:net", batch=64).batch == 64


@pytest.mark.parametrize(
    ("name", "sizes", "reason"),
    [
        ("nothing", {}, "has no 'nothing': name one of fixed, greedy, net, numbers, on_cpu, wrong"),
        ("wrong", {}, "returns a Linear: return a pair"),
        ("greedy", {"batch": 4}, "needs an argument 'depth': give it a default"),
        ("greedy", {}, "needs an argument 'batch': give --batch, or a default"),
        ("net", {"sequence": 5}, "does not take one"),
        ("number", {}, "is a int: name a function"),
        ("numbers", {}, "around the part that needs numbers"),
    ],
)
def test_what_a_file_lacks_is_said(factory: str, name: str, sizes: dict[str, int], reason: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        module_from_path(f"{factory}:{name}", **sizes)
    assert reason in str(caught.value)


def test_files_that_fail_or_are_absent(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"nowhere.py does not exist: check the path"):
        module_from_path(f"{tmp_path}/nowhere.py:Net")
    with pytest.raises(WorkloadError, match=r"write it like net.py:Net"):
        module_from_path("net.py:3")
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(WorkloadError, match="failed with ZeroDivisionError"):
        module_from_path(f"{tmp_path}/broken.py:Net")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    with pytest.raises(WorkloadError, match="failed with SystemExit"):
        module_from_path(f"{tmp_path}/leaves.py:Net")
    (tmp_path / "bare.py").write_text("from torch import nn\nclass Net(nn.Linear): pass\n")
    with pytest.raises(WorkloadError, match="has no function example_inputs: add def example_inputs"):
        module_from_path(f"{tmp_path}/bare.py:Net")


def test_the_examples_in_the_documentation_run(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(code)
    assert open_workload(f"{tmp_path / 'net.py'}:net", batch=64).parameters() == 407_050
    assert open_workload(f"{tmp_path / 'lang.py'}:Net", batch=2, sequence=64).sequence == 64
