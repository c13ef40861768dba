# SPDX-License-Identifier: Apache-2.0
"""A Flight server that receives record batches and keeps the latest one: what a user of Flight runs beside a
simulation.

    python apps/lammps/flight_sink.py --cores 1

It writes its port to standard output, and ends when its standard input is closed. It confirms each batch after it has
received it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight


class Sink(flight.FlightServerBase):  # type: ignore[misc]
    """Accepts any stream by DoPut."""

    latest: pa.RecordBatch | None = None

    def do_put(self, _context: Any, _descriptor: Any, reader: Any, writer: Any) -> None:
        """Keeps each batch until the next one arrives, and confirms it."""
        for chunk in reader:
            self.latest = chunk.data
            writer.write(b"taken")


def main() -> int:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(description="A Flight server that keeps the latest record batch.")
    parser.add_argument("--cores", default="", help="cores to run on, as 1,2,3 (default: any)")
    options = parser.parse_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    server = Sink("grpc://127.0.0.1:0")
    print(server.port, flush=True)
    sys.stdin.read()
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
