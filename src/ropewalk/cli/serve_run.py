"""Starting and ending the service: everything is checked before the first request is taken."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from ropewalk.cli.cluster_plant import PlantOptions, plant_of
from ropewalk.cli.serve_beside import check_beside, schedulers
from ropewalk.cli.serve_kubernetes_options import KubernetesOptions
from ropewalk.cli.serve_options import ListenOptions, ServeRunOptions
from ropewalk.cli.serve_pages import pages
from ropewalk.cli.serve_rule_options import RuleOptions, rules_for
from ropewalk.cli.serve_slurm_options import SlurmOptions
from ropewalk.errors import InputError
from ropewalk.extras import how_to_install

if TYPE_CHECKING:
    from ropewalk.serve.http.logs import LineLog
    from ropewalk.serve.http.server import Listening
    from ropewalk.serve.http.settings import HttpSettings
    from ropewalk.serve.store import Store
    from ropewalk.serve.writer import Writer
    from ropewalk.tenancy.plant import Plant

SWITCH_S = 0.0005
"""How long a thread keeps the interpreter: short, because the writer and the event loop take turns."""

COLLECT = (50_000, 20, 50)
"""Thresholds of the garbage collector: requests leave few cycles, and a full collection holds everybody up."""


def lacking(problem: ModuleNotFoundError) -> InputError:
    """A package of the extra is not installed."""
    return InputError(f"the service needs additional packages ({problem.name} is missing): {how_to_install('serve')}")


def serve(
    run: ServeRunOptions,
    listen: ListenOptions,
    rules: RuleOptions,
    slurm: SlurmOptions,
    kubernetes: KubernetesOptions,
    cluster: PlantOptions,
) -> int:
    """Run the service; answers the exit code."""
    try:
        from ropewalk.serve.http.application import LOCAL_NAMES, close, make_application, make_service
        from ropewalk.serve.http.logs import LineLog
        from ropewalk.serve.http.server import bound, check_openness, server_of
        from ropewalk.serve.store import open_store
        from ropewalk.serve.store.tokens import tokens
    except ModuleNotFoundError as problem:
        raise lacking(problem) from None
    rules.check()
    check_beside(slurm, kubernetes)
    listening, settings, plant = _checked(run, listen, cluster)
    with closing(LineLog(quiet=listen.quiet)) as log:
        with ExitStack() as leaving:
            store = open_store(run.url(), upgrade=run.upgrade)
            leaving.callback(store.close)
            active = sum(one.revoked is None for one in tokens(store))
            check_openness(listening, no_auth=settings.no_auth, tokens=active, socket_role=settings.socket_role)
            writer = opened(store, plant, run, lambda problem: end_without_a_commit(problem, log))
            sockets = bound(listening)
            listening = replace(listening, port=sockets[0].getsockname()[1] if sockets else listening.port)
            writer.start()
            leaving.callback(writer.close)
            warm(writer)
            _apply_changes(writer, run)
            on_devices = rules_for(rules, writer, log.say)
            service = make_service(writer, settings, log, on_devices)
            beside = schedulers(slurm, kubernetes, writer, log.say)
            service.beside = beside.metrics
            hosts = frozenset(LOCAL_NAMES | ({listening.host} if listening.host else set()))
            shown = pages(wanted=listen.pages)
            handlers, shared = (*beside.handlers, *shown.handlers), beside.shared | shown.shared
            app = make_application(service, hosts, handlers, shown.lifespan, **shared)

            def started() -> None:
                _say_where(writer, store, listening, active, settings)
                log.say("started", url=listening.url(), database=store.name, pid=os.getpid())

            server = server_of(app, listening, service.doors, log, lambda: close(service), started)
            _favour_short_requests()
            if on_devices is not None:
                on_devices.start()
                leaving.callback(on_devices.stop)
            beside.start()
            leaving.callback(beside.stop)
            server.run(sockets)
        log.say("ended")
    typer.echo("ropewalk serve: stopped; every acknowledged request is in the database", err=True)
    return 0


def _checked(
    run: ServeRunOptions, listen: ListenOptions, cluster: PlantOptions
) -> tuple[Listening, HttpSettings, Plant | None]:
    """What was typed, refused before a file is made."""
    from ropewalk.serve.http.server import check_certificate, check_openness

    listening, settings = listen.listening(), listen.settings()
    plant = plant_of(cluster) if cluster != PlantOptions() else None
    run.settings()
    run.retention()
    if listening.secure and listening.key is not None:
        check_certificate(listening)
    if run.is_new():
        check_openness(listening, no_auth=settings.no_auth, tokens=0, socket_role=settings.socket_role)
        if plant is None:
            raise no_cluster(run.url())
    return listening, settings, plant


def _favour_short_requests() -> None:
    """Settings of the interpreter for many short requests beside a thread that writes."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()  # what is there now stays: collections look at what comes after it
    gc.set_threshold(*COLLECT)


