# SPDX-License-Identifier: Apache-2.0
"""Reads a stream that several agents hold as one table.

particles = wherry.dataset("particles", ["node0.json", "node1.json"])
step = particles.tags()[-1]
table = particles.table(step)                    # pyarrow; Polars: polars.from_arrow(table)
rows = particles.reader(step)                    # or batch by batch, for DuckDB: duckdb.sql("... from rows")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wherry import arguments
from wherry.errors import Error, InvalidArgument, NotFound
from wherry.move import predicate
from wherry.move.connection import Agent, find_agents, locate
from wherry.move.flight import flight_client, flight_frames, flight_schema

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pyarrow.flight as flight
    from dask.delayed import Delayed

    from wherry.move.dask_source import Partition, Request


@dataclass(frozen=True)
class _Source:
    """One agent."""

    session_file: str
    """The absolute path of the agent's session file."""
    pid: int
    client: flight.FlightClient
    options: flight.FlightCallOptions

    def __str__(self) -> str:
        return f"the agent {self.session_file!r}"


def _source(agent: Agent) -> _Source:
    session = locate(agent)
    return _Source(str(session.path.absolute()), session.pid, *flight_client(session))


class Dataset:
    """The frames of a stream at several agents. Frames with the same tag, for example a time step, belong together.

    name, agents, columns, filter, compression: see `wherry.dataset`, which makes a dataset.

    Each agent holds its own part of the dataset; the stream of an agent may have parts as well. Rows come in the order
    of the agents. Each call asks the agents again through Flight, without a cache. Any thread may use a dataset.
    """

    def __init__(
        self,
        name: str,
        agents: Sequence[Agent] | str,
        *,
        columns: Sequence[str] | None = None,
        filter: predicate.Filter | None = None,
        compression: str | None = None,
    ) -> None:
        self.name = arguments.text("name", name)
        if isinstance(agents, str):
            agents = find_agents(agents)
        if not agents:
            raise InvalidArgument(f"agents is {agents!r}: want a list of agents, one at least")
        self._sources: list[_Source] = []
        try:
            for agent in agents:
                self._sources.append(_source(agent))
            first, *others = [flight_schema(one.client, one.options, name) for one in self._sources]
            for source, schema in zip(self._sources[1:], others, strict=True):
                if not schema.equals(first):
                    raise InvalidArgument(
                        f"stream {name!r} has other columns at {source} than at {self._sources[0]}: "
                        f"{schema} and {first}"
                    )
            chosen = predicate.chosen(columns, first)
            self._filter = None if filter is None else predicate.to_wire(filter, first)
        except BaseException:
            self.close()
            raise
        self._columns = chosen
        self._compression = compression
        self.schema: pa.Schema = first if chosen is None else pa.schema([first.field(one) for one in chosen])
        """The schema of tables and batches that the dataset returns."""

    def tags(self) -> list[int]:
        """The tags of which every agent holds a frame now, in ascending order. Reads only metadata."""
        return sorted(set.intersection(*(set(self._held(source)) for source in self._sources)))

    def reader(self, tag: int | None = None) -> pa.RecordBatchReader:
        """The rows with `tag` (None: the latest that all agents hold) as a stream of batches, agent by agent.

        Raises NotFound if the agents have no tag in common. The read raises NotFound if an agent no longer holds the
        tag, and the errors of flight_frames.
        """
        wanted = self._tag(tag)
        batches = (batch for source in self._sources for batch in self._batches(source, wanted))
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def table(self, tag: int | None = None) -> pa.Table:
        """The rows with `tag` as one table. All agents send at the same time. Raises the errors of reader()
        immediately."""
        wanted = self._tag(tag)
        with ThreadPoolExecutor(len(self._sources)) as pool:
            parts = list(pool.map(lambda source: list(self._batches(source, wanted)), self._sources))
        return pa.Table.from_batches([batch for part in parts for batch in part], self.schema)

    def to_dask(self, tags: Sequence[int] | None = None, *, tag: str | None = "tag") -> dd.DataFrame:
        """A dask.dataframe of all rows with these tags (None: all that every agent holds now).

        A partition is one frame, or one part of a frame, at one agent. The worker that computes a partition reads only
        the columns that Dask needs, from that agent. The agents' session files must have the same paths on the worker's
        machine.
        tag: the name of a column with the frame's tag, uint64. None: no such column. A vector column v becomes v_0,
        v_1, ... Columns with nulls, texts and nested columns keep Arrow's types (pandas.ArrowDtype).

        The graph names frames by their sequence numbers. If an agent evicts a frame before it is read, the frame's task
        raises NotFound, so choose `keep_frames` or when_full="wait" for the stream accordingly. Raises Unsupported
        without Dask; InvalidArgument if two columns would have the same name; NotFound if an agent does not hold one of
        `tags`.
        """
        from wherry.move import dask_source

        return dask_source.to_dataframe(self.partitions(tags), self._request(), tag)

    def to_delayed(self, tags: Sequence[int] | None = None) -> list[Delayed]:
        """The rows with these `tags` as dask.delayed pyarrow.Tables, one for each partition.

        The tables are ordered by tag, then agent, then part. Raises the errors of to_dask().
        """
        from wherry.move import dask_source

        return dask_source.to_delayed(self.partitions(tags), self._request())

    def _request(self) -> Request:
        from wherry.move.dask_source import Request

        return Request.make(self.name, self.schema, self._filter, self._compression)

    def partitions(self, tags: Sequence[int] | None = None) -> list[Partition]:
        """The partitions that workers read for to_dask() and to_delayed(). Reads only metadata. Raises NotFound if an
        agent does not hold one of `tags`."""
        from wherry.move.dask_source import Partition

        held = [self._held(source) for source in self._sources]
        if tags is None:
            tags = sorted(set.intersection(*(set(one) for one in held)))
        found = []
        for tag in dict.fromkeys(arguments.number("tag", tag, 0, arguments.U64) for tag in tags):
            for source, frames in zip(self._sources, held, strict=True):
                if tag not in frames:
                    raise NotFound(f"{source} holds no frame of {self.name!r} with tag {tag}")
                found += [
                    Partition(
                        session_file=source.session_file,
                        sequence=about["sequence"],
                        tag=tag,
                        part=about.get("part"),
                        rows=about["rows"],
                        pid=source.pid,
                        generation=about["generation"],
                    )
                    for about in frames[tag]
                ]
        return found

    def _held(self, source: _Source) -> dict[int, list[dict[str, Any]]]:
        """The metadata of the agent's frames, and of their parts, by tag."""
        held: dict[int, list[dict[str, Any]]] = {}
        for about, _ in flight_frames(source.client, source.options, self.name, follow=False, columns=[]):
            if not about.get("first_row"):  # count a frame in several batches once
                held.setdefault(about["tag"], []).append(about)
        return held

    def close(self) -> None:
        """Ends the connections. Idempotent."""
        for source in self._sources:
            source.client.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tag(self, tag: int | None) -> int:
        if tag is not None:
            return arguments.number("tag", tag, 0, arguments.U64)
        tags = self.tags()
        if not tags:
            raise NotFound(f"there is no tag of {self.name!r} of which all {len(self._sources)} agents hold a frame")
        return tags[-1]

    def _batches(self, source: _Source, tag: int) -> Iterator[pa.RecordBatch]:
        found = False
        for _, batch in flight_frames(
            source.client,
            source.options,
            self.name,
            follow=False,
            tag=tag,
            columns=self._columns,
            filter=self._filter,
            compression=self._compression,
        ):
            found = True
            if not batch.schema.equals(self.schema):
                raise Error(f"stream {self.name!r} was opened anew at {source}, with other columns")
            yield batch
        if not found:
            raise NotFound(f"{source} holds no frame of {self.name!r} with tag {tag}")


def dataset(
    name: str,
    agents: Sequence[Agent] | str,
    *,
    columns: Sequence[str] | None = None,
    filter: predicate.Filter | None = None,
    compression: str | None = None,
) -> Dataset:
    """Opens stream `name` of several agents as one dataset.

    agents: session files, as for `wherry.flight_client`; "hosts:FILE", a file with one session file on each line; or
        "etcd:http://host:port/prefix", where `wherry agent announce` announced the agents. Every agent must hold the
        stream.
    columns, filter, compression: see flight_frames; every agent applies them to its part.

    Raises NotFound, Unavailable, PermissionDenied; InvalidArgument if the agents have different columns, or if a column
    or a filter does not fit them.
    """
    return Dataset(name, agents, columns=columns, filter=filter, compression=compression)
