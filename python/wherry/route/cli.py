# SPDX-License-Identifier: Apache-2.0
"""The commands of route: `wherry run`, `advise` and `bench route`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wherry.cli import (
    AgentReading,
    App,
    JsonFileOption,
    Meter,
    OnlyOption,
    TopPart,
    check_experiments,
    into,
    note,
    plain_table,
    progress,
    rate_text,
    show_bench,
)
from wherry.units import bytes_text, counted, number_text

if TYPE_CHECKING:
    from wherry.route.advise import Advice
    from wherry.route.calibration import Calibration


class Placement(enum.StrEnum):
    """The placements: which processor routes a job's messages."""

    inline = "inline"
    shared = "shared"
    host = "host"
    dpu = "dpu"


def _directory(text: str) -> Path:
    if not text:  # because Path("") would be the current directory
        raise typer.BadParameter("the name of the directory is empty")
    return Path(text)


def add_to(app: App, benches: App) -> None:
    """Adds these commands to `app` and `wherry bench`."""
    program_follows = {"allow_interspersed_args": False}
    app.command("run", context_settings=program_follows)(run_job)
    app.command("run-part", hidden=True)(run_part_of_job)
    app.command("advise", context_settings=program_follows)(advise_job)
    benches.command("route")(bench)


def agent_top(reading: AgentReading, meter: Meter) -> TopPart:
    """The part "messages" of `wherry top`: routed messages, and the reasons why buffers were passed on."""
    if not reading.metrics:
        return TopPart({"route": None}, [])
    figures: dict[str, Any] = {
        "jobs": int(reading.value("wherry_route_jobs")),
        "ranks": int(reading.value("wherry_route_ranks")),
        "buffer_bytes": int(reading.value("wherry_route_buffer_bytes")),
    }
    for name in ("messages", "bytes", "transfers", "blocked"):
        counter = f"wherry_route_{name}_total"
        figures |= {f"{name}_total": int(reading.value(counter)), f"{name}_per_second": reading.rate(meter, counter)}
    flushes: dict[str, dict[str, Any]] = {}
    for cause in ("full", "idle", "timeout", "explicit"):
        counter = f'wherry_route_flushes_total{{cause="{cause}"}}'
        flushes[cause] = {"total": int(reading.value(counter)), "per_second": reading.rate(meter, counter)}
    figures["flushes"] = flushes
    if not figures["jobs"] and not figures["messages_total"]:
        return TopPart({"route": figures}, ["no job routes its messages through this agent"])
    of_jobs = f"{counted(figures['jobs'], 'job')}, {counted(figures['ranks'], 'rank')}"
    title = f"Messages: {of_jobs}, {bytes_text(figures['buffer_bytes'])} of buffers"
    causes = [f"handed on {cause}" for cause in flushes]
    table = plain_table(title, ("",), ("messages", "bytes", "transfers", "blocked", *causes))
    counters = ("messages", "bytes", "transfers", "blocked")
    table.add_row(
        "now",
        *(rate_text(figures[f"{name}_per_second"], of_bytes=name == "bytes") for name in counters),
        *(rate_text(flush["per_second"]) for flush in flushes.values()),
    )
    table.add_row(
        "in all",
        *((bytes_text if name == "bytes" else number_text)(figures[f"{name}_total"]) for name in counters),
        *(number_text(flush["total"]) for flush in flushes.values()),
    )
    return TopPart({"route": figures}, [table])


NodesOption = Annotated[int, typer.Option(min=1, max=4096, help="Number of nodes to simulate on this machine.")]
RanksOption = Annotated[int, typer.Option(min=1, max=4096, help="Number of processes on each node.")]
TimeoutOption = Annotated[float | None, typer.Option(min=0.001, help="Seconds after which the job is ended.")]
CoresOption = Annotated[str, typer.Option(metavar="LIST", help="Cores to use, as 0-3,6; auto: all.")]
AgentsOption = Annotated[
    list[Path] | None,
    typer.Option("--agent", metavar="FILE", help="With dpu: session file of a node's agent, once for each node."),
]
PlacementOption = Annotated[
    Placement,
    typer.Option(
        help="What routes messages: inline (the ranks themselves), shared (an agent on the ranks' cores), host (an "
        "agent on a core of its own), dpu (an agent on the SmartNIC, see --agent)."
    ),
]


