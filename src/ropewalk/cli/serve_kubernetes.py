"""`ropewalk serve kubernetes-files`."""

from __future__ import annotations

from pathlib import Path

import typer

from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.option_groups import with_options
from ropewalk.cli.screen import JSON, console, print_json


@with_options
def kubernetes_files_command(
    to: Path = typer.Option(..., metavar="FOLDER", help="Folder for the files."),
    url: str = typer.Option("http://127.0.0.1:8787", help="URL under which kube-scheduler reaches the service."),
    resource: str = typer.Option("nvidia.com/gpu", help="Resource name of GPUs in pods."),
    name: str = typer.Option("ropewalk", help="Name of the cluster in labels and in Kueue's objects."),
    bind: bool = typer.Option(False, "--bind", help="Let the service bind pods (it needs --kubernetes-api)."),
    json: bool = JSON,
    *,
    cluster: PlantOptions,
) -> None:
    """Write files for Kubernetes: node labels, Kueue's Topology, Volcano's HyperNodes, kube-scheduler's extender.

    Example: `ropewalk serve kubernetes-files --fabric leaf-spine:4x4x8 --gpus-per-server 2 --to kubernetes/`
    """
    from ropewalk.serve.kubernetes.files import KubernetesSite, kubernetes_files, write_kubernetes_files

    site = KubernetesSite(url, resource, name, bind)
    written = write_kubernetes_files(kubernetes_files(plant_of(cluster), site), to)
    if json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        console().print(str(path), soft_wrap=True)
    console().print(f"what to do with them: {to / 'README.md'}", style="dim", soft_wrap=True)
