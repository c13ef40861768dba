# SPDX-License-Identifier: Apache-2.0
"""`wherry agent`: start, stop and inspect the agent of this machine."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from wherry import services
from wherry.cli.announce import announce
from wherry.cli.help import App
from wherry.cli.output import note, out
from wherry.cli.session import (
    AgentOption,
    AgentPart,
    SessionStatus,
    locate,
    read_metrics,
    replace_process,
    session_path,
    sessions,
    start_agent,
    stop_agent,
)
from wherry.errors import Unavailable
from wherry.units import bytes_text, number_text, span_text, time_text


def start(
    budget: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory for data, as 512MiB or 4GiB.")] = None,
    core: Annotated[
        int | None,
        typer.Option(help="Core of the data thread. Give the other cores to the application. -1: not pinned."),
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="TCP address for clients of other machines, or off.")
    ] = None,
    flight: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Arrow Flight, or off.")] = None,
    metrics: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Metrics over HTTP, or off.")] = None,
    transport: Annotated[str | None, typer.Option(help="auto, shm, tcp or rdma.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file. Options on the command line override it.")
    ] = None,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log. Default: beside the session file.")
    ] = None,
    session_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default: $WHERRY_SESSION, or the user's.")
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay attached; Ctrl-C ends the agent.")] = False,
) -> None:
    """Start the agent in the background (or, with --foreground, here) and wait until it is ready.

    Examples:

      wherry agent start

      wherry agent start --budget 512MiB --core 1 --flight 127.0.0.1:0

      wherry agent start --foreground --config /etc/wherry.toml
    """
    where = session_file or session_path()
    flags: dict[str, object] = {
        "--budget": budget,
        "--core": core,
        "--listen": listen,
        "--flight": flight,
        "--metrics": metrics,
        "--transport": transport,
        "--config": config,
        "--log-file": log_file,
    }
    arguments = [text for flag, value in flags.items() if value is not None for text in (flag, str(value))]
    if foreground:
        replace_process(where, arguments)
    session = start_agent(where, arguments, said=note)
    note(f"agent started: pid {session.pid}, {session.address}, session file {session.path}")


def stop(
    agent: AgentOption = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for it to go.")] = 10.0,
) -> None:
    """End the agent: it completes the transfers in flight, notifies its clients, and exits.

    Example:

      wherry agent stop
    """
    session = locate(agent)
    stop_agent(session, timeout)
    note(f"agent stopped: pid {session.pid}")


def status(
    agent: AgentOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """Show addresses, clients, streams and metrics of the running agent.

    For each client it shows the transports, and whether a test at connection proved that gets from the client's memory
    are one-sided. If the metrics are off or do not answer, clients and counters are unknown.

    Examples:

      wherry agent status

      wherry agent status --json | jq .streams
    """
    session = locate(agent)
    unknown = None if session.metrics else "the agent serves no metrics"
    parts: list[AgentPart] = [part.agent_status(session) for part in services.parts("cli") if _has_status(part)]
    metrics: dict[str, float] = {}
    try:
        metrics = read_metrics(session)
    except Unavailable as error:  # addresses and the services' parts do not come from the metrics
        unknown = str(error)
    clients = sessions(metrics)
    if as_json:
        document: dict[str, object] = {
            "pid": session.pid,
            "wherry": session.wherry,
            "address": f"{session.address}",
            "session_file": str(session.path),
            "flight": session.flight,
            "metrics_url": session.metrics,
            "sessions": [dataclasses.asdict(client) for client in clients],
        }
        for part in parts:
            document |= part.document
        print(json.dumps(document | {"metrics": metrics, "metrics_missing": unknown}, indent=1))
        return
    console = out()
    started = session.written()
    up = f", up {span_text(time.time() - started)}" if started is not None else ""
    console.print(f"agent {session.wherry}, pid {session.pid}, {session.address}{up}", markup=False)
    console.print(f"session file  {session.path}")
    console.print(f"flight        {session.flight or 'off'}")
    console.print(f"metrics       {session.metrics or 'off'}")
    console.print()
    console.print(_sessions_table(clients) if unknown is None else escape(f"clients: unknown: {unknown}"))
    for part in parts:
        console.print()
        console.print(part.table)
    if metrics:
        table = Table("metric", title="Metrics", title_justify="left", box=None)
        table.add_column("value", justify="right")
        for name, value in metrics.items():
            if not name.startswith("wherry_session_") and "_bucket{" not in name:  # shown above; for machines
                table.add_row(escape(name), metric_text(name, value))
        console.print()
        console.print(table)


def metric_text(name: str, value: float) -> str:
    """A metric's value with its unit, which is the end of its name, as in Prometheus."""
    base = name.partition("{")[0].removesuffix("_total")
    if base.endswith("_bytes"):
        return bytes_text(value)
    if base.endswith("_nanoseconds"):
        return time_text(value * 1e-9)
    return time_text(value) if base.endswith("_seconds") else number_text(value)


def _has_status(part: object) -> bool:
    return hasattr(part, "agent_status")


def _sessions_table(clients: list[SessionStatus]) -> Table | str:
    if not clients:
        return "no clients"
    table = Table("client", "pid", "gets", "transports", box=None)
    table.add_column("bytes moved", justify="right")
    for client in clients:
        gets = client.heap if client.heap == client.allocated else f"{client.heap}, allocated {client.allocated}"
        if client.mapped:
            gets += ", mapped"
        table.add_row(escape(client.name), str(client.pid), gets, escape(client.transports), bytes_text(client.bytes))
    return table


def add_to(app: App) -> None:
    """Adds the group `agent` to `app`."""
    group = App(no_args_is_help=True, help="Start, stop and look at the agent of this machine.")
    group.command("start")(start)
    group.command("stop")(stop)
    group.command("status")(status)
    group.command("announce")(announce)
    app.add_typer(group, name="agent")
