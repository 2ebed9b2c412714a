"""Against Calculon: the same steps of GPT-3 on A100s, predicted by its formulas and simulated here.

Calculon (github.com/calculon-ai/calculon, Apache-2.0) prices a step in closed form: two tiers of network, no links, no
contention. It is not on a package registry: clone it and give its folder, and a Python that has numpy, psutil and
pandas, which it imports. Its `systems/a100_80g.json` is used as it is; ours is `a100` on a leaf-spine fabric.
Calculon counts neither embeddings nor the output layer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from calculon_answers import GET, Answer, Calculon
from measure import best_cpu, cpu, machine, options, short, summary, table
from ropewalk.hardware import Given, read_cluster
from ropewalk.strategy import Strategy
from ropewalk.training import NetworkUse, TrainingQuestion, answer
from training_step import SAMPLES, STRATEGY_GPUS, question_of, strategies

SYSTEM = "systems/a100_80g.json"
GPT3 = {"hidden": 12288, "feedforward": 49152, "seq_size": 2048, "attn_heads": 96, "attn_size": 128, "num_blocks": 96}
SMALLER = {"hidden": 5120, "feedforward": 20480, "seq_size": 2048, "attn_heads": 40, "attn_size": 128, "num_blocks": 40}
RECOMPUTE = {"full": "full", "selective": "attn_only", "none": "none"}
"""Our word and Calculon's."""
PUBLISHED_S = 32.0
"""Seconds of the first step on 1,024 A100s ("around 32 seconds", Megatron-LM's README). It does not name recomputation;
the 138 TFLOP/s beside it count the forward pass twice."""


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--calculon", type=Path, default=None, help="the folder of a Calculon checkout")
    parser.add_argument("--calculon-python", default=sys.executable, help="a Python with numpy, psutil and pandas")
    chosen = parser.parse_args()
    print(f"against Calculon: the same steps in both. {machine()}")
    if chosen.calculon is None:
        print(f"Calculon is missing, only our side is measured. To compare: {GET}")

    def theirs(model: dict[str, int], executions: list[Answer]) -> Answer | None:
        if chosen.calculon is None:
            return None
        calculon = Calculon(chosen.calculon, chosen.calculon_python)
        return calculon.answers(SYSTEM, model, executions, 1 if chosen.quick else 3)

    answer(question_of(next(strategies())))  # loads the kernels
    for recompute, sequence in (("full", False), ("selective", True), ("none", True)):
        one = theirs(GPT3, [_execution(8, 16, 8, 1, 1536, recompute, sequence)])
        _one_step(recompute, sequence, one)
    _many(theirs)


def _one_step(recompute: str, sequence: bool, theirs: Answer | None) -> None:
    question = TrainingQuestion(
        "megatron-175b", read_cluster(given=Given(1024, "a100")), tensor=8, pipeline=16, data=8, batch=1536,
        micro_batch=1, precision="fp16", detail="stage", network=NetworkUse(symmetry=False), memory_check=False,
        usual=Strategy(recompute=recompute, sequence_parallel=sequence),
    )  # fmt: skip
    found, cpu_s = best_cpu(lambda: answer(question), 1)
    numbers = found.statistics
    exposed = numbers.exposed_by_purpose_s
    rows = [
        ["ours", f"{numbers.step_time_s:.2f}", f"{numbers.bubble_s:.2f}",
         *(f"{exposed.get(name, 0.0):.2f}" for name in ("tensor", "pipeline", "data")),
         f"{found.memory.most / 1e9:.0f}", short(cpu_s)]
    ]  # fmt: skip
    said = f"ours {numbers.step_time_s:.2f} s in {short(cpu_s)} CPU s"
    if theirs is not None:
        one = theirs["answers"][0]
        if "refused" in one:
            rows.append([f"Calculon refuses: {one['refused']}", *["-"] * 6, short(theirs["cpu_s"])])
        else:
            rows.append(
                ["Calculon", *(f"{one[name]:.2f}" for name in ("step_s", "bubble_s", "tensor_s", "pipeline_s",
                 "data_s")), f"{one['memory_bytes'] / 1e9:.0f}", f"{theirs['cpu_s']:.3f}"]
            )  # fmt: skip
            said += f", Calculon {one['step_s']:.2f} s in {theirs['cpu_s']:.3f} CPU s"
    name = f"recompute {recompute}{', sequence parallel' if sequence else ''}"
    if recompute == "full":
        rows.append(["published (Megatron-LM)", f"{PUBLISHED_S:.2f}", *["-"] * 6])
    table(
        f"GPT-3 175B, 1,024 A100s, tp 8 pp 16 dp 8, 1,536 samples, 1F1B, {name}",
        ["who", "step s", "bubble s", "tensor s", "pipeline s", "data s", "memory GB", "CPU s"],
        rows,
    )
    summary(f"GPT-3 175B on 1,024 A100s, {name}: {said}")


def _many(theirs: Any) -> None:
    """All strategies of the smaller model in both: how many a second, and whether they are put in the same order."""
    asked = list(strategies())
    executions = [
        _execution(one["tensor"], one["pipeline"], one["data"], one["micro_batch"], SAMPLES, "none", False)
        for one in asked
    ]
    calculon = theirs(SMALLER, executions)
    found, ours_s = cpu(lambda: [answer(question_of(one)).statistics.step_time_s for one in asked])
    rows = [["ours, simulated on the network", f"{len(asked)}", short(ours_s), f"{len(asked) / ours_s:.1f}"]]
    if calculon is not None:
        answered = [at for at, one in enumerate(calculon["answers"]) if "step_s" in one]
        rate = len(asked) / calculon["cpu_s"]
        rows.append([f"Calculon ({len(answered)} answered, the others refused)", f"{len(asked)}",
                     short(calculon["cpu_s"]), f"{rate:.1f}"])  # fmt: skip
        apart = [found[at] / calculon["answers"][at]["step_s"] - 1 for at in answered]
        if apart:
            summary(
                f"13B on {STRATEGY_GPUS} A100s, {len(answered)} strategies in both: our steps are {min(apart):+.0%} to "
                f"{max(apart):+.0%} from Calculon's; a second {len(asked) / ours_s:.1f} against {rate:.1f}"
            )
    table("Strategies of 13B on 64 A100s, 512 samples", ["who", "strategies", "CPU s", "a second"], rows)


def _execution(
    tensor: int, pipeline: int, data: int, micro_batch: int, samples: int, recompute: str, sequence: bool
) -> Answer:
    """A strategy in Calculon's words: plain 1F1B, nothing offloaded, gradients not overlapped with computation.

    Networks: 0 is NVLink in a server, 1 is between servers; what fits into the server of a tensor group stays there.
    """
    return {
        "num_procs": tensor * pipeline * data, "tensor_par": tensor, "pipeline_par": pipeline, "data_par": data,
        "tensor_par_net": 0, "pipeline_par_net": 1, "data_par_net": 1,
        "batch_size": samples, "microbatch_size": micro_batch, "datatype": "float16", "fused_activation": True,
        "attention_type": "multihead", "activation_recompute": RECOMPUTE[recompute], "pipeline_interleaving": 1,
        "optimizer_sharding": False, "tensor_par_comm_type": "rs_ag" if sequence else "ar",
        "tensor_par_overlap": "none", "seq_par_ag_redo": False, "data_par_overlap": False, "weight_offload": False,
        "activations_offload": False, "optimizer_offload": False, "training": True,
    }  # fmt: skip


if __name__ == "__main__":
    main()
