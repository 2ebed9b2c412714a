"""A plan as the command line of Megatron-LM: model, degrees, sharding, recomputation, overlap, precision.

Only what Megatron-LM can run is written; what it cannot run is refused with what would have to change (see
`strategy.frameworks`). Arguments are those of Megatron-LM with Megatron Core 0.16 (`megatron/training/arguments.py`).
Ranks in another order than Megatron-LM's two are placed by the rank file, in the folder of `--to run`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.export.job import PlannedJob
from ropewalk.plans import Plan
from ropewalk.strategy.asked import is_transformer, recomputed_heads
from ropewalk.strategy.placement import DEFAULT_ORDER
from ropewalk.strategy.recompute import modules_of
from ropewalk.workload.adapted import bare
from ropewalk.workload.dispatch import NCCL
from ropewalk.workload.loss import CrossEntropy
from ropewalk.workload.zoo import TransformerFamily
from ropewalk.workload.zoo.latent import Latent
from ropewalk.workload.zoo.mixture import Mixture
from ropewalk.workload.zoo.shape import Transformer
from ropewalk.workload.zoo.stacks import stack_of

ORDERS: dict[str, tuple[str, ...]] = {DEFAULT_ORDER: (), "tp-cp-ep-pp-dp": ("--use-tp-pp-dp-mapping",)}
PRECISIONS = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp32": (),
    "tf32": (),
    "fp8": ("--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "fp8-delayed": ("--bf16", "--fp8-format hybrid", "--fp8-recipe delayed"),
    "fp8-block": ("--bf16", "--fp8-format e4m3", "--fp8-recipe blockwise"),
    "mxfp8": ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"),
}
OPTIMISERS = {
    "adamw": "adam", "adamw_fused": "adam", "adamw_mixed": "adam", "adamw_cpu": "adam", "sgd": "sgd", "momentum": "sgd",
}  # fmt: skip
ON_HOST = (
    "--optimizer-cpu-offload", "--use-precision-aware-optimizer", "--overlap-cpu-optimizer-d2h-h2d",
    "--optimizer-offload-fraction 1.0",
)  # fmt: skip
"""State of the optimiser in the host's memory, updated there while gradients and weights travel."""
RECOMPUTES = {
    "none": (),
    "selective": ("--recompute-activations",),
    "full": ("--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"),
}
BLOCKS = ("--recompute-granularity full", "--recompute-method block")
"""So many blocks at the head of every piece."""
FSDP = ("--use-distributed-optimizer", "--use-megatron-fsdp", "--no-gradient-accumulation-fusion",
        "--ckpt-format fsdp_dtensor")  # fmt: skip
CP_TYPES = {"gather": "all_gather", "ring": "p2p", "ulysses": "a2a"}
SHARDINGS = {
    0: (),
    1: ("--use-distributed-optimizer",),
    2: (*FSDP, "--data-parallel-sharding-strategy optim_grads"),
    3: (*FSDP, "--data-parallel-sharding-strategy optim_grads_params"),
}
LLAMA = ("--swiglu", "--normalization RMSNorm", "--position-embedding-type rope")
ROTARY_BASES = {"llama3": 500_000, "llama-3": 500_000, "mixtral": 1_000_000, "qwen": 1_000_000, "gpt-oss": 150_000}
"""What the position of a token is multiplied by, where it is not 10,000; by the beginning of a model's name."""
WRITTEN = ("gpt", "megatron", "llama", "mixture")
"""Families whose sizes pretrain_gpt.py takes."""


def is_written(family: TransformerFamily | None) -> bool:
    """Does pretrain_gpt.py build such models? It knows no norms behind sub-layers, no bent logits, no adapters."""
    if family is None or family.name not in WRITTEN:
        return False
    return not (family.shape.norms_behind or family.shape.softcap or family.lora)


def megatron_arguments(plan: Plan, *, by_rank_file: bool = False) -> str:
    """The arguments, one per line; with a rank file, ranks are in Megatron-LM's usual order.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> print(megatron_arguments(Plan(ModelUse("gpt2"), read_cluster("2x8"), Strategy(data=2, tensor=8))).split()[2:4])
    ['--num-layers', '12']
    """
    job = PlannedJob(plan)
    order = () if by_rank_file else own_order(job) or ()
    return "\n".join((*_model(job), *_degrees(job), *order, *_pipeline(job), *_memory(job), *_gradients(job))) + "\n"


def own_order(job: PlannedJob) -> tuple[str, ...] | None:
    """The arguments that lay ranks out as planned; None where Megatron-LM has no such order."""
    return next((arguments for order, arguments in ORDERS.items() if job.laid_out_as(order)), None)