def run_job(
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The program and its arguments, the same for every rank."),
    ],
    nodes: NodesOption = 1,
    ranks_per_node: RanksOption = 1,
    placement: PlacementOption = Placement.inline,
    netns: Annotated[
        bool, typer.Option("--netns", help="Give each node a network namespace, and use TCP between nodes. Needs root.")
    ] = False,
    timeout: TimeoutOption = None,
    cores: CoresOption = "auto",
    agent: AgentsOption = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Machines that play a node each: a,b, or a=10.0.0.1,b=10.0.0.2 (where the others reach it), or a file "
            "with one a line. Reached by ssh, without passwords; Wherry and the program are at the same place there.",
        ),
    ] = None,
    rsh: Annotated[
        str, typer.Option(metavar="COMMAND", help="With --hosts: ssh and its options, or what understands the same.")
    ] = "ssh",
    statistics: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=_directory,
            help="Directory in which each rank writes rank-N.json: counts, times, cache misses.",
        ),
    ] = None,
) -> None:
    """Start a program as the ranks of a job: NODES times RANKS_PER_NODE processes that send messages to each other.

    Ranks call wherry::route::Runtime::start() to find each other. Without --netns all ranks share this machine's
    memory. The placements shared and host start an agent for each node, which routes the node's messages. Lines of
    output begin with [rank]. Rank 0 gets standard input unless that is a terminal. When a rank or an agent dies, the
    launcher notifies the others and ends them. The exit status is that of the first process that failed, 124 after
    --timeout, 130 after Ctrl-C. With --hosts each machine is a node. Ranks then get this command's variables WHERRY_*,
    UCX_* and OMP_*, and no standard input.

    Examples:

      wherry run --nodes 2 --ranks-per-node 2 -- build/release/apps/histogram

      wherry run --nodes 4 --placement host -- build/release/apps/transport --particles 1e5

      wherry run --nodes 2 --netns --placement shared -- build/release/apps/triangle --rows 1e4   # as root

      WHERRY_ROUTE_BUFFER_BYTES=8192 wherry run --ranks-per-node 2 --cores 0,1 -- build/release/apps/histogram

      wherry run --hosts node1,node2 --ranks-per-node 8 --placement host -- build/release/apps/histogram
    """
    from wherry.route import launcher
    from wherry.route.hosts import parse_hosts

    machines = parse_hosts(hosts) if hosts is not None else []
    job = launcher.Job(
        program=program,
        hosts=machines,
        rsh=rsh,
        nodes=len(machines) if machines and nodes == 1 else nodes,
        ranks_per_node=ranks_per_node,
        placement=placement.value,
        netns=netns,
        timeout=timeout,
        cores=cores,
        agents=agent or [],
        statistics=statistics,
    )
    raise typer.Exit(launcher.run(job))


def run_part_of_job() -> None:
    """Run a host's part of a job. `wherry run --hosts` starts this command on each host."""
    from wherry.route import part

    raise typer.Exit(part.run_part())


def advise_job(
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The program and its arguments, the same for every rank."),
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
    """Run a program like `wherry run`, and report which processor should route its messages.

    The command prints three results: the program's ratio of memory accesses to communication (paper 001, section 5.0.1:
    last-level cache misses times the line size, divided by routed bytes); whether the program is
    communication-dominated, balanced or host-dominated; and the placement that follows. If misses cannot be counted, it
    prints the reason and an estimate. If the program fails, the exit status is the program's.

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
    where = f"{counted(advice.ranks, 'rank')} on {counted(advice.nodes, 'node')}"
    where += f", placement {advice.placement}, {advice.seconds:.3g} s"
    limits = advice.thresholds
    about = "at most about " if advice.bound else ""
    lines = [
        ("job", where),
        (
            "messages",
            f"{advice.messages:,}, {advice.routed_bytes / 1e6:.3f} MB routed, {advice.average_transfer:,.0f} bytes in "
            f"the average transfer, blocked {100 * advice.blocked_share:.1f} % of the time",
        ),
        ("memory", f"{advice.memory_bytes / 1e6:.3f} MB: {advice.how}"),
        ("ratio", f"{about}{advice.ratio:.3g} bytes of memory for each byte routed"),
        (
            "category",
            f"{advice.category.value} (below {limits['communication_below']:.2g}: communication-dominated; above "
            f"{limits['host_above']:.2g}: host-dominated; {limits['source']})",
        ),
        *(("advice" if i == 0 else "", text) for i, text in enumerate(advice.what_to_do)),
    ]
    if not console.is_terminal:  # one line for each fact, for programs that search for a line
        for label, text in lines:
            console.print(f"{label:15}{text}", markup=False)
        return
    table = Table.grid(padding=(0, 6))  # on a terminal, long texts wrap beside their label, not under it
    for label, text in lines:
        table.add_row(label, Text(text))
    Console(highlight=False).print(table)


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
    """Measure messages between ranks on two cores of this machine, and compare them with plain copies, a hand-written
    exchange and peers. Measure five applications by placement (paper 001, table 2). A missed target is a result: the
    exit status is 0.

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
    show_bench(result, json_file, quick=quick, only=experiments)
