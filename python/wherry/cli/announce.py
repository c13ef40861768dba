# SPDX-License-Identifier: Apache-2.0
"""`wherry agent announce`: announces this machine's agent in etcd, for wherry.dataset(..., agents="etcd:...")."""

from __future__ import annotations

import signal
import socket
from typing import Annotated

import typer

from wherry.cli.output import note
from wherry.cli.session import AgentOption, Place, locate
from wherry.cli.session import announce as announce_agent

_LOOPBACK = ("grpc://127.", "grpc://localhost", "grpc://[::1]")


def announce(
    place: Annotated[
        str, typer.Argument(metavar="PLACE", help="etcd:http://HOST:PORT/PREFIX. One prefix for each group of agents.")
    ],
    name: Annotated[str | None, typer.Option(help="The agent's name there. Default: the machine's.")] = None,
    of: Annotated[
        int | None,
        typer.Option(min=1, help="Number of agents in the group: with fewer of them there, readers get an error."),
    ] = None,
    ttl: Annotated[
        int, typer.Option(min=2, max=3600, help="Seconds after which the entry of a dead machine goes.")
    ] = 10,
    agent: AgentOption = None,
) -> None:
    """Announce the agent of this machine in etcd, until the agent ends, or until Ctrl-C.

    The entry contains only the path of the session file, no address and no token. A reader needs that file at the same
    path.

    Examples:

      wherry agent announce etcd:http://127.0.0.1:2379/wherry/lab

      wherry agent announce etcd:http://10.0.0.9:2379/wherry/lab --name node0 --of 4
    """
    where = Place.parse(place)
    session = locate(agent)
    if session.flight is not None and session.flight.startswith(_LOOPBACK):
        note(f"only this machine reaches {session.flight}: start the agent with --flight HOST:PORT for others")

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, end)
    try:
        announce_agent(session, where, name or socket.gethostname(), of, ttl, note)
    finally:
        signal.signal(signal.SIGTERM, before)
