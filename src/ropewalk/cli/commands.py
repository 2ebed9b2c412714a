"""Every command in one place: where it is written, and the sentence that lists show. Nothing of it is imported here."""

from __future__ import annotations

from typing import Any

import typer

from ropewalk.cli.later import HELP, MARKUP, Later, group_of

HERE = "ropewalk.cli.commands"
LIVE = "A live cluster (`ropewalk serve`)"
ABOUT_CLUSTER = (
    "Share a cluster between many jobs: `ropewalk cluster jobs.csv` replays a trace under ECMP, source routing, vClos, "
    "OCS-vClos and on an ideal network, with two or three tiers or rails."
)
ABOUT_SERVE = (
    "Run the controller of a live cluster: `ropewalk serve --cluster my.yaml` gives jobs GPUs and dedicated links, "
    "keeps the queue, and survives being killed. `ropewalk serve run --help` lists its options."
)
ABOUT_TOKENS = "Manage access tokens. Works while the service runs; changes take effect within a second."
ABOUT_LAB = (
    "Emulate a fabric or a plan on this machine, with real packets: `ropewalk lab up torus:4x4 --bandwidth 20Mbps`."
)


def _at(module: str, name: str, about: str, panel: str | None = None) -> Later:
    return Later(f"ropewalk.cli.{module}", name, about, panel)


COMMANDS = {
    "plan": _at(
        "plan", "plan_command",
        "Find the best strategy for a model on a cluster, with a bound on any further gain.",
    ),
    "sync": _at(
        "sync", "sync_command",
        "Compare all-reduce topologies on physical networks: closed form and simulation.",
    ),
    "collective": _at(
        "collective", "collective_command",
        "Find the optimal bandwidth of a collective on a fabric, what limits it, and a schedule that reaches it.",
    ),
    "pipeline": _at(
        "pipeline", "pipeline_command",
        "Find the stages, replicas, placement and timetable with the shortest step, and compare with other planners.",
    ),
    "overlap": _at(
        "overlap", "overlap_command",
        "Find the best order, groups and pieces of gradient all-reduces, and compare with published methods.",
    ),
    "fabric": _at(
        "fabric", "fabric_command", "Describe and draw a fabric: ports, diameter, bisection."
    ),
    "expect": _at(
        "expect", "expect_command",
        "Predict what nccl-tests reports on a healthy cluster, for every collective and size.",
    ),
    "simulate": _at(
        "simulate", "simulate_command",
        "Simulate a training step on a cluster: compute, exposed communication, bubbles, the bottleneck link.",
    ),
    "export": _at(
        "export", "export_command",
        "Export a plan for other tools: launch arguments, scripts, timetables, traces, cabling.",
    ),
    "cost": _at("cost", "cost_command", "Predict a training step on one GPU: forward, both passes, whole step."),
    "profile": _at(
        "profile", "profile_command",
        "Measure kernels and launches on this machine's GPU (or CPU) with PyTorch: two minutes per precision on an "
        "H200.",
    ),
    "list": _at(
        "list_command", "list_command", "List everything that can be chosen by name, and where it applies."
    ),
    "warm": _at(
        "warm", "warm_command",
        "Compile all kernels now, on all cores, so that no later command waits for the compiler.",
    ),
    "ui": _at(
        "ui", "ui_command", "Open the planner and all studies in a browser (local only: 127.0.0.1)."
    ),
    "cluster": Later(HERE, "cluster_app", ABOUT_CLUSTER),
    "serve": Later(HERE, "serve_app", ABOUT_SERVE),
    "lab": Later(HERE, "lab_app", ABOUT_LAB),
}  # fmt: skip

