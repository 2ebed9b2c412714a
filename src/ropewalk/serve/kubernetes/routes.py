"""What kube-scheduler asks of an extender: filter, prioritize, bind. Preemption is not offered."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, post

from ropewalk.serve.http.ask import AnyRequest, body_of, service_of
from ropewalk.serve.http.routes import ROLE
from ropewalk.serve.kubernetes.extend import Extender

SUBMITS = {ROLE: "submit"}


@post("/v1/kubernetes/filter", opt=SUBMITS, name="post-kubernetes-filter", status_code=200)
async def filter_nodes(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Nodes that a pod may use (ExtenderArgs -> ExtenderFilterResult)."""
    return _json(await extender_of(request).filter(body_of(request)))


@post("/v1/kubernetes/prioritize", opt=SUBMITS, name="post-kubernetes-prioritize", status_code=200)
async def prioritize(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The node of a pod's rank first (ExtenderArgs -> HostPriorityList)."""
    return _json(await extender_of(request).prioritize(body_of(request)))


@post("/v1/kubernetes/bind", opt=SUBMITS, name="post-kubernetes-bind", status_code=200)
async def bind(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Bind a pod to a node of its job (ExtenderBindingArgs -> ExtenderBindingResult)."""
    return _json(await extender_of(request).bind(body_of(request)))


def extender_of(request: AnyRequest) -> Extender:
    """The extender of the service; one with the usual settings where none was configured."""
    shared = request.app.state
    if shared.get("kubernetes") is None:
        shared["kubernetes"] = Extender(service_of(request).writer)
    found: Extender = shared["kubernetes"]
    return found


def _json(document: Any) -> Response[bytes]:
    return Response(msgspec.json.encode(document), media_type="application/json")


handlers = [filter_nodes, prioritize, bind]
