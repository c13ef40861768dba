# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`."""

from __future__ import annotations

from typing import Annotated

import typer

from wherry.cli import JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench


def bench(
    json_file: JsonFileOption,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and fewer: a look, not a measurement.")] = False,
    only: OnlyOption = None,
) -> None:
    """The replicated key-value store: the RTL core in simulation beside paper 003's tables, its resources, our software
    nodes in turns with Redis (WAIT 1) and etcd, and what a killed leader costs. What cannot be measured here is left
    out, and said. A bar that is missed is a result: the exit status is 0.

    Examples:

      wherry bench kv --json build/bench-kv.json

      wherry bench kv --json /tmp/quick.json --quick --only software --only failover
    """
    from wherry.kv.bench.run import run
    from wherry.kv.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, progress=progress())
    show_bench(result, json_file)
    for name, why in result.not_measured.items():
        note(f"{name}: not measured: {why}")