def opened(
    store: Store, plant: Plant | None, run: ServeRunOptions, fatal: Callable[[BaseException], None] | None = None
) -> Writer:
    """The writer of the store, which is about the plant that was described, or goes on with the one it has."""
    from ropewalk.serve.service import open_writer
    from ropewalk.tenancy.plant_differences import differences

    saved = store.load()
    if saved is None and plant is None:
        raise no_cluster(store.name)
    if saved is not None and plant is not None:
        found = differences(saved.plant, plant)
        if found and not run.replace_plant:
            raise InputError(
                f"{store.name} holds another cluster than the one described: {'; '.join(found)}: leave the "
                "description out to continue with it, name another --database, or give --replace-plant when no job "
                "waits or runs"
            )
        if found:
            _replace(store, plant, run.changes())
        plant = None
    return open_writer(store, plant, run.settings(), fatal=fatal, retention=run.retention())


def end_without_a_commit(problem: BaseException, log: LineLog) -> None:
    """What is in memory is ahead of what is on disk: only a new process can go on."""
    from ropewalk.serve.writer import EXIT_FAILED_COMMIT

    fact = str(getattr(problem, "orig", None) or problem).partition("\n")[0]
    log.say("commit-failed", "error", message=fact, exception="".join(traceback.format_exception(problem)))
    log.flush()
    typer.echo(
        f"ropewalk serve: ended, the database cannot be written ({fact}): every acknowledged request is in it; "
        "make room or bring it back, and start again",
        err=True,
    )
    os._exit(EXIT_FAILED_COMMIT)


def no_cluster(database: str) -> InputError:
    return InputError(
        f"{database} holds no cluster yet: describe it once, with --cluster FILE or --fabric leaf-spine:64x32x32"
    )


def warm(writer: Writer) -> None:
    """Load the kernels on a fork of the state, so that the first job does not wait for them."""
    from ropewalk.serve.controller import Controller
    from ropewalk.serve.operation import End, Submit
    from ropewalk.serve.outcome import Refused

    state = writer.read(lambda controller: controller.state.fork()).result()
    ahead = Controller(state)
    per_server, per_leaf = state.plant.gpus_per_server, int(state.plant.gpus_per_leaf.max())
    for gpus in dict.fromkeys((1, per_server, per_leaf, 2 * per_leaf)):
        try:
            job = ahead.apply(Submit("warm", gpus), state.now).answer["id"]
            ahead.apply(End(job), state.now)
        except Refused:
            continue


def _replace(store: Store, plant: Plant, changes: dict[str, Any]) -> None:
    """Another cluster, under settings that it knows: nothing is written where it does not."""
    saved = store.load()
    assert saved is not None
    if saved.jobs:
        some = ", ".join(job.id for job in saved.jobs[:8])
        raise InputError(
            f"the cluster cannot be replaced while jobs wait or run ({len(saved.jobs)}: {some}): end them first"
        )
    settings = replace(saved.settings, **changes)
    settings.check(plant)
    store.replace_plant(plant, settings)


def _apply_changes(writer: Writer, run: ServeRunOptions) -> None:
    """Settings that were typed and differ from those that were kept."""
    from ropewalk.serve.operation import ChangePolicy

    current = writer.read(lambda controller: controller.state.settings.as_document()).result()
    wanted = {name: value for name, value in run.changes().items() if current[name] != value}
    if wanted:
        writer.submit(ChangePolicy(**wanted), actor="command line").result()


def _say_where(writer: Writer, store: Store, listening: Listening, tokens: int, http: HttpSettings) -> None:
    """The first words: what is served, from where, to whom, and what to do next."""
    from ropewalk.cli.live_screen import jobs_said
    from ropewalk.serve import answers

    status = writer.read(lambda controller: answers.status(controller.state)).result()
    jobs, settings = status["jobs"], status["settings"]
    url = listening.url()
    say = typer.echo
    say(f"ropewalk serve: {status['plant']}, {status['gpus']['total']} GPUs, policy {settings['policy']}, queue "
        f"{settings['queue']}; {jobs_said(jobs)}")  # fmt: skip
    say(f"database: {store.name}")
    say(f"listening: {url}" + (f" and unix:{listening.socket}" if listening.socket and listening.host else ""))
    if http.no_auth:
        say("no authentication (--no-auth): every local user may do everything")
    elif tokens or http.socket_role is None:
        say(f"{tokens} token{'s' * (tokens != 1)} active; send one as `Authorization: Bearer rw_…`")
    if http.socket_role is not None:
        say(f"over the socket no token is needed: who can open it has the role {http.socket_role}")
    if listening.is_everywhere:
        url = replace(listening, host="NAME").url()
        say(f"try: ROPEWALK_SERVICE={url} ropewalk cluster status (NAME: of this machine, as in its certificate)")
    else:
        say(f"try: ROPEWALK_SERVICE={url} ropewalk cluster status")
    sys.stdout.flush()
