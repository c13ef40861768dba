# SPDX-License-Identifier: Apache-2.0
"""Reading by Flight, from a scripted pyarrow server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from agents import TOKEN
from samples import batch

import wherry
from wherry.errors import DeadlineExceeded, Error, NotFound, PermissionDenied, ResourceExhausted, Unavailable

Write = Callable[..., Path]


def sent(seed: int = 0) -> pa.RecordBatch:
    """Like batch(), but without the dictionary, because pyarrow's GeneratorStream does not send dictionaries."""
    return batch(seed).select(["id", "x", "word"])


class TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def start_call(self, _info: Any, headers: dict[str, list[str]]) -> None:
        if headers.get("authorization") != [f"Bearer {TOKEN}"]:
            raise flight.FlightUnauthenticatedError("wrong token")


class FlightAgent(flight.FlightServerBase):  # type: ignore[misc]
    """Serves three frames of stream "s" as wherryd does."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0", middleware={"token": TokenCheck()})
        self.tickets: list[dict[str, Any]] = []
        self.broken: str | None = None

    def do_get(self, _context: Any, ticket: flight.Ticket) -> flight.GeneratorStream:
        wanted = json.loads(ticket.ticket)
        self.tickets.append(wanted)
        if wanted["stream"] != "s":
            raise KeyError(f'no stream "{wanted["stream"]}" on this agent')
        if self.broken == "unavailable":
            raise flight.FlightUnavailableError("the agent is shutting down")
        if self.broken == "held":
            raise flight.FlightTimedOutError("readers hold frames: release them", b"resource_exhausted")
        if self.broken == "late":
            raise flight.FlightTimedOutError("too late")

        def frames() -> Iterator[Any]:
            for i in range(wanted["from"], min(3, wanted["from"] + wanted.get("count", 3))):
                about = {"sequence": i, "tag": 10 * i, "rows": 100, "skipped": 0, "transfer_ns": 5, "source_bytes": 6}
                yield (sent(i), json.dumps(about).encode()) if self.broken != "metadata" else sent(i)
                if self.broken == "middle":
                    raise flight.FlightInternalError("the frame is gone")

        return flight.GeneratorStream(sent().schema, frames())


@pytest.fixture
def flights() -> Iterator[FlightAgent]:
    with FlightAgent() as server:
        yield server


def at(server: FlightAgent) -> dict[str, str]:
    return {"flight": f"grpc://127.0.0.1:{server.port}"}


def test_flight_frames(flights: FlightAgent, write_session: Write) -> None:
    client, options = wherry.flight_client(write_session(**at(flights)))
    with client:
        seen = list(wherry.flight_frames(client, options, "s", follow=False))
        assert [about["tag"] for about, _ in seen] == [0, 10, 20]
        for i, (_, data) in enumerate(seen):
            assert data.equals(sent(i))
        assert len(list(wherry.flight_frames(client, options, "s", from_sequence=1, count=1))) == 1
    assert flights.tickets == [
        {"stream": "s", "from": 0, "follow": False},
        {"stream": "s", "from": 1, "follow": True, "count": 1},
    ]


def test_flight_reader_that_leaves_early(flights: FlightAgent, write_session: Write) -> None:
    client, options = wherry.flight_client(write_session(**at(flights)))
    with client:
        for about, _ in wherry.flight_frames(client, options, "s"):
            assert about["sequence"] == 0
            break
        assert len(list(wherry.flight_frames(client, options, "s"))) == 3


def test_flight_errors_are_wherrys(flights: FlightAgent, write_session: Write) -> None:
    client, options = wherry.flight_client(write_session(**at(flights)))
    with client:
        with pytest.raises(NotFound, match="has no stream 'x'"):
            list(wherry.flight_frames(client, options, "x"))
        for broken, kind, message in [
            ("metadata", Error, "without its metadata"),
            ("middle", Error, "reading 's' failed: .*the frame is gone"),
            ("unavailable", Unavailable, "the agent is shutting down"),
            ("held", ResourceExhausted, "^reading 's' stopped: readers hold .*: release them"),
            ("late", DeadlineExceeded, "too late"),
        ]:
            flights.broken = broken
            with pytest.raises(kind, match=message) as caught:
                list(wherry.flight_frames(client, options, "s"))
            assert "\n" not in str(caught.value)


def test_flight_wrong_token(flights: FlightAgent, write_session: Write) -> None:
    client, options = wherry.flight_client(write_session(token="0000", **at(flights)))
    with client, pytest.raises(PermissionDenied, match="refused the token"):
        list(wherry.flight_frames(client, options, "s"))


def test_flight_without_a_server(write_session: Write) -> None:
    with pytest.raises(Error, match="serves no Arrow Flight: start it with --flight"):
        wherry.flight_client(write_session(flight="off"))
    client, options = wherry.flight_client(write_session(flight="grpc://127.0.0.1:9"))
    with client, pytest.raises(Unavailable, match="no agent answers"):
        list(wherry.flight_frames(client, options, "s"))
