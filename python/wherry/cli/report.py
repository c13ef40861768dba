# SPDX-License-Identifier: Apache-2.0
"""`wherry report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.cli.output import into, note


def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="JSON...", help="Files that `wherry bench` and the jobs wrote.")
    ],
    output: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page.")] = Path("build/report.html"),
) -> None:
    """Make one HTML page from the JSON of benchmarks and jobs: plots, with published figures beside ours.

    Examples:

      wherry report build/bench-move.json

      wherry report build/bench-move.json build/bench-route.json build/lammps-lj.json --out build/report.html
    """
    from wherry.report import write

    with into(output):
        written = write(files, output)
    note(f"report: {written}")
