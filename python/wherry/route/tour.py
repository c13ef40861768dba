# SPDX-License-Identifier: Apache-2.0
"""route's part of `wherry demo`: the ranks of a program count random numbers together with small messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from wherry.errors import Error
from wherry.route.programs import application, run_job, scratch_directory
from wherry.units import counted, number_text

NODES, RANKS_PER_NODE = 2, 2
COUNTERS = 1 << 16
UPDATES = 1 << 20
TIMEOUT_S = 60


def show(console: Console) -> None:
    """Runs the program with several ranks and with one, and prints the results. Raises Error if the counts differ."""
    ranks = NODES * RANKS_PER_NODE
    with scratch_directory() as directory:
        said = _run(directory / "many", NODES, RANKS_PER_NODE)
        _run(directory / "one", 1, 1)
        counts = np.zeros(COUNTERS, np.uint64)
        for rank in range(ranks):  # element i of rank r is counter r + i * ranks
            counts[rank::ranks] = _counts(directory / "many", rank)
        alone = _counts(directory / "one", 0)
    if counts.sum() != UPDATES or not np.array_equal(counts, alone):
        raise Error(f"route: the counts of {ranks} ranks are not those of one rank")
    rate = number_text(UPDATES / said["seconds"] / 1e6)
    console.print(f"route: {counted(UPDATES, 'update')} as messages between {ranks} ranks of {NODES} nodes (here)")
    console.print(f"  {rate} million a second; every counter is what one rank alone counts")


def _counts(prefix: Path, rank: int) -> npt.NDArray[np.uint64]:
    counts: npt.NDArray[np.uint64] = np.load(f"{prefix}.{rank}.npy")
    return counts


def _run(prefix: Path, nodes: int, ranks_per_node: int) -> dict[str, Any]:
    """Runs the program, and returns the result in its last line. Raises Error if the job fails."""
    job = ["--nodes", str(nodes), "--ranks-per-node", str(ranks_per_node), "--timeout", str(TIMEOUT_S)]
    program = [str(application("histogram")), "--counters", str(COUNTERS), "--updates", str(UPDATES)]
    answer = prefix.with_suffix(".json")
    run_job(job, [*program, "--output", str(prefix), "--json", str(answer)])
    said: dict[str, Any] = json.loads(answer.read_text())
    return said
