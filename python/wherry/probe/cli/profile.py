# SPDX-License-Identifier: Apache-2.0
"""`wherry probe profile`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.cli import into, note, out


def profile(
    of_run: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="A file of `wherry probe run --json`: measure nothing.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where it goes. Default: the place where agents look for it."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, metavar="S", help="Of the measurement, about.")] = 60,
) -> None:
    """Measure what the settings depend on, and write the path profile of this machine.

    Agents and `wherry run` use the profile for settings that you do not set; docs/guide/profile.md has the rules. The
    new profile replaces an older one. Keep the machine idle during the measurement.

    Examples:

      wherry probe profile

      wherry probe profile --from build/probe.json --output build/profile.json

      wherryd --profile build/profile.json --dump-config    # what it changes
    """
    from rich.table import Table

    from wherry.errors import InvalidArgument
    from wherry.probe import profile as profiles
    from wherry.probe.cli.paths import watched
    from wherry.probe.measuring import STOPPED
    from wherry.probe.schema import load

    file = output or profiles.default_profile_file()
    if file is None:
        raise InvalidArgument("there is no home for the profile: name a file with --output")
    if of_run is not None:
        run = load(of_run)
    else:
        with watched() as watch:
            run = profiles.run(seconds, watch)
        if run.stopped:
            note("stopped: nothing is kept")
            raise typer.Exit(STOPPED)
    document = profiles.document(run)
    table = Table("setting", "value", "rule", "from", box=None, pad_edge=False)
    for key, one in document["settings"].items():
        table.add_row(key, one["value"], one["rule"], one["why"])
    out().print(table)
    with into(file):
        profiles.write(document, file)
    note(f"profile: {file}")
