"""Every command in one place: where it is written, and the sentence that lists show. Nothing of it is imported here."""

from __future__ import annotations

from typing import Any

import typer

from ropewalk.cli.later import HELP, MARKUP, Later, group_of

HERE = "ropewalk.cli.commands"
LIVE = "A live cluster (`ropewalk serve`)"
ABOUT_CLUSTER = (
    "Many jobs on one cluster of two or three tiers, or of rails: `ropewalk cluster jobs.csv` replays a trace under "
    "ECMP, source routing, vClos and OCS-vClos, and an ideal network."
)
ABOUT_SERVE = (
    "A controller for a live cluster: `ropewalk serve --cluster my.yaml` gives jobs GPUs and dedicated links, "
    "keeps the queue, and loses nothing when it is killed. `ropewalk serve run --help` lists its options."
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
        "What should I do? The best strategy for a model on a cluster, with a bound on what is left to gain.",
    ),
    "sync": _at(
        "sync", "sync_command",
        "Sync time of every logical topology on every physical one: closed form beside simulation.",
    ),
    "collective": _at(
        "collective", "collective_command",
        "The best possible bandwidth of a collective on a fabric, what limits it, and a schedule that reaches it.",
    ),
    "pipeline": _at(
        "pipeline", "pipeline_command",
        "The stages, replicas, placement and timetable that make a step of a model shortest, against other planners.",
    ),
    "overlap": _at(
        "overlap", "overlap_command",
        "In which order, groups and pieces a data-parallel step should all-reduce its gradients, against known "
        "methods.",
    ),
    "fabric": _at(
        "fabric", "fabric_command", "Facts and a picture of a fabric: ports, diameter, bisection."
    ),
    "expect": _at(
        "expect", "expect_command",
        "The bus bandwidth that a healthy cluster shows, for every collective and size, as nccl-tests prints it.",
    ),
    "simulate": _at(
        "simulate", "simulate_command",
        "How long a training step takes on a cluster, and why: compute, communication, bubbles, the bottleneck link.",
    ),
    "export": _at(
        "export", "export_command",
        "Write a plan as what other tools read: launch arguments, scripts, timetables, traces, cabling.",
    ),
    "cost": _at("cost", "cost_command", "Predict one training step on one GPU: forward, forward and backward, step."),
    "profile": _at(
        "profile", "profile_command",
        "Measure kernels and launches on this machine's GPU (or CPU) with PyTorch: two minutes per precision on an "
        "H200.",
    ),
    "list": _at(
        "list_command", "list_command", "Everything that can be chosen by name: what it is and where it applies."
    ),
    "warm": _at(
        "warm", "warm_command",
        "Compile the kernels of all commands now, on all cores, so that no later command waits for the compiler.",
    ),
    "ui": _at(
        "ui", "ui_command", "The planner and all studies in a browser, for you alone: it listens on 127.0.0.1."
    ),
    "cluster": Later(HERE, "cluster_app", ABOUT_CLUSTER),
    "serve": Later(HERE, "serve_app", ABOUT_SERVE),
    "lab": Later(HERE, "lab_app", ABOUT_LAB),
}  # fmt: skip

