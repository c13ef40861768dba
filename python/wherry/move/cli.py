# SPDX-License-Identifier: Apache-2.0
"""The commands of move: `wherry streams`, `cat` and `bench move`."""

from __future__ import annotations

import csv
import dataclasses
import enum
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wherry.cli import (
    AgentOption,
    AgentPart,
    AgentReading,
    App,
    JsonFileOption,
    Meter,
    OnlyOption,
    TopPart,
    bound_of_share,
    check_experiments,
    into,
    note,
    out,
    plain_table,
    rate_text,
    show_bench,
)
from wherry.errors import Error
from wherry.units import bytes_text, counted, number_text, time_text

if TYPE_CHECKING:  # commands import them when needed: pyarrow and numpy take half of the start time
    from wherry.move import reader
    from wherry.move.connection import Agent


def add_to(app: App, benches: App) -> None:
    """Adds these commands to `app` and `wherry bench`."""
    app.command()(streams)
    app.command()(cat)
    benches.command("move")(bench)


def agent_status(session: Agent) -> AgentPart:
    """move's part of `wherry agent status`: the streams that the agent holds."""
    from wherry.move import reader

    found = reader.streams(session)
    return AgentPart({"streams": [dataclasses.asdict(stream) for stream in found]}, _streams_table(found))


def agent_top(reading: AgentReading, meter: Meter) -> TopPart:
    """move's part of `wherry top`: streams and offloads."""
    from wherry.move import reader

    at = time.monotonic()
    found = []
    for stream in reader.streams(reading.session):
        name = f"stream {stream.name}"
        frames = meter.rate(reading.of_this_agent(f"{name}: frames"), stream.total_frames, at)
        moved = meter.rate(reading.of_this_agent(f"{name}: bytes"), stream.total_bytes, at)
        found.append(dataclasses.asdict(stream) | {"frames_per_second": frames, "bytes_per_second": moved})
    shown: list[Table | str] = []
    with_operators = any(one["derived"] or one["source"] for one in found)
    texts = ("stream", "state", "operators") if with_operators else ("stream", "state")
    table = plain_table("Streams", texts, ("held", "bytes held", "frames", "moved", "unread", "lost files"))
    for one in found:
        table.add_row(
            escape(one["name"]),
            "open" if one["open"] else "ended",
            *([escape(_operators(one))] if with_operators else []),
            number_text(one["held_frames"]),
            bytes_text(one["held_bytes"]),
            rate_text(one["frames_per_second"]),
            rate_text(one["bytes_per_second"], of_bytes=True),
            number_text(one["evicted_unread"]),
            number_text(one["sink_errors"]),
        )
    shown.append(table if found else "no streams yet")
    document: dict[str, object] = {"streams": found, "move": None}
    if reading.metrics:
        document["move"], offloads = _offloads(reading, meter)
        shown.append(offloads)
    return TopPart(document, shown)


def _operators(stream: dict[str, Any]) -> str:
    """The state of a stream's operators, in a few words. Empty: it has none."""
    if stream["source"]:
        return f"result of {stream['source']}"
    if not stream["derived"]:
        return ""
    counts = {"behind": "operator_lag", "failed": "operator_errors", "missed": "operator_skipped"}
    return ", ".join(f"{stream[count]} {word}" for word, count in counts.items() if stream[count]) or "up to date"


def _offloads(reading: AgentReading, meter: Meter) -> tuple[dict[str, object], Table]:
    """The counts, rates and times of all offloads of the agent, as JSON and as a table."""
    figures: dict[str, Any] = {"queued": int(reading.value("wherry_move_queued"))}
    for name in ("offloads", "bytes", "failed", "busy"):
        counter = f"wherry_move_{name}_total"
        figures |= {f"{name}_total": int(reading.value(counter)), f"{name}_per_second": reading.rate(meter, counter)}
    counter = "wherry_move_transfer_nanoseconds_total"
    spent_ns = reading.rate(meter, counter)  # nanoseconds in each second
    offloads, offloads_per_second = figures["offloads_total"], figures["offloads_per_second"]
    lately = spent_ns / offloads_per_second / 1e9 if spent_ns is not None and offloads_per_second else None
    always = reading.value(counter) / offloads / 1e9 if offloads else None
    means = {"interval": lately, "all": always}
    figures["transfer_mean_us"] = {name: None if mean is None else 1e6 * mean for name, mean in means.items()}
    within = _within(reading, meter)
    figures["transfer_within_us"] = {
        when: {name: _finite_us(bound) for name, bound in bounds.items()} for when, bounds in within.items()
    }
    columns = ("offloads", "bytes", "failed", "waited", "mean transfer", "half within", "99 % within")
    table = plain_table("Offloads", ("",), columns)
    rates = [figures[f"{one}_per_second"] for one in ("offloads", "bytes", "failed", "busy")]
    totals = [figures[f"{one}_total"] for one in ("offloads", "bytes", "failed", "busy")]
    now = (rate_text(rate, of_bytes=i == 1) for i, rate in enumerate(rates))
    table.add_row("now", *now, _time(lately), *(_time(bound) for bound in within["interval"].values()))
    amounts = (bytes_text(total) if i == 1 else number_text(total) for i, total in enumerate(totals))
    table.add_row("in all", *amounts, _time(always), *(_time(bound) for bound in within["all"].values()))
    return figures, table


