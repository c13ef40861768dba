# SPDX-License-Identifier: Apache-2.0
"""A Flight server for `wherry demo`. It keeps the data of DoPut, as an agent keeps frames.

put_server.py listens at a Unix socket in its own private directory and prints the location. It serves until its
standard input ends, which happens when the demonstration ends for any reason.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading

import pyarrow as pa
import pyarrow.flight as flight


class PutServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Keeps streams by name. A DoPut replaces the stream of that name, and a DoGet sends it back."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self._held: dict[bytes, pa.Table] = {}

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Keeps all batches of the stream."""
        self._held[descriptor.path[0]] = reader.read_all()

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
        """Sends the batches back."""
        return flight.RecordBatchStream(self._held[ticket.ticket])


def main() -> None:
    """Runs the command line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C the demonstration closes this server's input
    with tempfile.TemporaryDirectory(prefix="wherry-demo-") as directory:
        location = f"grpc+unix://{directory}/put"
        server = PutServer(location)
        serving = threading.Thread(target=server.serve)
        serving.start()
        print(location, flush=True)
        sys.stdin.buffer.read()
        server.shutdown()
        serving.join()


if __name__ == "__main__":
    main()