CLUSTER = {
    "replay": _at(
        "cluster", "replay_command", "Completion, running and waiting times of a whole trace, and why jobs waited."
    ),
    "snapshot": _at(
        "cluster_snapshot", "snapshot_command",
        "The jobs that run at one moment, simulated together and each alone: who slows whom, and by how much.",
    ),
    "agreement": _at(
        "cluster_agreement", "agreement_command",
        "How far the replay's rates are from packets: the same jobs at several moments, as flows and packet by packet.",
    ),
    "allocate": _at(
        "cluster_state", "allocate_command",
        "Leafs, spines, links and rank order that a job would get now, or why it waits.",
    ),
    "explain": _at(
        "cluster_explain", "explain_command",
        "Why one job waits: too few GPUs, too few whole servers, or no common spines, and which spines block it.",
    ),
    "rules": _at(
        "cluster_state", "rules_command",
        "Files for one running job: nodes in rank order, rank files, reserved links, leaf rules (JSON and SONiC).",
    ),
    "generate": _at(
        "cluster_make", "generate_command",
        "A synthetic trace from published sizes and durations, arriving as a Poisson process.",
    ),
    "size": _at(
        "cluster_make", "size_command",
        "How many GPUs two tiers of switches hold, rearrangeable and strictly non-blocking.",
    ),
    "status": _at("cluster_live", "status_command", "The cluster and its jobs, or one job.", LIVE),
    "submit": _at(
        "cluster_live", "submit_command",
        "Submit a job: it starts (exit code 0), waits (3) or can never start here (4).", LIVE,
    ),
    "end": _at("cluster_live", "end_command", "A job is over: what it held is free, and others start.", LIVE),
    "cancel": _at("cluster_live", "cancel_command", "Cancel a waiting or running job.", LIVE),
    "hold": _at("cluster_live", "hold_command", "Hold a waiting job until it is released.", LIVE),
    "release": _at("cluster_live", "release_command", "Release a held job to its place in the queue.", LIVE),
    "resize": _at("cluster_live", "resize_command", "Resize a running job.", LIVE),
    "queue": _at("cluster_live", "queue_command", "Waiting jobs in queue order, with reasons.", LIVE),
    "what-if": _at(
        "cluster_live", "what_if_command",
        "Would such a job start now, when, and what is in the way? Nothing changes; exit codes as of `submit`.", LIVE,
    ),
    "drain": _at("cluster_parts", "drain_command", "Drain parts: they take no new jobs; running jobs continue.", LIVE),
    "restore": _at("cluster_parts", "restore_command", "Return drained parts to service.", LIVE),
    "fail": _at(
        "cluster_parts", "fail_command",
        "Mark parts as failed: jobs that lost links get others where possible; jobs that lost GPUs end or are "
        "requeued.",
        LIVE,
    ),
    "repair": _at("cluster_parts", "repair_command", "Mark failed parts as working again.", LIVE),
    "policy": _at(
        "cluster_parts", "policy_command",
        "How jobs share the cluster from now on; without an argument, how they do.", LIVE,
    ),
    "report": _at(
        "cluster_speed", "report_command",
        "A running job reports its speed; it is compared with the step time that its plan promised.", LIVE,
    ),
    "events": _at("cluster_parts", "events_command", "What has happened, and with --follow what happens.", LIVE),
}  # fmt: skip

SERVE = {
    "run": _at("serve", "run_command", "Run the controller until it is told to end (SIGTERM, Ctrl-C)."),
    "backup": _at(
        "serve_upkeep", "backup_command",
        "A copy of a SQLite database, complete and consistent, while the service runs.",
    ),
    "systemd-unit": _at(
        "serve_upkeep", "systemd_unit_command",
        "Print a unit for systemd that starts the service at boot and again whenever it ends.",
    ),
    "slurm-files": _at(
        "serve_slurm", "slurm_files_command",
        "Files that make Slurm ask the service: a job_submit plugin, prologs and epilogs, configuration, a README.",
    ),
    "import-slurm": _at(
        "serve_slurm", "import_slurm_command",
        "Take over jobs that run in Slurm already: they keep their servers and get dedicated links where there "
        "are any.",
    ),
    "kubernetes-files": _at(
        "serve_kubernetes", "kubernetes_files_command",
        "Files for Kubernetes: node labels, Kueue's Topology, Volcano's HyperNodes, the extender of kube-scheduler.",
    ),
    "token": Later(HERE, "token_app", ABOUT_TOKENS),
}  # fmt: skip

TOKEN = {
    "add": _at(
        "serve_tokens", "add_command", "Make a token and print it, once: the database keeps a salted hash of it."
    ),
    "list": _at("serve_tokens", "list_command", "All tokens, without their secrets."),
    "revoke": _at("serve_tokens", "revoke_command", "End a token: a running service refuses it within a second."),
}

LAB = {
    "up": _at("lab", "up_command", "Build a network of namespaces: hosts, switches, shaped links, routes."),
    "run": _at(
        "lab_run", "run_command",
        "Run a collective between hosts, or the step of a plan, over TCP: the prediction beside the measurement.",
    ),
    "suite": _at(
        "lab_suite", "suite_command",
        "The testbeds of papers on real networks: what was published, what is predicted, what is measured.",
    ),
    "status": _at("lab", "status_command", "Labs that are up, and what the links of one have sent."),
    "fault": _at("lab", "fault_command", "Break or slow a link of a lab, or make it whole again."),
    "rewire": _at(
        "lab", "rewire_command",
        "Change the circuits of a lab while it runs, as an optical switch does: the same nodes, other links.",
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