CLUSTER = {
    "replay": _at(
        "cluster", "replay_command", "Replay a trace: completion, running and waiting times, and why jobs waited."
    ),
    "snapshot": _at(
        "cluster_snapshot", "snapshot_command",
        "Simulate the jobs of one moment together and alone: who slows whom, and by how much.",
    ),
    "agreement": _at(
        "cluster_agreement", "agreement_command",
        "Compare the replay's rates with flow and packet simulations of the same jobs at several moments.",
    ),
    "allocate": _at(
        "cluster_state", "allocate_command",
        "Show the leafs, spines, links and rank order that a job would get now, or why it waits.",
    ),
    "explain": _at(
        "cluster_explain", "explain_command",
        "Explain why a job waits: too few GPUs, too few whole servers, or no common spines, and what blocks them.",
    ),
    "rules": _at(
        "cluster_state", "rules_command",
        "Write the files of a running job: nodes in rank order, rank files, reserved links, rules (JSON and SONiC).",
    ),
    "generate": _at(
        "cluster_make", "generate_command",
        "Generate a synthetic trace with published sizes and durations and Poisson arrivals.",
    ),
    "size": _at(
        "cluster_make", "size_command",
        "Compute how many GPUs two tiers of switches support, rearrangeable and strictly non-blocking.",
    ),
    "status": _at("cluster_live", "status_command", "Show the cluster and its jobs, or one job.", LIVE),
    "submit": _at(
        "cluster_live", "submit_command",
        "Submit a job: it starts (exit code 0), waits (3) or can never start here (4).", LIVE,
    ),
    "end": _at("cluster_live", "end_command", "End a job: its resources are freed, and other jobs start.", LIVE),
    "cancel": _at("cluster_live", "cancel_command", "Cancel a waiting or running job.", LIVE),
    "hold": _at("cluster_live", "hold_command", "Hold a waiting job until it is released.", LIVE),
    "release": _at("cluster_live", "release_command", "Release a held job to its place in the queue.", LIVE),
    "resize": _at("cluster_live", "resize_command", "Resize a running job.", LIVE),
    "queue": _at("cluster_live", "queue_command", "List waiting jobs in queue order, with reasons.", LIVE),
    "what-if": _at(
        "cluster_live", "what_if_command",
        "Check whether and when such a job would start, without changing anything; exit codes as for `submit`.", LIVE,
    ),
    "drain": _at("cluster_parts", "drain_command", "Drain parts: they take no new jobs; running jobs continue.", LIVE),
    "restore": _at("cluster_parts", "restore_command", "Return drained parts to service.", LIVE),
    "fail": _at(
        "cluster_parts", "fail_command",
        "Mark parts as failed: jobs that lost links get others where possible; jobs that lost GPUs, or circuits "
        "without replacement, end or are requeued.",
        LIVE,
    ),
    "repair": _at("cluster_parts", "repair_command", "Mark failed parts as working again.", LIVE),
    "policy": _at(
        "cluster_parts", "policy_command",
        "Change how jobs share the cluster; without an argument, show it.", LIVE,
    ),
    "report": _at(
        "cluster_speed", "report_command",
        "Report the speed of a running job, to compare it with the step time that its plan promised.", LIVE,
    ),
    "events": _at("cluster_parts", "events_command", "Show past events, and new ones with --follow.", LIVE),
}  # fmt: skip

SERVE = {
    "run": _at("serve", "run_command", "Run the controller until it is stopped (SIGTERM, Ctrl-C)."),
    "backup": _at(
        "serve_upkeep", "backup_command",
        "Copy a SQLite database, completely and consistently, while the service runs.",
    ),
    "systemd-unit": _at(
        "serve_upkeep", "systemd_unit_command",
        "Print a systemd unit that starts the service at boot and restarts it whenever it ends.",
    ),
    "slurm-files": _at(
        "serve_slurm", "slurm_files_command",
        "Write files that connect Slurm to the service: job_submit plugin, prologs, epilogs, configuration, README.",
    ),
    "import-slurm": _at(
        "serve_slurm", "import_slurm_command",
        "Adopt jobs that already run in Slurm: they keep their servers and get dedicated links if there are any.",
    ),
    "kubernetes-files": _at(
        "serve_kubernetes", "kubernetes_files_command",
        "Write files for Kubernetes: node labels, Kueue's Topology, Volcano's HyperNodes, kube-scheduler's extender.",
    ),
    "token": Later(HERE, "token_app", ABOUT_TOKENS),
}  # fmt: skip

TOKEN = {
    "add": _at(
        "serve_tokens", "add_command", "Create a token and print it once: the database keeps only a salted hash."
    ),
    "list": _at("serve_tokens", "list_command", "List all tokens, without their secrets."),
    "revoke": _at("serve_tokens", "revoke_command", "Revoke a token: a running service refuses it within a second."),
}

LAB = {
    "up": _at("lab", "up_command", "Build a network of namespaces: hosts, switches, shaped links, routes."),
    "run": _at(
        "lab_run", "run_command",
        "Run a collective or the step of a plan over TCP, and compare the measurement with the prediction.",
    ),
    "suite": _at(
        "lab_suite", "suite_command",
        "Run the testbeds of papers on real networks: published, predicted and measured.",
    ),
    "status": _at("lab", "status_command", "List running labs, or show the traffic on the links of one."),
    "fault": _at("lab", "fault_command", "Break, slow down or restore a link of a lab."),
    "rewire": _at(
        "lab", "rewire_command",
        "Change the circuits of a running lab, as an optical switch does: the same nodes, other links.",
    ),
    "down": _at("lab", "down_command", "Remove a lab: its processes, namespaces, interfaces and routes."),
}  # fmt: skip


def _app(name: str, cls: Any, about: str, *, no_args_is_help: bool = True) -> typer.Typer:
    made = typer.Typer(
        name=name,
        cls=cls,
        help=about,
        no_args_is_help=no_args_is_help,
        add_completion=False,
        rich_markup_mode=MARKUP,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(HELP)},
    )
    made.callback()(_nothing)  # without one, Typer sees no group in it
    return made


def _nothing() -> None:
    """A group does nothing before its commands."""


cluster_app = _app("cluster", group_of(CLUSTER, "replay"), ABOUT_CLUSTER)
serve_app = _app("serve", group_of(SERVE, "run", alone=True), ABOUT_SERVE, no_args_is_help=False)
token_app = _app("token", group_of(TOKEN), ABOUT_TOKENS)
lab_app = _app("lab", group_of(LAB), ABOUT_LAB)
