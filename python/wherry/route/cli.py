# SPDX-License-Identifier: Apache-2.0
"""The commands of route: `wherry run`, `advise` and `bench route`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from wherry.cli import App, JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench

if TYPE_CHECKING:
    from wherry.route.advise import Advice
    from wherry.route.calibration import Calibration


class Placement(enum.StrEnum):
    """Where the messages of a job are routed."""

    inline = "inline"
    shared = "shared"
    host = "host"
    dpu = "dpu"


def _directory(text: str) -> Path:
    if not text:  # Path("") would be the current directory
        raise typer.BadParameter("the name of the directory is empty")
    return Path(text)


def add_to(app: App, benches: App) -> None:
    """Gives `app` and `wherry bench` these commands."""
    program_follows = {"allow_interspersed_args": False}
    app.command("run", context_settings=program_follows)(run_job)
    app.command("advise", context_settings=program_follows)(advise_job)
    benches.command("route")(bench)


NodesOption = Annotated[int, typer.Option(min=1, max=4096, help="Nodes that this machine plays.")]
RanksOption = Annotated[int, typer.Option(min=1, max=4096, help="Processes on each of them.")]
TimeoutOption = Annotated[float | None, typer.Option(min=0.001, help="Seconds after which the job is ended.")]
CoresOption = Annotated[str, typer.Option(metavar="LIST", help="Cores to use, as 0-3,6; auto: all.")]
AgentsOption = Annotated[
    list[Path] | None,
    typer.Option("--agent", metavar="FILE", help="With dpu: session file of a node's agent, once for each node."),
]
PlacementOption = Annotated[
    Placement,
    typer.Option(
        help="Who routes messages: inline (the ranks themselves), shared (an agent on the ranks' cores), host (an "
        "agent on a core of its own), dpu (an agent on the SmartNIC, see --agent)."
    ),
]


def run_job(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The same for every rank.")],
    nodes: NodesOption = 1,
    ranks_per_node: RanksOption = 1,
    placement: PlacementOption = Placement.inline,
    netns: Annotated[
        bool, typer.Option("--netns", help="A network namespace for each node: between nodes, TCP. Needs root.")
    ] = False,
    timeout: TimeoutOption = None,
    cores: CoresOption = "auto",
    agent: AgentsOption = None,
    statistics: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=_directory,
            help="Where each rank leaves rank-N.json: counts, times, cache misses.",
        ),
    ] = None,
) -> None:
    """Start a program as the ranks of a job: NODES times RANKS_PER_NODE processes that send each other messages.

    Ranks call wherry::route::Runtime::start() and find each other. Without --netns all share this machine's memory;
    shared and host start an agent for each node, through which its messages go. Lines of output begin with [rank].
    Rank 0 gets standard input unless that is a terminal. When a rank or an agent dies, the others are told, and ended;
    the exit status is that of the first one that failed, 124 after --timeout, 130 after Ctrl-C.

    Examples:

      wherry run --nodes 2 --ranks-per-node 2 -- build/release/apps/histogram

      wherry run --nodes 4 --placement host -- build/release/apps/transport --particles 1e5

      wherry run --nodes 2 --netns --placement shared -- build/release/apps/triangle --rows 1e4   # as root

      WHERRY_ROUTE_BUFFER_BYTES=8192 wherry run --ranks-per-node 2 --cores 0,1 -- build/release/apps/histogram
    """
    from wherry.route import launcher

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


def advise_job(
    program: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The same for every rank.")
    ] = None,
    nodes: NodesOption = 1,
    ranks_per_node: RanksOption = 1,
    placement: PlacementOption = Placement.inline,
    timeout: TimeoutOption = None,
    cores: CoresOption = "auto",
    agent: AgentsOption = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="The same, for programs.")] = None,
    thresholds: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The profile that --calibrate wrote to, instead of this machine's own."),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure this machine's thresholds: a minute, nothing else running. --json: into that profile.",
        ),
    ] = False,
) -> None:
    """Run a program as `wherry run` does, and say where its messages are best routed.

    Prints the program's ratio of memory accesses to communication (paper 001, section 5.0.1: last-level cache misses
    times the line's size, over bytes routed), whether it is communication-dominated, balanced or host-dominated, and
    which placement follows. Where misses cannot be counted, it says why and estimates. The exit status is the program's
    when that fails.

    Examples:

      wherry advise --nodes 2 -- build/release/apps/histogram --updates 4e6

      wherry advise --calibrate --json here.json

      wherry advise --nodes 2 --placement host --json advice.json -- build/release/apps/transport --particles 1e5
    """
    from wherry.route import advise, calibration, launcher
    from wherry.route.pinning import parse_cores

    console = Console(soft_wrap=True, highlight=False)
    if calibrate:
        if program:
            raise typer.BadParameter("it runs a kernel of its own: name no program", param_hint="--calibrate")
        measured = calibration.measure(parse_cores(cores))
        if json_file:
            with into(json_file):
                measured.write(json_file)
        _show_calibration(measured, console)
        return
    if not program:
        raise typer.BadParameter("name a program, or --calibrate", param_hint="PROGRAM")
    job = launcher.Job(
        program=program,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        placement=placement.value,
        timeout=timeout,
        cores=cores,
        agents=agent or [],
    )
    status, advice = advise.run(job, calibration.load(thresholds) if thresholds else calibration.find(note))
    if advice is None:
        typer.echo("wherry advise: the program failed, so there is no advice", err=True)
        raise typer.Exit(status)
    if json_file:
        with into(json_file):
            advice.write(json_file)
    _show_advice(advice, console)


def _show_advice(advice: Advice, console: Console) -> None:
    where = f"{advice.ranks} ranks on {advice.nodes} nodes, placement {advice.placement}, {advice.seconds:.3g} s"
    limits = advice.thresholds
    about = "at most about " if advice.bound else ""
    for text in (
        f"{where}: {advice.messages} messages, {advice.routed_bytes / 1e6:.3f} MB routed, "
        f"{advice.average_transfer:.0f} bytes in the average transfer, blocked {100 * advice.blocked_share:.1f} % of "
        "the time",
        f"memory         {advice.memory_bytes / 1e6:.3f} MB: {advice.how}",
        f"ratio          {about}{advice.ratio:.3g} bytes of memory for each byte routed",
        f"category       {advice.category.value} (below {limits['communication_below']:.2g}: communication-dominated; "
        f"above {limits['host_above']:.2g}: host-dominated; {limits['source']})",
        *advice.what_to_do,
    ):
        console.print(text, markup=False)


def _show_calibration(calibration: Calibration, console: Console) -> None:
    table = Table(box=None, title="Two ranks on two cores, ns for a message of 8 bytes", title_justify="left")
    for name in ("ratio", "counted", "inline", "shared", "host", "host over shared"):
        table.add_column(name, justify="right")
    for point in calibration.curve:
        counted = "-" if point.counted_ratio is None else f"{point.counted_ratio:.3g}"
        figures = [f"{ns:.1f}" for ns in (point.inline_ns, point.shared_ns, point.host_ns)]
        speedup = f"{point.speedup:.2f} \\[{point.speedup_min:.2f}, {point.speedup_max:.2f}]"
        table.add_row(f"{point.ratio:.3g}", counted, *figures, speedup)
    console.print(table)
    for name, value in (
        ("communication_below", calibration.communication_below),
        ("host_above", calibration.host_above),
    ):
        least, most = calibration.spread[name]
        console.print(f"{name:20} {value:.3g} [{least:.3g}, {most:.3g}]", markup=False)
    console.print(f"a line touched at random takes {calibration.line_ns:.1f} ns", markup=False)


def bench(
    json_file: JsonFileOption,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer: a look, not a measurement.")] = False,
    only: OnlyOption = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:TIMES]=COMMAND",
            help="A peer's histogram, to take turns with. In the command {lg} becomes log2 of the counters and {n} the "
            'updates a rank; its last line of output is {"mups": M updates/s in total}. With TIMES there is a bar: how '
            "many times faster Wherry must be. May be repeated.",
        ),
    ] = None,
) -> None:
    """Messages between ranks on this machine's two cores, against plain copies, a hand-written exchange and peers; and
    five applications by placement (paper 001, table 2). A bar that is missed is a result: the exit status is 0.

    Examples:

      wherry bench route --json build/bench-route.json

      wherry bench route --json /tmp/quick.json --quick --only histogram --only latency

      wherry bench route --json b.json --only histogram --peer "other:4=./other-histogram {lg} {n}"
    """
    from wherry.route.bench.run import run
    from wherry.route.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, peers=peer or [], progress=progress())
    show_bench(result, json_file)
