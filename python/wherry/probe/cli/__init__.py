# SPDX-License-Identifier: Apache-2.0
"""The commands of probe."""

from __future__ import annotations

from wherry.cli import App
from wherry.probe.cli.model import add_model

probe_app = App(no_args_is_help=True, help="Paths between host and card: measured, simulated or modelled.")


def add_to(app: App, benches: App) -> None:
    """Gives `app` the group probe."""
    add_model(probe_app)
    app.add_typer(probe_app, name="probe")
