# SPDX-License-Identifier: Apache-2.0
"""The command line: `wherry agent`, `run`, `kv`, `streams`, `cat`, `bench`, `report`, `version`.

Results go to standard output, everything else to standard error. Exit status: 0 done, 1 failed, 2 wrong command line,
74 the result could not be written, 130 Ctrl-C; that of `wherry run` is the status of the job.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import markup
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wherry import _cli_cat, _cli_kv, _cli_output, _cli_route, bench_schema
from wherry._cli_cat import AgentOption
from wherry._cli_help import App
from wherry._cli_output import OUTPUT_LOST, OutputLost, note, out
from wherry.errors import Error, NotFound, Unavailable
from wherry.session import agent_process
from wherry.session.locate import locate
from wherry.session.metrics import SessionStatus, read_metrics, sessions
from wherry.system import paths
from wherry.system.os_errors import RESOURCES, at

if TYPE_CHECKING:
    from wherry.move import reader  # commands import it themselves: pyarrow and numpy take half of a start

app = App(
    name="wherry",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Takes data off the host CPU: an agent pulls it out of the application's memory, straight into Apache Arrow."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry agent start          an agent of this machine, in the background\n\n"
    "  wherry agent status         what it does\n\n"
    "  wherry streams              what it holds\n\n"
    "  wherry cat particles        read a stream, here, without a copy\n\n"
    "  wherry agent stop\n\n"
    "  wherry run --nodes 2 --ranks-per-node 2 -- build/release/apps/histogram    ranks and their messages\n\n"
    "  wherry kv up                a replicated key-value store\n\n"
    "Applications need no agent of their own: wherry.Session() finds the running one, or starts one for itself.",
)
agent_app = App(no_args_is_help=True, help="Start, stop and look at the agent of this machine.")
bench_app = App(no_args_is_help=True, help="Measure. Claims are ratios of things measured in the same run.")
app.add_typer(agent_app, name="agent")
app.add_typer(bench_app, name="bench")
_cli_route.add_to(app)
_cli_kv.add_to(app)

EXPECTED = (Error, FileNotFoundError, PermissionError, IsADirectoryError)
"""Errors whose message is all that a user needs; others are faults of Wherry and keep their traceback."""


@agent_app.command("start")
def agent_start(
    budget: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory for data, as 512MiB or 4GiB.")] = None,
    core: Annotated[int | None, typer.Option(help="Core of the data thread; give the application the others.")] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="TCP for clients of other machines; off: none.")
    ] = None,
    flight: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Arrow Flight, or off.")] = None,
    metrics: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Metrics over HTTP, or off.")] = None,
    transport: Annotated[str | None, typer.Option(help="auto, shm, tcp or rdma.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file; options here go before it.")] = None,
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
    where = session_file or paths.session_file()
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
        agent_process.replace_process(where, arguments)
    session = agent_process.start(where, arguments)
    note(f"agent started: pid {session.pid}, {session.address}, session file {session.path}")


@agent_app.command("stop")
def agent_stop(
    agent: AgentOption = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for it to go.")] = 10.0,
) -> None:
    """End the agent: it finishes the transfers in flight, tells its clients, and goes.

    Example:

      wherry agent stop
    """
    session = locate(agent)
    agent_process.stop(session, timeout)
    note(f"agent stopped: pid {session.pid}")


@agent_app.command("status")
def agent_status(
    agent: AgentOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """Addresses, clients, streams and metrics of the running agent.

    Of each client: which transports it uses, and whether gets from its memory were proved one-sided when it came. If
    metrics are off or do not answer, clients and counters are unknown.

    Examples:

      wherry agent status

      wherry agent status --json | jq .streams
    """
    from wherry.move import reader

    session = locate(agent)
    found = reader.streams(session)
    unknown = None if session.metrics else "the agent serves no metrics"
    metrics: dict[str, float] = {}
    try:
        metrics = read_metrics(session)
    except Unavailable as error:  # addresses and streams come from elsewhere
        unknown = str(error)
    clients = sessions(metrics)
    if as_json:
        document = {
            "pid": session.pid,
            "wherry": session.wherry,
            "address": f"{session.address}",
            "session_file": str(session.path),
            "flight": session.flight,
            "metrics_url": session.metrics,
            "sessions": [dataclasses.asdict(client) for client in clients],
            "streams": [dataclasses.asdict(stream) for stream in found],
            "metrics": metrics,
            "metrics_missing": unknown,
        }
        print(json.dumps(document, indent=1))
        return
    console = out()
    console.print(f"agent {session.wherry}, pid {session.pid}, {session.address}")
    console.print(f"session file  {session.path}")
    console.print(f"flight        {session.flight or 'off'}")
    console.print(f"metrics       {session.metrics or 'off'}")
    console.print()
    console.print(_sessions_table(clients) if unknown is None else markup.escape(f"clients: unknown: {unknown}"))
    console.print()
    console.print(_streams_table(found))
    if metrics:
        table = Table("metric", title="Metrics", title_justify="left", box=None)
        table.add_column("value", justify="right")
        for name, value in metrics.items():
            if not name.startswith("wherry_session_"):  # shown above
                table.add_row(markup.escape(name), f"{value:g}")
        console.print()
        console.print(table)


@app.command()
def streams(
    agent: AgentOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array, for programs.")] = False,
) -> None:
    """List the streams that the agent holds.

    Examples:

      wherry streams

      wherry streams --json | jq '.[].name'
    """
    from wherry.move import reader

    found = reader.streams(agent)
    if as_json:
        print(json.dumps([dataclasses.asdict(stream) for stream in found], indent=1))
    else:
        out().print(_streams_table(found))


def _sessions_table(clients: list[SessionStatus]) -> Table | str:
    if not clients:
        return "no clients"
    table = Table("client", "pid", "gets", "transports", box=None)
    table.add_column("bytes moved", justify="right")
    for client in clients:
        gets = client.heap if client.heap == client.allocated else f"{client.heap}, allocated {client.allocated}"
        if client.mapped:
            gets += ", mapped"
        table.add_row(
            markup.escape(client.name), str(client.pid), gets, markup.escape(client.transports), _bytes(client.bytes)
        )
    return table


def _streams_table(found: list[reader.StreamStatus]) -> Table | str:
    if not found:
        return "no streams yet"
    table = Table("stream", "strategy", "state", box=None)
    for name in ("frames held", "of", "bytes held", "bytes moved"):
        table.add_column(name, justify="right")
    failed = [
        f"{stream.name}: {stream.sink_errors} frames did not become files; the first: {stream.sink_error}"
        for stream in found
        if stream.sink_errors
    ]
    if failed:
        table.caption, table.caption_justify = escape("\n".join(failed)), "left"
    for stream in found:
        state = "open" if stream.open else "ended"
        counts = (
            str(stream.held_frames),
            str(stream.total_frames),
            _bytes(stream.held_bytes),
            _bytes(stream.total_bytes),
        )
        table.add_row(stream.name, stream.strategy, state, *counts)
    return table


def _bytes(number: int) -> str:
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


app.command()(_cli_cat.cat)


@bench_app.command("route")
def bench_route(
    json_file: Annotated[Path, typer.Option("--json", metavar="FILE", help="Where the results go.")],
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer: a look, not a measurement.")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="One experiment; may be repeated.")] = None,
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
    from wherry import _bench, _bench_route

    for name in only or []:
        if name not in _bench_route.EXPERIMENTS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(_bench_route.EXPERIMENTS)}", param_hint="--only")
    progress = Console(stderr=True, soft_wrap=True, highlight=False)
    with _cli_output.into(json_file):
        result = _bench_route.run(json_file, quick=quick, only=only or [], peers=peer or [], progress=progress)
    _bench.print_bench(result, out())
    note(f"results: {json_file}; `wherry report {json_file}` draws them")


@bench_app.command("kv")
def bench_kv(
    json_file: Annotated[Path, typer.Option("--json", metavar="FILE", help="Where the results go.")],
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and fewer: a look, not a measurement.")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="One experiment; may be repeated.")] = None,
) -> None:
    """The replicated key-value store: the RTL core in simulation beside paper 003's tables, its resources, our software
    nodes in turns with Redis (WAIT 1) and etcd, and what a killed leader costs. What cannot be measured here is left
    out, and said. A bar that is missed is a result: the exit status is 0.

    Examples:

      wherry bench kv --json build/bench-kv.json

      wherry bench kv --json /tmp/quick.json --quick --only software --only failover
    """
    from wherry import _bench, _bench_kv, bench_schema_kv

    for name in only or []:
        if name not in bench_schema_kv.EXPERIMENTS:
            names = ", ".join(bench_schema_kv.EXPERIMENTS)
            raise typer.BadParameter(f"{name!r} is none of {names}", param_hint="--only")
    progress = Console(stderr=True, soft_wrap=True, highlight=False)
    with _cli_output.into(json_file):
        result = _bench_kv.run(json_file, quick=quick, only=only or [], progress=progress)
    _bench.print_bench(result, out())
    for name, why in result.not_measured.items():
        note(f"{name}: not measured: {why}")
    note(f"results: {json_file}; `wherry report {json_file}` draws them")


@bench_app.command("move")
def bench_move(
    json_file: Annotated[Path, typer.Option("--json", metavar="FILE", help="Where the results go.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and repetitions: a look, not a measurement.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="One experiment; may be repeated.")] = None,
) -> None:
    """The evaluation of paper 004 on this machine, as ratios: writes JSON, and prints tables and the bars. A bar
    that is missed is a result: the exit status is 0.

    Examples:

      wherry bench move --json build/bench-move.json

      wherry bench move --json /tmp/quick.json --quick --only initiate --only bandwidth

      wherry report build/bench-move.json
    """
    from wherry import _bench

    for name in only or []:
        if name not in bench_schema.EXPERIMENTS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(bench_schema.EXPERIMENTS)}", param_hint="--only")
    with _cli_output.into(json_file):
        result = _bench.run_move(json_file, quick=quick, only=only or [])
    _bench.print_bench(result, out())
    note(f"results: {json_file}; `wherry report {json_file}` draws them")


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(metavar="JSON...", help="What `wherry bench` and the jobs wrote.")],
    output: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page.")] = Path("build/report.html"),
) -> None:
    """Turn the JSON of benchmarks and jobs into one HTML page: plots, published figures beside ours.

    Examples:

      wherry report build/bench-move.json

      wherry report build/bench-move.json build/bench-route.json build/lammps-lj.json --out build/report.html
    """
    from wherry import report as html_report

    with _cli_output.into(output):
        written = html_report.write(files, output)
    note(f"report: {written}")


@app.command()
def version() -> None:
    """Versions of Wherry and of the parts that it stands on.

    Example:

      wherry version
    """
    console = out()
    console.print(f"wherry    {bench_schema.wherry_version()}")
    try:
        console.print(f"wherryd   {paths.wherryd()}")
    except NotFound:
        console.print("wherryd   not built")
    import pyarrow as pa

    console.print(f"pyarrow   {pa.__version__}")
    console.print(f"python    {sys.version.split()[0]}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _options_of_all(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="As `wherry version`."),
    ] = False,
) -> None:
    """Options of `wherry` itself."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status. Expected errors are one red line on standard error."""
    with _cli_output.standard_streams():
        return _main(arguments)


