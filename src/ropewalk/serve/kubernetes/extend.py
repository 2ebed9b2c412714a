"""Answers kube-scheduler: which nodes a pod may have, which of them is its own; binds it where that is asked for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from ropewalk.errors import InputError
from ropewalk.serve.kubernetes.api_server import ApiServer, ApiServerFailed
from ropewalk.serve.kubernetes.extender import (
    ExtenderArgs,
    binding_result,
    filter_error,
    filter_result,
    priorities,
    read_binding,
    read_candidates,
)
from ropewalk.serve.kubernetes.gang import ACTOR, PodGang, find_gang, gang_of_answer, own_server, submission
from ropewalk.serve.kubernetes.pods import Pod
from ropewalk.serve.operation import Bind, Operation
from ropewalk.serve.outcome import Refused
from ropewalk.serve.state import State
from ropewalk.serve.writer import Answer, Writer

REMEMBERED = 65536
"""Pods between filter and bind whose job is known without asking again."""
Found = TypeVar("Found")


class Extender:
    """One for all requests of a service; a job is submitted once, however many of its pods come at the same time."""

    def __init__(self, writer: Writer, resource: str = "nvidia.com/gpu", api_server: ApiServer | None = None) -> None:
        self._writer, self._resource, self._api_server = writer, resource, api_server
        self._one = asyncio.Lock()
        self._pods: OrderedDict[str, Pod] = OrderedDict()

    async def filter(self, document: Any) -> dict[str, Any]:
        """ExtenderFilterResult for ExtenderArgs; what is wrong with a request is said in `Error`."""
        try:
            asked = read_candidates(document, self._resource)
            if not asked.pod.gpus:
                return filter_result(asked, asked.nodes, "")
            self._remember(asked.pod)
            gang = await self._gang(asked.pod)
        except InputError as problem:
            return filter_error(f"ropewalk: {problem}")
        if not gang.servers:
            return filter_result(asked, (), f"ropewalk: job {gang.id} waits: {gang.waits}")
        return filter_result(asked, gang.servers, f"ropewalk: not one of the servers of job {gang.id}")

    async def prioritize(self, document: Any) -> list[dict[str, Any]]:
        """HostPriorityList for ExtenderArgs: ranks in the order of the reserved links."""
        asked = read_candidates(document, self._resource)
        return priorities(asked.nodes, await self._own(asked))

    async def bind(self, document: Any) -> dict[str, str]:
        """ExtenderBindingResult for ExtenderBindingArgs: only a node of the job's own."""
        try:
            binding = read_binding(document)
            if self._api_server is None:
                return binding_result("ropewalk was started without --kubernetes-api: leave bindVerb out")
            pod = self._pods.get(binding.uid)
            if pod is not None:
                await self._check_node(pod, binding.node)
            await asyncio.to_thread(self._api_server.bind, binding)
        except (InputError, ApiServerFailed) as problem:
            return binding_result(f"ropewalk: {problem}")
        return binding_result()

    async def _check_node(self, pod: Pod, node: str) -> None:
        gang = await self._read(lambda state: find_gang(state, pod))
        if gang is None or node not in gang.servers:
            whose = "has ended" if gang is None else f"is job {gang.id}, which has other servers"
            raise Refused("conflict", f"pod {pod.name} may not run on {node}: its job {whose}", "schedule it again")
        await self._apply(Bind(gang.id, f"kubernetes:{pod.gang}"))

    async def _own(self, asked: ExtenderArgs) -> str | None:
        gang = await self._read(lambda state: find_gang(state, asked.pod))
        if gang is None:
            return None
        size = await self._read(lambda state: state.plant.gpus_per_server)
        return own_server(asked.pod, gang.servers, size)

    async def _gang(self, pod: Pod) -> PodGang:
        """The job of a pod, submitted if it does not exist."""
        async with self._one:
            known = await self._read(lambda state: find_gang(state, pod))
            if known is not None:
                return known
            return gang_of_answer((await self._apply(submission(pod))).document)

    def _remember(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        while len(self._pods) > REMEMBERED:
            self._pods.popitem(last=False)

    async def _read(self, function: Callable[[State], Found]) -> Found:
        return await asyncio.wrap_future(self._writer.read(lambda controller: function(controller.state)))

    async def _apply(self, operation: Operation) -> Answer:
        return await asyncio.wrap_future(self._writer.submit(operation, actor=ACTOR))
