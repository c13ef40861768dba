# SPDX-License-Identifier: Apache-2.0
"""The common part of the commands `wherry bench NAME`; each service adds its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wherry.cli.output import into, note, out

if TYPE_CHECKING:
    from wherry.bench import Run

JsonFileOption = Annotated[Path, typer.Option("--json", metavar="FILE", help="File for the results.")]
OnlyOption = Annotated[list[str] | None, typer.Option(metavar="NAME", help="One experiment; may be repeated.")]


def check_experiments(only: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Checks that each name of --only exists, and returns the names."""
    for name in only or []:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}", param_hint="--only")
    return list(only or [])


def show_bench(result: Run, json_file: Path, *, quick: bool = False, only: Sequence[str] = ()) -> None:
    """Prints a run's tables and bars, and the path of the results. `quick` and `only` are also written into the
    file."""
    from wherry.bench import mark_part, print_bench

    with into(json_file):
        mark_part(json_file, quick=quick, only=only)
    print_bench(result, out())
    note(f"results: {json_file}; `wherry report {json_file}` draws them")