def _model(job: PlannedJob) -> Iterator[str]:
    """The sizes of a model that pretrain_gpt.py builds; of another transformer only its sequence."""
    yield f"--seq-length {job.sequence}"
    family = job.family
    if family is None or not is_written(family):
        return
    shape = family.shape
    yield f"--num-layers {shape.layers}"
    yield f"--hidden-size {shape.hidden}"
    yield f"--ffn-hidden-size {shape.neurons}"
    yield f"--num-attention-heads {shape.heads}"
    if shape.shared_heads != shape.heads:
        yield "--group-query-attention"
        yield f"--num-query-groups {shape.shared_heads}"
    if shape.size:
        yield f"--kv-channels {shape.size}"
    yield from _style(job, family)
    yield f"--vocab-size {shape.vocabulary}"
    if _fuses_loss(job):
        yield "--cross-entropy-loss-fusion"
        yield "--cross-entropy-fusion-impl te"
    if not shape.tied:
        yield "--untie-embeddings-and-output-weights"
    if family.experts is not None:
        yield from _experts(family.experts, shape.layers)


def _fuses_loss(job: PlannedJob) -> bool:
    """Was the loss priced as one kernel over logits as they are?"""
    last = (bare(operator) for operator in job.workload.layers[-1].operators)
    losses = [one for one in last if isinstance(one, CrossEntropy)]
    own = stack_of(job.workload).own_code
    return own and any(not (one.widened or one.stepwise) for one in losses)


def _style(job: PlannedJob, family: TransformerFamily) -> Iterator[str]:
    """What kind of block it is."""
    if family.name in ("gpt", "megatron"):
        yield "--position-embedding-type learned_absolute"
        yield f"--max-position-embeddings {max(family.shape.places, job.sequence)}"
        return
    yield from LLAMA
    yield from _traits(family.shape)
    yield f"--max-position-embeddings {job.sequence}"
    base = next((base for start, base in ROTARY_BASES.items() if job.zoo_name.startswith(start)), 10_000)
    yield f"--rotary-base {base}"
    yield "--attention-dropout 0"
    yield "--hidden-dropout 0"


def _traits(shape: Transformer) -> Iterator[str]:
    """What is not the same in all blocks that are otherwise Llama's."""
    if not shape.out_bias:
        yield "--disable-bias-linear"
    if shape.qkv_bias:
        yield "--add-qkv-bias"
    if shape.qk_norm:
        yield "--qk-layernorm"
    if shape.sinks:
        yield "--softmax-type learnable"
    if shape.window:
        yield f"--window-size {shape.window - 1},0"
    if shape.window and shape.whole_every:
        yield f"--window-attn-skip-freq {shape.whole_every}"


def _experts(mixture: Mixture, layers: int) -> Iterator[str]:
    yield f"--num-experts {mixture.experts}"
    yield f"--moe-router-topk {mixture.choices}"
    yield f"--moe-ffn-hidden-size {mixture.ffn}"
    yield "--moe-grouped-gemm"
    if mixture.dispatch == NCCL:
        yield "--moe-token-dispatcher-type alltoall"
    else:
        yield "--moe-token-dispatcher-type flex"
        yield f"--moe-flex-dispatcher-backend {mixture.dispatch}"
    if mixture.capacity:
        yield f"--moe-expert-capacity-factor {mixture.capacity:g}"
        yield "--moe-pad-expert-input-to-capacity"
    if mixture.shared:
        yield f"--moe-shared-expert-intermediate-size {mixture.shared * mixture.ffn}"
    if mixture.dense:
        yield f"--moe-layer-freq ([0]*{mixture.dense}+[1]*{layers - mixture.dense})"
    if mixture.mtp:
        yield f"--mtp-num-layers {mixture.mtp}"
    if mixture.latent is not None:
        yield from _latent(mixture.latent)


def _latent(latent: Latent) -> Iterator[str]:
    yield "--multi-latent-attention"
    if latent.queries:
        yield f"--q-lora-rank {latent.queries}"
    yield f"--kv-lora-rank {latent.keys}"
    yield f"--qk-head-dim {latent.plain}"
    yield f"--qk-pos-emb-head-dim {latent.rotated}"
    yield f"--v-head-dim {latent.value}"


