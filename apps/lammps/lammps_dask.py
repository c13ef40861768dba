# SPDX-License-Identifier: Apache-2.0
"""Dask workers compute the physics of a LAMMPS stream. Each worker reads its parts from their agent.

    python apps/lammps/lammps_dask.py --stream particles                       # two worker processes on this machine
    python apps/lammps/lammps_dask.py --agents hosts:agents.txt --scheduler tcp://head:8786

The stream has columns `x` and `v`: fixed-size lists of 3 doubles, one row an atom. The program writes one JSON object,
in one line, for every step that is complete at its start: {"step", "atoms", "kinetic_energy", "position_sum": [x, y,
z]}, in LAMMPS's units for mass 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.distributed as distributed

import wherry
from wherry.errors import Error


def figures(particles: wherry.move.Dataset, client: distributed.Client) -> list[dict[str, Any]]:
    """The figures of each step, in ascending order of steps."""
    atoms = particles.to_dask(tag="step")
    axes = ("x_0", "x_1", "x_2")
    wanted = atoms[["step", *axes]].assign(atoms=1, kinetic_energy=(atoms.v_0**2 + atoms.v_1**2 + atoms.v_2**2) / 2)
    sums = client.compute(wanted.groupby("step").sum(split_out=1)).result().sort_index()
    return [
        {
            "step": int(row.Index),
            "atoms": int(row.atoms),
            "kinetic_energy": float(row.kinetic_energy),
            "position_sum": [float(getattr(row, axis)) for axis in axes],
        }
        for row in sums.itertuples()
    ]


@contextmanager
def cluster(scheduler: str | None, workers: int) -> Iterator[distributed.Client]:
    """Connects to the cluster of that scheduler. If the address is None, starts a cluster of `workers` processes on
    this machine."""
    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            yield client
        return
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


def main(arguments: list[str] | None = None) -> int:
    """0: done; 1: reading failed (one line on standard error says why)."""
    parser = argparse.ArgumentParser(
        prog="python apps/lammps/lammps_dask.py", description="Physics of each step of a LAMMPS stream, by Dask."
    )
    parser.add_argument("--stream", default="particles", help="name of the stream")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--agent", action="append", metavar="FILE", help="an agent's session file; may be repeated (default: yours)"
    )
    which.add_argument("--agents", metavar="WHERE", help="agents as hosts:FILE or etcd:URL/prefix")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster, as tcp://head:8786")
    where.add_argument("--workers", type=int, default=2, help="processes on this machine")
    options = parser.parse_args(arguments)
    try:
        with (
            wherry.dataset(options.stream, options.agents or options.agent or [None]) as particles,
            cluster(options.scheduler, options.workers) as client,
        ):
            for one in figures(particles, client):
                print(json.dumps(one), flush=True)
    except Error as error:
        print(f"lammps_dask: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
