# SPDX-License-Identifier: Apache-2.0
"""`wherry run`: the part of the command line that starts ranks."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer


class Placement(enum.StrEnum):
    """Where the messages of a job are routed."""

    inline = "inline"
    shared = "shared"
    host = "host"
    dpu = "dpu"


def add_to(app: typer.Typer) -> None:
    """Gives `app` these commands."""
    program_follows = {"allow_interspersed_args": False}
    app.command("run", context_settings=program_follows)(run_job)


def run_job(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The same for every rank.")],
    nodes: Annotated[int, typer.Option(min=1, max=4096, help="Nodes that this machine plays.")] = 1,
    ranks_per_node: Annotated[int, typer.Option(min=1, max=4096, help="Processes on each of them.")] = 1,
    placement: Annotated[
        Placement,
        typer.Option(
            help="Who routes messages: inline (the ranks themselves), shared (an agent on the ranks' cores), host (an "
            "agent on a core of its own), dpu (an agent on the SmartNIC, see --agent)."
        ),
    ] = Placement.inline,
    netns: Annotated[
        bool, typer.Option("--netns", help="A network namespace for each node: between nodes, TCP. Needs root.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds after which the job is ended.")] = None,
    cores: Annotated[str, typer.Option(metavar="LIST", help="Cores to use, as 0-3,6; auto: all.")] = "auto",
    agent: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="With dpu: session file of a node's agent, once for each node."),
    ] = None,
    statistics: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where each rank leaves rank-N.json: counts, times, cache misses."),
    ] = None,
) -> None:
    """Start a program as the ranks of a job: NODES times RANKS_PER_NODE processes that send each other messages.

    Ranks call wherry::route::Runtime::start() and find each other. Without --netns all share this machine's memory;
    shared and host start an agent for each node, through which its messages go. Lines of output begin with [rank].
    Rank 0 gets standard input unless that is a terminal. When a rank or an agent dies, the others are told, and ended;
    the exit status is that of the first one that failed, 124 after --timeout, 130 after Ctrl-C.

    Examples:

      wherry run --nodes 2 --ranks-per-node 2 -- ./histogram 20

      wherry run --nodes 4 --placement host -- ./transport mesh.toml

      wherry run --nodes 2 --netns --placement shared -- ./triangles graph.mtx      # as root

      WHERRY_ROUTE_BUFFER_BYTES=8192 wherry run --ranks-per-node 2 --cores 0,1 -- ./histogram 24
    """
    from wherry import launcher

    job = launcher.Job(
        program=program,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        placement=placement.value,
        netns=netns,
        timeout=timeout,
        cores=cores,
        agents=agent or [],
        statistics=statistics,
    )
    raise typer.Exit(launcher.run(job))
