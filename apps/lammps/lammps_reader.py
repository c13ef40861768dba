# SPDX-License-Identifier: Apache-2.0
"""The analysis beside the LAMMPS job: a separate process that knows only the agent's session file and the stream's
name.

    python apps/lammps/lammps_reader.py --agent SESSION_FILE --stream lammps

Follows the stream through Arrow Flight and asks DuckDB for the physics of each frame. Writes one JSON object a line
to standard output: {"ready": true}, then `Figures` of each frame as it is read, then {"end": true, "frames": N}.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import pyarrow as pa

import wherry
from wherry.errors import Error

SQL = """
SELECT
    count(*)                                                AS atoms,
    count(DISTINCT id)                                      AS distinct_ids,
    min(id)                                                 AS min_id,
    max(id)                                                 AS max_id,
    sum(v[1]*v[1] + v[2]*v[2] + v[3]*v[3]) / 2              AS kinetic_energy,
    sum(x[1])                                               AS sum_x,
    sum(x[2])                                               AS sum_y,
    sum(x[3])                                               AS sum_z
FROM frame
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """The reader's figures of one frame. Reduced Lennard-Jones units (LAMMPS `units lj`), mass 1."""

    sequence: int
    tag: int
    """The time step."""
    skipped: int
    """Number of frames that were lost directly before this one."""
    rows: int
    """Rows as counted by the agent; DuckDB counts `atoms`."""
    atoms: int
    distinct_ids: int
    min_id: int
    max_id: int
    ke: float
    """Kinetic energy per atom: sum of v^2 / 2 / atoms."""
    temp: float
    """2 * kinetic energy / (3 * (atoms - 1)), as LAMMPS's `compute temp`: 3 (N - 1) degrees of freedom, without the
    drift."""
    position_sum: tuple[float, float, float]
    """Sum of the positions, by axis."""
    query_ms: float
    """Time that DuckDB took."""


def analyse(connection: duckdb.DuckDBPyConnection, metadata: dict[str, Any], batch: pa.RecordBatch) -> Figures:
    """The figures of one frame: columns `id` (integer), `x` and `v` (fixed-size lists of 3 doubles); one row an
    atom."""
    start = time.perf_counter()
    connection.register("frame", pa.Table.from_batches([batch]))
    try:
        row = connection.execute(SQL).fetchall()[0]
    finally:
        connection.unregister("frame")
    atoms, distinct_ids, min_id, max_id, kinetic_energy, sum_x, sum_y, sum_z = row
    return Figures(
        sequence=int(metadata["sequence"]),
        tag=int(metadata["tag"]),
        skipped=int(metadata["skipped"]),
        rows=int(metadata["rows"]),
        atoms=atoms,
        distinct_ids=distinct_ids,
        min_id=min_id,
        max_id=max_id,
        ke=kinetic_energy / atoms,
        temp=2 * kinetic_energy / (3 * (atoms - 1)),
        position_sum=(sum_x, sum_y, sum_z),
        query_ms=(time.perf_counter() - start) * 1e3,
    )


def main(arguments: list[str] | None = None) -> int:
    """Follows the stream to its end. 0: done; 1: reading failed (one line on standard error says why)."""
    parser = argparse.ArgumentParser(
        prog="python apps/lammps/lammps_reader.py",
        description="Physics of each frame of a LAMMPS stream, as JSON lines.",
    )
    parser.add_argument("--agent", default=None, help="session file of the agent (default: the running agent's)")
    parser.add_argument("--stream", default="lammps", help="name of the stream")
    parser.add_argument("--cores", default="", help="cores to run on, as 1,2,3 (default: any)")
    options = parser.parse_args(arguments)
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    os.nice(10)  # on few cores the reader shares a core with the agent, for whose gets the simulation waits

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    frames = 0
    try:
        client, call = wherry.flight_client(options.agent)
        print(json.dumps({"ready": True}), flush=True)
        for metadata, batch in wherry.flight_frames(client, call, options.stream, follow=True):
            print(json.dumps(asdict(analyse(connection, metadata, batch))), flush=True)
            frames += 1
    except (Error, duckdb.Error) as error:
        print(f"lammps_reader: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(json.dumps({"end": True, "frames": frames}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
