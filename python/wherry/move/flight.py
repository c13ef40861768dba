# SPDX-License-Identifier: Apache-2.0
"""Reading from anywhere, through Arrow Flight."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wherry import arguments
from wherry.errors import DeadlineExceeded, Error, NotFound, PermissionDenied, ResourceExhausted, Unavailable
from wherry.move.connection import Agent, flight_of

if TYPE_CHECKING:
    import pyarrow.flight as flight


def flight_client(agent: Agent = None) -> tuple[flight.FlightClient, flight.FlightCallOptions]:
    """A Flight client of the agent, and the call options that present its token: `client.list_flights(b"", options)`.

    Connects on the first call. Raises as locate() does; Error when the agent serves no Flight.
    """
    import pyarrow.flight as flight

    address, token = flight_of(agent)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + token.encode())])
    # The token is for the agent, not for a proxy that the environment may name.
    return flight.FlightClient(address, generic_options=[("grpc.enable_http_proxy", 0)]), options


def flight_frames(
    client: flight.FlightClient,
    options: flight.FlightCallOptions,
    name: str,
    follow: bool = True,
    from_sequence: int = 0,
    count: int | None = None,
    part: int | None = None,
) -> Iterator[tuple[dict[str, Any], pa.RecordBatch]]:
    """Yields (metadata, batch) for each frame of stream `name`, in order; at most `count` of them.

    metadata: {"sequence", "tag", "rows", "skipped", "transfer_ns", "source_bytes"}. The batch is the client's own copy.
    A step of a stream in parts comes as one batch a part, in their order, whose metadata have the further keys "part"
    and "parts", and "rows" are the part's; `part`: that one alone.
    A frame of more than 1 GiB comes as several batches, whose metadata have a further key "first_row".
    Raises PermissionDenied, NotFound; Unavailable when it cannot be reached; ResourceExhausted when other readers hold
    all that readers may (agent.reader_budget) for 10 s; DeadlineExceeded after the options' timeout; Error when it
    breaks off.
    """
    import pyarrow.flight as flight

    wanted: dict[str, Any] = {
        "stream": arguments.text("name", name),
        "from": arguments.number("from_sequence", from_sequence, 0, arguments.U64),
        "follow": bool(follow),
    }
    if count is not None:
        wanted["count"] = count
    if part is not None:
        wanted["part"] = arguments.number("part", part, 0, arguments.U64)
    ticket = flight.Ticket(json.dumps(wanted).encode())
    try:
        stream = client.do_get(ticket, options)
        try:
            while True:
                try:
                    chunk = stream.read_chunk()
                except StopIteration:
                    return
                if chunk.data is None:
                    continue
                if chunk.app_metadata is None:
                    raise Error(f"a batch of {name!r} came without its metadata: this is not a Wherry agent")
                yield json.loads(chunk.app_metadata.to_pybytes()), chunk.data
        finally:
            with suppress(pa.ArrowException):
                stream.cancel()
    except (flight.FlightUnauthenticatedError, flight.FlightUnauthorizedError) as error:
        raise PermissionDenied(f"the agent refused the token: {_first_line(error)}") from None
    except flight.FlightTimedOutError as error:
        kind = ResourceExhausted if error.extra_info == b"resource_exhausted" else DeadlineExceeded
        raise kind(f"reading {name!r} stopped: {_first_line(error)}") from None
    except flight.FlightUnavailableError as error:
        raise Unavailable(f"no agent answers, or it has gone: {_first_line(error)}") from None
    except flight.FlightCancelledError as error:
        raise Error(f"reading {name!r} was cancelled: {_first_line(error)}") from None
    except (pa.ArrowKeyError, pa.ArrowInvalid, flight.FlightServerError) as error:
        text = _first_line(error)
        if isinstance(error, KeyError) or "not found" in text.lower() or "no stream" in text.lower():
            raise NotFound(f"the agent has no stream {name!r}: {text}") from None
        raise Error(f"reading {name!r} failed: {text}") from None
    except flight.FlightError as error:
        raise Error(f"reading {name!r} failed: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    """An Arrow error without the trace of source lines and the gRPC debug context that follow it."""
    text = str(error.args[0]) if error.args else str(error)
    return text.strip("'\"").splitlines()[0].split(". gRPC client debug context")[0].split(". Client context:")[0]
