"""Options of `ropewalk serve` about Kubernetes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ropewalk import units
from ropewalk.errors import InputError

if TYPE_CHECKING:
    from ropewalk.serve.kubernetes.api_server import ApiServer

BESIDE = "Kubernetes"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token of its service account and the certificate authority."""

KUBERNETES_API = typer.Option(
    None, metavar="URL", help="URL of the API server: jobs end with their pods, and pods are bound on request of "
    "kube-scheduler. `in-cluster` inside a pod.", rich_help_panel=BESIDE,
)  # fmt: skip
KUBERNETES_TOKEN_FILE = typer.Option(None, metavar="FILE", help="Token for the API server.", rich_help_panel=BESIDE)
KUBERNETES_CA = typer.Option(None, metavar="FILE", help="Its certificate authority (PEM).", rich_help_panel=BESIDE)
KUBERNETES_RESOURCE = typer.Option("nvidia.com/gpu", help="Resource name of GPUs in pods.", rich_help_panel=BESIDE)
KUBERNETES_POLL = typer.Option("5s", help="Polling interval for pods.", rich_help_panel=BESIDE)


@dataclass(frozen=True)
class KubernetesOptions:
    """What was typed about Kubernetes."""

    kubernetes_api: str | None
    kubernetes_token_file: Path | None
    kubernetes_ca: Path | None
    kubernetes_resource: str
    kubernetes_poll: str

    def poll_s(self) -> float:
        found = units.seconds(self.kubernetes_poll)
        if not 0.1 <= found <= 3600:
            raise InputError(f"--kubernetes-poll {self.kubernetes_poll} is out of range: give 0.1s to 3600s")
        return found

    def api_server(self) -> ApiServer | None:
        """Where the API server is; None where nobody said."""
        self.poll_s()
        if self.kubernetes_api is None:
            return None
        from ropewalk.serve.kubernetes.api_server import ApiServer

        if self.kubernetes_api != "in-cluster":
            return ApiServer(self.kubernetes_api, self.kubernetes_token_file, self.kubernetes_ca)
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not (ACCOUNT / "token").exists():
            raise InputError("--kubernetes-api in-cluster works in a pod with a service account: give the URL instead")
        shown = f"[{host}]" if ":" in host else host
        return ApiServer(f"https://{shown}:{port}", ACCOUNT / "token", ACCOUNT / "ca.crt")