def _main(arguments: list[str] | None) -> int:
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        # standalone_mode=False: usage errors, aborts and exit codes come here instead of ending the process.
        code = app(args=arguments, prog_name="wherry", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OutputLost as error:
        if error.closed_pipe:  # `wherry cat x | head`
            return 0
        errors.print(f"wherry: {error}", style="red", markup=False)
        return OUTPUT_LOST
    except BrokenPipeError:  # another program's standard output, in whose process this runs
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except EXPECTED as error:
        errors.print(f"wherry: {_message(error)}", style="red", markup=False)
        return 1
    except Exception as error:  # noqa: BLE001 - what is not expected is raised again
        if isinstance(error, OSError) and error.errno in RESOURCES:
            errors.print(f"wherry: {_message(error)}", style="red", markup=False)
            return 1
        return _usage(error, errors)
    return code if isinstance(code, int) else 0


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and not isinstance(error, TimeoutError):
        return at(error)
    return str(error)


def _usage(error: Exception, errors: Console) -> int:
    """Exit status for what typer raises; anything else is raised again."""
    exit_code = getattr(error, "exit_code", None)
    if exit_code is None:
        if type(error).__name__ == "Abort":
            return 130
        raise error
    show = getattr(error, "format_message", None)
    if show is not None and str(show()):
        errors.print(f"wherry: {show()}", style="red", markup=False)
    context = getattr(error, "ctx", None)
    if context is not None and show is not None:
        errors.print(f"try `{context.command_path} --help`")
    return int(exit_code)


if __name__ == "__main__":
    sys.exit(main())