def _degrees(job: PlannedJob) -> Iterator[str]:
    strategy = job.strategy
    yield f"--tensor-model-parallel-size {strategy.tensor}"
    yield f"--pipeline-model-parallel-size {strategy.pipeline}"
    yield f"--context-parallel-size {strategy.context}"
    if strategy.context > 1:
        yield f"--cp-comm-type {CP_TYPES[strategy.context_exchange]}"
    yield f"--expert-model-parallel-size {strategy.expert}"
    yield from ("--expert-tensor-parallel-size 1",) if strategy.fold_experts and strategy.tensor > 1 else ()
    yield from ("--moe-shared-expert-overlap",) if strategy.shared_overlap else ()
    yield from ("--overlap-moe-expert-parallel-comm",) if strategy.schedule == "1f1b-overlap" else ()
    yield from ("--sequence-parallel",) if strategy.sequence_parallel else ()
    if strategy.sequence_parallel and strategy.tensor_overlap and stack_of(job.workload).transformer_engine:
        yield "--tp-comm-overlap"
    yield f"--micro-batch-size {strategy.micro_batch}"
    yield f"--global-batch-size {strategy.global_batch}"


def _pipeline(job: PlannedJob) -> Iterator[str]:
    """Pieces of each stage, and the cut where it is not Megatron-LM's own: as many blocks in every piece."""
    strategy = job.strategy
    if strategy.pipeline == 1:
        return
    if strategy.tensor > 1 and not strategy.scatter_gather and not strategy.sequence_parallel:
        yield "--no-scatter-gather-tensors-in-pipeline"
    written = layout(job)
    if written is not None:
        yield f"--pipeline-model-parallel-layout {written}"
    elif strategy.pieces_each > 1:
        yield f"--num-virtual-stages-per-pipeline-rank {strategy.pieces_each}"


def layout(job: PlannedJob) -> str | None:
    """The cut as Megatron-LM writes it, `Ett|ttt|ttL`; None where every piece has as many blocks.

    >>> from ropewalk.hardware import read_cluster
    >>> from ropewalk.plans import ModelUse
    >>> from ropewalk.strategy import Strategy
    >>> cut = Strategy(pipeline=2, micro_batches=2, stages=(0, 9))
    >>> layout(PlannedJob(Plan(ModelUse("gpt2"), read_cluster("1x2"), cut)))
    'Etttttttt|ttttL'
    """
    if not is_transformer(job.workload):
        return None
    blocks = len(job.workload.layers) - 2
    letters = "E" + "t" * blocks + "L"
    found = [letters[job.pieces.of(piece).start : job.pieces.of(piece).stop] for piece in range(job.pieces.count)]
    each, left = divmod(blocks, job.pieces.count)
    equal = ["t" * each] * job.pieces.count
    equal[0], equal[-1] = f"E{equal[0]}", f"{equal[-1]}L"
    return None if not left and found == equal else "|".join(found)


def _memory(job: PlannedJob) -> Iterator[str]:
    strategy = job.strategy
    heads = recomputed_heads(job.cut, job.workload) if strategy.choices else None
    yield from _recomputed(strategy.recompute) if heads is None else (*BLOCKS, f"--recompute-num-layers {heads}")
    yield from SHARDINGS[strategy.zero]
    yield f"--optimizer {OPTIMISERS[strategy.optimiser]}"
    yield from ON_HOST if strategy.optimiser == "adamw_cpu" else ()
    if strategy.optimiser == "sgd":
        yield "--sgd-momentum 0"


def _recomputed(recompute: str) -> tuple[str, ...]:
    """Parts of blocks by name, or what has an argument of its own."""
    if recompute in RECOMPUTES:
        return RECOMPUTES[recompute]
    return "--recompute-granularity selective", f"--recompute-modules {' '.join(modules_of(recompute))}"


def _gradients(job: PlannedJob) -> Iterator[str]:
    """Precision of weights and gradients, and when gradients are reduced; Megatron-LM counts a bucket in parameters."""
    strategy, precision = job.strategy, job.plan.model.precision
    yield from PRECISIONS[precision]
    yield from ("--fp8-param-gather",) if strategy.narrow_weights else ()
    if "--bf16" in PRECISIONS[precision] and job.gradient_bytes == 2:
        yield "--grad-reduce-in-bf16"
    elif PRECISIONS[precision] and job.gradient_bytes == 4:
        yield "--accumulate-allreduce-grads-in-fp32"
    if not strategy.order.overlap or strategy.data * strategy.context == 1:
        return
    yield "--overlap-grad-reduce"
    if strategy.zero < 2:
        yield f"--ddp-bucket-size {max(1, job.bucket_parameters)}"
    if strategy.gather_ahead or (strategy.zero >= 2 and strategy.prefetch):
        yield "--overlap-param-gather"
