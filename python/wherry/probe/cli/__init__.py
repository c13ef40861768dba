# SPDX-License-Identifier: Apache-2.0
"""The commands of probe."""

from __future__ import annotations

from wherry.cli import App
from wherry.probe.cli.benchmark import bench
from wherry.probe.cli.paths import add_paths

probe_app = App(
    no_args_is_help=True,
    help="Paths between host and card: measured, simulated or modelled (docs/probe.md)."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry probe list                      every path, and why one cannot run here\n\n"
    "  wherry probe run --quick               all of them, in 20 seconds\n\n"
    "  wherry probe run --only ipc.cma        one path, or a group\n\n"
    "  wherry probe run --json a.json         all figures, for programs\n\n"
    "  wherry probe compare a.json b.json     what differs by more than noise\n\n"
    "[bold]How to read a row[/bold]: p50 is the median of the rounds' medians, least and most the smallest and largest "
    "of those. p99 to max are of all rounds together. CPU is the measuring thread's time for one transfer, other CPU "
    "that of the process at the other end; who polls uses a whole core.",
)


def add_to(app: App, benches: App) -> None:
    """Gives `app` the group probe, and `wherry bench` its benchmark."""
    benches.command("probe")(bench)
    add_paths(probe_app)
    app.add_typer(probe_app, name="probe")
