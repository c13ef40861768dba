# SPDX-License-Identifier: Apache-2.0
"""`wherry probe list | run | compare`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from wherry.cli import App, into, note, out, progress

if TYPE_CHECKING:
    from wherry.probe.comparing import Comparison
    from wherry.probe.lines import Progress
    from wherry.probe.schema import ProbeRun

OnlyPaths = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="A path, the beginning of some (ipc.cma), or a group (cpu). Repeat."),
]


def list_(
    only: OnlyPaths = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array, for programs.")] = False,
) -> None:
    """List every path with its two ends and, if it cannot run on this machine, the reason.

    Examples:

      wherry probe list

      wherry probe list --only ucx --json
    """
    import msgspec

    from wherry.probe.measuring import known_paths
    from wherry.probe.table import listing

    found = known_paths(only or ())
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        out().print(listing(found))


@contextmanager
def watched() -> Iterator[Callable[[Progress], None]]:
    """Shows the progress of a run: a bar on a terminal, else a line every ten seconds."""
    if not sys.stderr.isatty():
        last = -10.0

        def tell(line: Progress) -> None:
            nonlocal last
            if line.seconds - last >= 10:
                last = line.seconds
                note(f"{100 * line.done // max(line.of, 1)} %, {line.seconds:.0f} s: {line.id}, {line.bytes} bytes")

        yield tell
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.percentage:3.0f} %"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"),
        console=progress(), transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("")

        def show(line: Progress) -> None:
            bar.update(task, completed=line.done, total=line.of, description=escape(f"{line.id}, {line.bytes} bytes"))

        yield show


def run(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and depths: 20 seconds instead of three minutes.")
    ] = False,
    only: OnlyPaths = None,
    sizes: Annotated[
        list[int] | None, typer.Option("--bytes", metavar="N", help="Sizes instead of the usual ones. Repeat.")
    ] = None,
    depths: Annotated[
        list[int] | None, typer.Option("--depth", metavar="N", help="Transfers under way, instead. Repeat.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, max=1000, help="Visits of each path and size.")] = 7,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Of the whole run, about. Default: 15 with --quick, else 150.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of data and pauses.")] = 1,
    twice: Annotated[
        bool, typer.Option("--twice", help="Measure everything twice, taking turns: `compare` then shows the noise.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Where all figures go. Must not be there yet.")
    ] = None,
) -> None:
    """Measure latency, bandwidth, message rate and CPU cost of every path that this machine has.

    Each round measures all paths and sizes in turn, so that disturbances of the machine affect all equally. Every byte
    is checked, outside the measured time. A figure above the path's limit is refused; a figure whose rounds differ by
    more than 30 % is marked unsettled. Keep the machine idle: a path and its peer use two cores.

    Exit status: 0 measured, 1 data was wrong, 2 nothing was measured, 130 Ctrl-C (no file is written).

    Examples:

      wherry probe run --quick

      wherry probe run --only ipc --bytes 4096 --depth 1 --depth 16

      wherry probe run --json build/probe.json
    """
    from wherry.probe.measuring import NOTHING, STOPPED, WRONG_DATA, measure
    from wherry.probe.schema import refuse_if_there, write

    if json_file is not None:
        refuse_if_there(json_file)
    more = [word for size in sizes or [] for word in ("--bytes", str(size))]
    more += [word for depth in depths or [] for word in ("--depth", str(depth))]
    more += ["--rounds", str(rounds), "--seed", str(seed)]
    more += ["--seconds", str(seconds)] if seconds is not None else []
    with watched() as watch:
        found = measure(quick=quick, twice=twice, only=only or (), more=more, watch=watch)
    if found.stopped:
        note("stopped: nothing is kept")
        raise typer.Exit(STOPPED)
    _show(found)
    if json_file is not None:
        with into(json_file):
            write(found, json_file)
        note(f"results: {json_file}; `wherry probe compare` puts it beside another run")
    if found.wrong:
        raise typer.Exit(WRONG_DATA)
    if not found.measured:
        raise typer.Exit(NOTHING)


def _show(found: ProbeRun) -> None:
    from wherry.probe.table import path_table, remarks

    console = out()
    for path in found.paths:
        if any(not row.refused for row in path.rows):
            console.print(path_table(path))
            console.print()
    for remark in remarks(found):
        console.print(remark, markup=False)
    settings = found.environment
    console.print(f"{found.machine_key}; governor {settings.get('governor', '?')}; other side: "
                  f"{settings.get('other_side', '?')}; load {settings.get('load', '?')}", markup=False)  # fmt: skip
    console.print(f"{found.measured} rows of {found.settings.rounds} rounds in {found.seconds:.1f} s; the runner adds "
                  f"{found.harness_batched_ns:.0f} ns to a transfer", markup=False)  # fmt: skip


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A file of `wherry probe run --json`.")],
    b: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Another one. Without it: the two series of A (--twice).")
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="What does not differ, too.")] = False,
    across: Annotated[bool, typer.Option("--across", help="Although the two are of different machines.")] = False,
) -> None:
    """Report for each path and size whether two runs differ by more than their noise.

    Two runs differ if the whole 99 % confidence interval of the ratio of times, from the rounds' medians, is more than
    5 % away from 1. This needs at least five rounds. If the speed of the machine drifts between two runs, they also
    differ. To test a change, measure before and after it in alternation. `wherry probe run --twice` shows how much one
    run differs from itself.

    Examples:

      wherry probe compare build/before.json build/after.json

      wherry probe compare build/twice.json --all
    """
    from wherry.errors import InvalidArgument
    from wherry.probe.comparing import compare as compare_runs
    from wherry.probe.comparing import compare_series
    from wherry.probe.schema import load

    first = load(a)
    if b is None:
        _tell(compare_series(first), all_rows)
        return
    second = load(b)
    if first.machine_key != second.machine_key and not across:
        raise InvalidArgument(
            f"{a} is of '{first.machine_key}', {b} of '{second.machine_key}': --across compares them all the same"
        )
    _tell(compare_runs(first, second), all_rows)


def _tell(found: list[Comparison], all_rows: bool) -> None:
    from wherry.probe.table import comparison_table

    same = sum(one.verdict == "no difference" for one in found)
    undecided = sum(one.verdict == "undecided" for one in found)
    if all_rows or same < len(found):
        out().print(comparison_table(found, all_rows))
    words = f"no difference in {same} of {len(found)} paths and shapes"
    out().print(words + (f"; {undecided} have too few rounds to tell" if undecided else ""), markup=False)


def add_paths(group: App) -> None:
    """Adds the commands about measured paths to `group`, which is `wherry probe`."""
    group.command("list")(list_)
    group.command("run")(run)
    group.command("compare")(compare)
