# SPDX-License-Identifier: Apache-2.0
"""Reads streams from any machine through Arrow Flight."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wherry import arguments
from wherry.errors import (
    DeadlineExceeded,
    Error,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from wherry.move.connection import Agent, flight_of

if TYPE_CHECKING:
    import pyarrow.flight as flight

    from wherry.move.predicate import Filter


def flight_client(agent: Agent = None) -> tuple[flight.FlightClient, flight.FlightCallOptions]:
    """Returns a Flight client, and the call options that contain the agent's token: `client.list_flights(b"",
    options)`.

    agent: see `wherry.open`.

    The client connects on its first call. Raises the errors of locate(); Error if the agent does not serve Flight.
    """
    import pyarrow.flight as flight

    address, token = flight_of(agent)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + token.encode())])
    # No proxy: a proxy that the environment names must not see the token.
    return flight.FlightClient(address, generic_options=[("grpc.enable_http_proxy", 0)]), options


def flight_frames(
    client: flight.FlightClient,
    options: flight.FlightCallOptions,
    name: str,
    follow: bool = True,
    from_sequence: int = 0,
    count: int | None = None,
    part: int | None = None,
    columns: Sequence[str] | None = None,
    filter: Filter | None = None,
    tag: int | None = None,
    compression: str | None = None,
) -> Iterator[tuple[dict[str, Any], pa.RecordBatch]]:
    """Yields (metadata, batch) for each frame of stream `name`, in order, at most `count` of them.

    client, options: the results of flight_client().
    follow: wait for new frames until the stream ends; False: stop after the frames that the agent holds now.
    from_sequence: the first wanted frame.
    part: for a stream in parts, read only this part.
    columns: read only these, in this order; []: only the metadata.
    filter: read only rows for which it is true; a pyarrow Expression or a list (docs/guide/move-operators.md).
    tag: read only frames with this tag.
    compression: "lz4" or "zstd", for the columns that the agent sends.

    The batch is the client's own copy. The metadata are {"sequence", "tag", "rows", "skipped", "transfer_ns",
    "source_bytes", "generation"}. Every stream that the agent opens has another "generation", even if the name is the
    same. A step of a stream in parts comes as one batch for each part, in order; the metadata then also contain "part"
    and "parts", and "rows" counts the part's rows. A frame of more than 1 GiB comes as several batches; the metadata
    then also contain "first_row". The agent selects columns and rows, so it sends only the selected data. "rows" still
    counts the frame's rows before the filter. A frame without selected rows comes as an empty batch.

    Raises PermissionDenied, NotFound; InvalidArgument for a filter or a column that does not fit the stream;
    Unsupported for an expression that cannot be sent. Raises Unavailable if the agent cannot be reached;
    ResourceExhausted if other readers hold the whole readers' share (agent.reader_budget) for 10 s; DeadlineExceeded
    after the options' timeout; Error if the connection breaks.
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
    if tag is not None:
        wanted["tag"] = arguments.number("tag", tag, 0, arguments.U64)
    if compression is not None:
        wanted["compression"] = arguments.text("compression", compression)
    with _errors(name):
        if columns is not None or filter is not None:
            wanted |= _pushed_down(flight_schema(client, options, name), columns, filter)
        stream = client.do_get(flight.Ticket(json.dumps(wanted).encode()), options)
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


@contextmanager
def _errors(name: str) -> Iterator[None]:
    """Converts errors of Flight and Arrow to Wherry's errors."""
    import pyarrow.flight as flight

    try:
        yield
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
        if isinstance(error, pa.ArrowInvalid):
            raise InvalidArgument(f"reading {name!r} was refused: {text}") from None
        raise Error(f"reading {name!r} failed: {text}") from None
    except flight.FlightError as error:
        raise Error(f"reading {name!r} failed: {_first_line(error)}") from None


def flight_schema(client: flight.FlightClient, options: flight.FlightCallOptions, name: str) -> pa.Schema:
    """The schema of stream `name`. Raises the errors of flight_frames."""
    import pyarrow.flight as flight

    with _errors(name):
        return client.get_schema(flight.FlightDescriptor.for_path(name), options).schema


def _pushed_down(schema: pa.Schema, columns: Sequence[str] | None, filter: Filter | None) -> dict[str, Any]:
    """The keys of a Flight ticket that request these columns and this filter."""
    from wherry.move import predicate

    keys: dict[str, Any] = {}
    if columns is not None:
        keys["columns"] = predicate.chosen(columns, schema)
    if filter is not None:
        keys["filter"] = predicate.to_wire(filter, schema)
    return keys


def _first_line(error: BaseException) -> str:
    """The text of an Arrow error, without the source lines and the gRPC debug context that follow."""
    text = str(error.args[0]) if error.args else str(error)
    return text.strip("'\"").splitlines()[0].split(". gRPC client debug context")[0].split(". Client context:")[0]
