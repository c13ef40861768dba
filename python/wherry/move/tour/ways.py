# SPDX-License-Identifier: Apache-2.0
"""The two ways in which `wherry demo` transfers a frame: Wherry, and Flight's DoPut."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.flight as flight

from wherry.errors import Unavailable
from wherry.move.flight import flight_client, flight_frames
from wherry.move.reader import open as open_stream
from wherry.move.session import Session
from wherry.move.ticket import Ticket

Columns = dict[str, npt.NDArray[np.float64]]


class Way(Protocol):
    """A way to transfer frames. Two sets of columns alternate: the program computes one set while the other is in
    flight."""

    def columns(self, slot: int) -> Columns:
        """The arrays of a slot, 0 or 1."""

    def post(self, slot: int, tag: int) -> None:
        """Starts the transfer of a slot's arrays."""

    def wait(self, slot: int) -> None:
        """Waits until the slot's arrays may be written to."""

    def end(self) -> None:
        """Completes a round after its last frame."""

    def frames(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The tags and columns of the last round, as the receiver holds them."""


class Wherry:
    """A stream to an embedded agent, to which both sets of columns are bound."""

    def __init__(self, session: Session, names: Sequence[str], rows: int, frames: int) -> None:
        self._session, self._count = session, frames
        self._columns = [{name: session.empty(rows) for name in names} for _ in range(2)]
        self._stream = session.stream("demo", self._columns[0], keep_frames=frames)
        self._steps = [self._stream.bind(columns) for columns in self._columns]
        self._tickets: list[Ticket | None] = [None, None]
        self._sent = 0

    def columns(self, slot: int) -> Columns:
        """Arrays in memory that the agent maps."""
        return self._columns[slot]

    def post(self, slot: int, tag: int) -> None:
        """Posts the bound arrays; returns at once."""
        self._tickets[slot] = self._steps[slot].post(tag)
        self._sent += 1

    def wait(self, slot: int) -> None:
        """Waits until the agent has read the slot's arrays."""
        ticket = self._tickets[slot]
        if ticket is not None:
            ticket.wait(30)

    def end(self) -> None:
        """Waits until the agent holds all frames."""
        self._session.drain(30)

    def frames(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The frames as views of the agent's memory."""
        with open_stream("demo", self._session, follow=False, from_sequence=self._sent - self._count) as reader:
            for frame in reader:
                yield frame.tag, frame.batch

    def frames_by_flight(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The same frames through a Flight client, as a program in any language would read them."""
        client, options = flight_client(self._session)
        with client:
            first = self._sent - self._count
            for about, batch in flight_frames(client, options, "demo", follow=False, from_sequence=first):
                yield about["tag"], batch


class DoPut:
    """A Flight client whose server is a separate process. A batch's position is its tag."""

    def __init__(self, location: str, names: Sequence[str], rows: int) -> None:
        self._client = flight.connect(location, generic_options=[("grpc.enable_http_proxy", 0)])
        self._columns = [{name: np.zeros(rows) for name in names} for _ in range(2)]
        self._schema = pa.schema([(name, pa.float64()) for name in names])
        self._writer: Any = None

    def columns(self, slot: int) -> Columns:
        """Ordinary numpy arrays."""
        return self._columns[slot]

    def post(self, slot: int, tag: int) -> None:
        """Serialises the batch, without a copy of numpy's columns, and writes it to the server."""
        if self._writer is None:
            self._writer, _ = self._client.do_put(flight.FlightDescriptor.for_path(b"demo"), self._schema)
        batch = pa.RecordBatch.from_arrays([pa.array(one) for one in self._columns[slot].values()], schema=self._schema)
        self._writer.write_batch(batch)

    def wait(self, slot: int) -> None:
        """Does nothing, because write_batch has already waited."""

    def end(self) -> None:
        """Waits until the server has all batches."""
        self._writer.close()
        self._writer = None

    def frames(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The frames, sent back by the server."""
        yield from enumerate(self._client.do_get(flight.Ticket(b"demo")).read_all().to_batches())

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()


@contextmanager
def put_server() -> Iterator[str]:
    """Runs a DoPut server and yields its location: a socket in a private directory, which no other user can reach."""
    program = Path(__file__).with_name("put_server.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True
    ) as server:  # at the end of the block, Popen closes the server's input and waits
        assert server.stdout is not None
        location = server.stdout.readline().strip()
        if not location:
            raise Unavailable("the Flight server that the demonstration compares with did not start")
        yield location
