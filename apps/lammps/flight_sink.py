# SPDX-License-Identifier: Apache-2.0
"""A Flight server that takes record batches and keeps the latest, as Flight's users would run beside a simulation.

    python apps/lammps/flight_sink.py --cores 1

Writes its port to standard output, and ends with its standard input. It answers each batch once it has it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight


class Sink(flight.FlightServerBase):  # type: ignore[misc]
    """Takes any stream that is put."""

    latest: pa.RecordBatch | None = None

    def do_put(self, _context: Any, _descriptor: Any, reader: Any, writer: Any) -> None:
        """Keeps each batch until the next one is here, and says that it has it."""
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
