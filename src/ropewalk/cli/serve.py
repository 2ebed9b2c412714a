"""`ropewalk serve`: a controller for a live cluster. Jobs get GPUs and dedicated links, over HTTP."""

from __future__ import annotations

import typer

from ropewalk.cli.cluster_plant import PlantOptions
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.serve_kubernetes_options import KubernetesOptions
from ropewalk.cli.serve_options import ListenOptions, ServeRunOptions
from ropewalk.cli.serve_rule_options import RuleOptions
from ropewalk.cli.serve_slurm_options import SlurmOptions


@with_options
def run_command(
    *,
    run: ServeRunOptions,
    listen: ListenOptions,
    rules: RuleOptions,
    slurm: SlurmOptions,
    kubernetes: KubernetesOptions,
    cluster: PlantOptions,
) -> None:
    """Run the controller until it is stopped (SIGTERM, Ctrl-C).

    The cluster is described once and kept in the database: later, `ropewalk serve` alone continues with it.

    Example: `ropewalk serve --cluster my.yaml --no-auth`

    With rules on a lab: `ropewalk serve --fabric leaf-spine:2x4x4 --gpus-per-server 1 --driver linux
    --driver-option lab=lab`

    On PostgreSQL and for other machines: `ropewalk serve --database postgresql://db/ropewalk --host 10.0.0.5
    --tls-cert c.pem --tls-key k.pem`
    """
    from ropewalk.cli.serve_run import serve

    raise typer.Exit(serve(run, listen, rules, slurm, kubernetes, cluster))
