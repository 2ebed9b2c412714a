"""The little of the API server's REST interface that is needed: bind a pod, list pods. Standard library only."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ropewalk.documents import parse_foreign_json, read_text
from ropewalk.errors import InputError, RopewalkError
from ropewalk.serve.kubernetes.extender import Binding

PAGE = 500
LONGEST = 64 << 20
LONGEST_TOKEN_FILE = 100_000
"""Bytes of one answer."""


class ApiServerFailed(RopewalkError):
    """The API server refused something or did not answer."""


@dataclass(frozen=True)
class ApiServer:
    """Where it is and who asks."""

    url: str
    token_file: Path | None = None
    """Read at every request: Kubernetes renews tokens of service accounts."""
    ca_file: Path | None = None
    timeout_s: float = 5.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            there = parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:  # brackets that do not match, a port that is no number
            there = False
        if not there or parts.scheme not in ("http", "https"):
            raise InputError(f"{self.url!r} is not the address of an API server: write https://HOST:PORT")
        if parts.scheme == "http" and self.token_file is not None and parts.hostname not in ("127.0.0.1", "localhost"):
            raise InputError(f"{self.url} would carry the token in the clear: write https://HOST:PORT")

    def bind(self, pod: Binding) -> None:
        """Put a pod on a node, as kube-scheduler does where no extender binds."""
        target = {"apiVersion": "v1", "kind": "Node", "name": pod.node}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": target,
        }
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/binding"
        self._ask("POST", path, body)

    def pods(self) -> Iterator[Any]:
        """All pods of the cluster, page by page."""
        more = ""
        while True:
            query = urlencode({"limit": PAGE, **({"continue": more} if more else {})})
            page = self._ask("GET", f"/api/v1/pods?{query}")
            yield from page.get("items") or []
            more = (page.get("metadata") or {}).get("continue") or ""
            if not more:
                return

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        try:
            if self.token_file is not None:
                headers["Authorization"] = f"Bearer {self._token(self.token_file)}"
            line = self._connect()
            try:
                line.request(method, path, None if body is None else json.dumps(body), headers)
                answer = line.getresponse()
                text = answer.read(LONGEST)
            finally:
                line.close()
            document = parse_foreign_json((text or b"{}").decode(), "its answer", InputError)
        except (OSError, http.client.HTTPException, ValueError, InputError) as problem:
            raise ApiServerFailed(f"the API server at {self.url} does not answer ({problem})") from None
        if answer.status >= 300 or not isinstance(document, dict):
            told = document.get("message") if isinstance(document, dict) else None
            raise ApiServerFailed(f"the API server answers {answer.status} ({str(told or answer.reason)[:200]})")
        return document

    def _token(self, path: Path) -> str:
        return read_text(path, f"token file {path}", InputError, LONGEST_TOKEN_FILE).strip()

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, parts.port, timeout=self.timeout_s)
        trusted = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        return http.client.HTTPSConnection(host, parts.port, timeout=self.timeout_s, context=trusted)
