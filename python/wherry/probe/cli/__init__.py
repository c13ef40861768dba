# SPDX-License-Identifier: Apache-2.0
"""The commands of probe."""

from __future__ import annotations

from typing import Annotated

import typer

from wherry.cli import App, JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench
from wherry.probe.cli.model import add_model
from wherry.probe.cli.paths import add_paths
from wherry.probe.cli.profile import profile

probe_app = App(
    no_args_is_help=True,
    help="Paths between host and card: measured, simulated or modelled (docs/guide/probe.md)."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry probe list                      every path, and why one cannot run here\n\n"
    "  wherry probe run --quick               all of them, in 20 seconds\n\n"
    "  wherry probe run --only ipc.cma        one path, or a group\n\n"
    "  wherry probe run --json a.json         all figures, for programs\n\n"
    "  wherry probe compare a.json b.json     what differs by more than noise\n\n"
    "  wherry probe profile                   settings for this machine, which agents and wherry run then use\n\n"
    "[bold]How to read a row[/bold]: p50 is the median of the rounds' medians, least and most the smallest and largest "
    "of those. p99 to max are of all rounds together. CPU is the measuring thread's time for one transfer, other CPU "
    "that of the process at the other end; who polls uses a whole core.",
)


def bench(
    json_file: JsonFileOption,
    quick: Annotated[
        bool, typer.Option("--quick", help="Without the full suite and the profile's gains: minutes, not a quarter.")
    ] = False,
    only: OnlyOption = None,
) -> None:
    """Evaluate the measuring tool: its run time, its overhead on a transfer, whether it distinguishes noise from a
    difference, and whether every path detects a flipped byte. Further experiments (docs/guide/probe.md): `cache`: how
    an agent uses caches and memory; `thesis`: the simulated shell of paper 003; `model`: the analytic model; `profile`:
    the gain of a path profile's settings. A missed target is a result: the exit status is 0.

    Examples:

      wherry bench probe --json build/bench-probe.json

      wherry bench probe --json /tmp/quick.json --quick --only spoiled

      wherry bench probe --json /tmp/cache.json --only cache
    """
    from wherry.probe.bench.run import run
    from wherry.probe.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, say=lambda text: progress().print(text, markup=False))
    show_bench(result, json_file, quick=quick, only=experiments)
    for name, why in result.not_run.items():
        note(f"bar that was not run, and so not met: {name}: {why}")


def add_to(app: App, benches: App) -> None:
    """Adds the group `probe` to `app`, and the benchmark to `wherry bench`."""
    benches.command("probe")(bench)
    add_paths(probe_app)
    probe_app.command("profile")(profile)
    add_model(probe_app)
    app.add_typer(probe_app, name="probe")
