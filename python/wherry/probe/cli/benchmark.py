# SPDX-License-Identifier: Apache-2.0
"""`wherry bench probe`."""

from __future__ import annotations

from typing import Annotated

import typer

from wherry.cli import JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench


def bench(
    json_file: JsonFileOption,
    quick: Annotated[
        bool, typer.Option("--quick", help="Without the full suite and the profile's gains: a minute, not fifteen.")
    ] = False,
    only: OnlyOption = None,
) -> None:
    """The measuring tool itself: how long it takes, what it adds to a transfer, whether it tells noise from a
    difference, and whether every path notices one byte that was flipped; and what the settings of a path profile gain
    (--only profile). A bar that is missed is a result: the exit status is 0.

    Examples:

      wherry bench probe --json build/bench-probe.json

      wherry bench probe --json /tmp/quick.json --quick --only spoiled
    """
    from wherry.probe.bench.run import run
    from wherry.probe.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, say=lambda text: progress().print(text, markup=False))
    show_bench(result, json_file)
    for name, why in result.not_run.items():
        note(f"bar that was not run, and so not met: {name}: {why}")
