# SPDX-License-Identifier: Apache-2.0
"""`wherry cat`: a stream's frames as a table, csv or Arrow."""

from __future__ import annotations

import csv
import enum
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from wherry._cli_output import into, note
from wherry.errors import Error

if TYPE_CHECKING:
    from wherry.move import reader  # commands import it themselves: pyarrow and numpy take half of a start

AgentOption = Annotated[
    Path | None,
    typer.Option(
        "--agent", metavar="FILE", help="The agent's session file. Default: $WHERRY_AGENT, or the running agent."
    ),
]


class Format(enum.StrEnum):
    """How `wherry cat` writes."""

    table = "table"
    csv = "csv"
    arrow = "arrow"


def cat(
    stream: Annotated[str, typer.Argument(help="Name, as `wherry streams` lists it.")],
    limit: Annotated[int | None, typer.Option(min=0, help="Rows to write. Default: 20 for a table, else all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for frames to come until the stream ends.")] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="table, csv, or arrow (an Arrow IPC stream).")
    ] = Format.table,
    output: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: standard output.")] = None,
    agent: AgentOption = None,
) -> None:
    """Read a stream on this machine, without a copy, and write it to standard output.

    Examples:

      wherry cat particles --limit 5                     # the first rows

      wherry cat particles --format csv > particles.csv

      wherry cat particles --format arrow --out p.arrow  # all frames

      wherry cat particles --follow                      # until the stream ends
    """
    if limit is None and format_ is Format.table and not follow:
        limit = 20
    if format_ is Format.arrow and output is None and sys.stdout.isatty():
        raise typer.BadParameter("Arrow is no text: give --out FILE, or redirect the output", param_hint="--format")
    from wherry.move import reader

    with reader.open(stream, agent, follow=follow) as source, into(output):
        batches = _limited(source, limit)
        if format_ is Format.arrow:
            _write_arrow(batches, output)
        elif format_ is Format.csv:
            _write_csv(batches, output)
        else:
            _write_table(batches, output)


def _limited(source: reader.StreamReader, limit: int | None) -> Iterator[tuple[reader.Frame, Any]]:
    """(frame, batch) with `limit` rows in all."""
    left = limit
    for frame in source:
        if frame.skipped:
            note(f"wherry: {frame.skipped} frames before frame {frame.sequence} were gone before they could be read")
        if left is None:
            yield frame, frame.batch
            continue
        yield frame, frame.batch.slice(0, left)
        left -= min(left, frame.batch.num_rows)
        if left == 0:
            return


def _write_arrow(batches: Iterator[tuple[reader.Frame, Any]], output: Path | None) -> None:
    import pyarrow as pa

    sink = pa.OSFile(str(output), "wb") if output else pa.PythonFile(sys.stdout.buffer, "w")
    writer = None
    for _, batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
    if writer is None:
        raise Error("the stream holds no frame yet: nothing was written")
    writer.close()
    sink.close() if output else sink.flush()


def _write_csv(batches: Iterator[tuple[reader.Frame, Any]], output: Path | None) -> None:
    # csv of the standard library: pyarrow's cannot write lists, and a fixed-size list of 3 is what particles are made
    # of.
    file = output.open("w", newline="", encoding="utf-8") if output else sys.stdout
    try:
        writer = csv.writer(file, lineterminator="\n")
        header = False
        for frame, batch in batches:
            if not header:
                writer.writerow(["frame", "tag", *batch.schema.names])
                header = True
            columns = [column.to_pylist() for column in batch.columns]
            for row in zip(*columns, strict=True):
                writer.writerow([frame.sequence, frame.tag, *(_cell(value) for value in row)])
            file.flush()
    finally:
        if output:
            file.close()


def _cell(value: object) -> object:
    if isinstance(value, list | dict):
        return json.dumps(value, default=str)
    return value.hex() if isinstance(value, bytes) else value


def _write_table(batches: Iterator[tuple[reader.Frame, Any]], output: Path | None) -> None:
    file = output.open("w", encoding="utf-8") if output else sys.stdout
    console = Console(file=file, highlight=False)
    try:
        for frame, batch in batches:
            table = Table(
                title=f"frame {frame.sequence}, tag {frame.tag}: {frame.rows} rows", title_justify="left", box=None
            )
            for field in batch.schema:
                table.add_column(f"{field.name}\n[dim]{str(field.type).replace('[', '(').replace(']', ')')}[/dim]")
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                table.add_row(*(_shown(value) for value in row))
            console.print(table)
    finally:
        if output:
            file.close()


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "(" + ", ".join(_shown(item) for item in value) + ")"
    text = str(_cell(value))
    return (text if len(text) <= 60 else text[:57] + "...").replace("[", r"\[")
