# SPDX-License-Identifier: Apache-2.0
"""`wherry bench bypass`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.cli import JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench


def bench(
    json_file: JsonFileOption,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer packets: a look, not a measurement.")] = False,
    only: OnlyOption = None,
    guest: Annotated[
        Path | None, typer.Option("--guest", metavar="FILE", help="Figures of tools/guest/run.py --json FILE.")
    ] = None,
    kv: Annotated[
        Path | None, typer.Option("--kv", metavar="FILE", help="Figures of the kv core behind the bypass core.")
    ] = None,
) -> None:
    """An FPGA that drives a NIC: our RTL in simulation beside models of paper 002's core, NIC and baselines, behind
    QEMU's NICs, and its resources. Nothing here ran on PCIe hardware. What cannot be run here is left out, and said. A
    bar that is missed is a result: the exit status is 0.

    Examples:

      wherry bench bypass --json build/bench-bypass.json

      wherry bench bypass --json /tmp/quick.json --quick --only batching --only resources
    """
    from wherry.bypass.bench.run import run
    from wherry.bypass.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, guest=guest, kv=kv, progress=progress())
    show_bench(result, json_file)
    for name, why in result.not_measured.items():
        note(f"{name}: not measured: {why}")
    if result.not_run:
        note(f"bars that were not run, and so not met: {', '.join(result.not_run)}")