def _within(reading: AgentReading, meter: Meter) -> dict[str, dict[str, float | None]]:
    """The time in seconds within which 50 % and 99 % of the transfers ended, as upper bounds from the histogram's
    buckets."""
    name = "wherry_move_transfer_seconds"
    buckets = reading.buckets(name)
    before = meter.since(reading.of_this_agent(name), buckets, reading.at)
    shares = {"p50": 0.5, "p99": 0.99}
    return {
        "interval": {
            key: None if before is None else bound_of_share(buckets, before[0], share) for key, share in shares.items()
        },
        "all": {key: bound_of_share(buckets, {}, share) for key, share in shares.items()},
    }


def _finite_us(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else 1e6 * seconds


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "> 10 s" if math.isinf(seconds) else time_text(seconds)


def streams(
    agent: AgentOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array, for programs.")] = False,
) -> None:
    """List the streams that the agent holds.

    Examples:

      wherry streams

      wherry streams --json | jq '.[].name'
    """
    from wherry.move import reader

    found = reader.streams(agent)
    if as_json:
        print(json.dumps([dataclasses.asdict(stream) for stream in found], indent=1))
    else:
        out().print(_streams_table(found))


def _streams_table(found: Sequence[reader.StreamStatus]) -> Table | str:
    if not found:
        return "no streams yet"
    table = Table("stream", "strategy", "state", box=None)
    for name in ("frames held", "of", "bytes held", "bytes moved"):
        table.add_column(name, justify="right")
    failed = [
        f"{stream.name}: frames that did not become files: {stream.sink_errors}; the first: {stream.sink_error}"
        for stream in found
        if stream.sink_errors
    ]
    failed += [
        f"{stream.name}: frames for which an operator failed: {stream.operator_errors}; the first: "
        f"{stream.operator_error}"
        for stream in found
        if stream.operator_errors
    ]
    failed += [
        f"{stream.name}: frames that went before its operators came to them: {stream.operator_skipped}"
        for stream in found
        if stream.operator_skipped
    ]
    if failed:
        table.caption, table.caption_justify = escape("\n".join(failed)), "left"
    for stream in found:
        state = "open" if stream.open else "ended"
        if stream.operator_lag:
            state += f", operators {stream.operator_lag} frames behind"
        if stream.source:
            state += ", derived"
        elif stream.parts:
            state += f", {stream.open_parts} of {stream.parts} parts"
            state += f", {stream.discarded_steps} steps discarded" if stream.discarded_steps else ""
        counts = (
            str(stream.held_frames),
            str(stream.total_frames),
            bytes_text(stream.held_bytes),
            bytes_text(stream.total_bytes),
        )
        table.add_row(stream.name, stream.strategy, state, *counts)
    return table


class Format(enum.StrEnum):
    """The output format of `wherry cat`."""

    table = "table"
    csv = "csv"
    arrow = "arrow"


def cat(
    stream: Annotated[str, typer.Argument(help="The stream's name, as in `wherry streams`.")],
    limit: Annotated[int | None, typer.Option(min=0, help="Rows to write. Default: 20 for a table, else all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for frames to come until the stream ends.")] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="table, csv, or arrow (an Arrow IPC stream).")
    ] = Format.table,
    output: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: standard output.")] = None,
    agent: AgentOption = None,
) -> None:
    """Read a stream of this machine's agent without a copy, and write it to standard output.

    Examples:

      wherry cat particles --limit 5                     # the first rows

      wherry cat particles --format csv > particles.csv

      wherry cat particles --format arrow --out p.arrow  # all frames

      wherry cat particles --follow                      # until the stream ends
    """
    if limit is None and format_ is Format.table and not follow:
        limit = 20
    if format_ is Format.arrow and output is None and sys.stdout.isatty():
        raise typer.BadParameter("Arrow is not text: give --out FILE, or redirect the output", param_hint="--format")
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
    """Yields (frame, batch) until `limit` rows were yielded in total."""
    left = limit
    for frame in source:
        if frame.skipped:
            lost = f"{counted(frame.skipped, 'frame')} before frame {frame.sequence}"
            note(f"wherry: {lost} {'was' if frame.skipped == 1 else 'were'} gone before being read")
        for batch in frame.batches:  # one for each part
            yield frame, batch if left is None else batch.slice(0, left)
            if left is not None:
                left -= min(left, batch.num_rows)
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
    # Uses the standard library's csv module, because pyarrow's cannot write lists, and particles are fixed-size lists
    # of 3.
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
            # A separate line, because a table's title would wrap at the table's width.
            of = "" if len(frame.batches) == 1 else f" in {len(frame.batches)} parts"
            console.print(f"frame {frame.sequence}, tag {frame.tag}: {counted(frame.rows, 'row')}{of}", soft_wrap=True)
            table = Table(box=None)
            for field in batch.schema:
                table.add_column(f"{field.name}\n[dim]{str(field.type).replace('[', '(').replace(']', ')')}[/dim]")
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                table.add_row(*(_shown(value) for value in row))
            console.print(table)
    finally:
        if output:
            file.close()


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "(" + ", ".join(_shown(item) for item in value) + ")"
    text = str(_cell(value))
    return (text if len(text) <= 60 else text[:57] + "...").replace("[", r"\[")


def bench(
    json_file: JsonFileOption,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and repetitions: a look, not a measurement.")
    ] = False,
    only: OnlyOption = None,
) -> None:
    """Repeat the evaluation of paper 004 on this machine, as ratios. The benchmark writes JSON, and prints tables and
    the targets. A missed target is a result: the exit status is 0.

    Examples:

      wherry bench move --json build/bench-move.json

      wherry bench move --json /tmp/quick.json --quick --only initiate --only bandwidth

      wherry report build/bench-move.json
    """
    from wherry.move.bench.run import run
    from wherry.move.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments)
    show_bench(result, json_file, quick=quick, only=experiments)
