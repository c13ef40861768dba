# SPDX-License-Identifier: Apache-2.0
"""`wherry kv bench`: runs the program kv_load, and shows its results as a table."""

from __future__ import annotations

import enum
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from wherry.errors import Error, InvalidArgument
from wherry.kv.cli.common import whole_number
from wherry.kv.generated.frame import MAX_LANES
from wherry.units import counted

KEYS_IN_BUCKET = 4
"""Keys in a bucket. The table has 2^bucket_bits buckets (`wherry kv up --help`). Keys 1, 2, 3 ... fill the buckets
evenly, because the hash is linear."""


class ReadFrom(enum.StrEnum):
    """The node to ask first."""

    nearest = "nearest"
    round_robin = "round_robin"
    leader = "leader"


def load(
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="FILE", help="Default: $WHERRY_KV_CLUSTER, or your newest `wherry kv up`."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.01, help="Duration of the measurement, after 0.3 s of warming up.")
    ] = 3.0,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Threads, each with a client of its own.")] = 1,
    depth: Annotated[int, typer.Option(min=1, max=1024, help="Operations in flight of each; 1: one at a time.")] = 1,
    reads: Annotated[int, typer.Option(min=0, help="Share of reads.")] = 90,
    writes: Annotated[int, typer.Option(min=0, help="Share of writes.")] = 10,
    conditional: Annotated[
        int, typer.Option(min=0, help="Share of conditional writes, with the version last seen.")
    ] = 0,
    value_bytes: Annotated[int, typer.Option(min=0, max=1024, help="Bytes of each value.")] = 64,
    keys: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="Number of keys; all are written first, unless --no-fill. Also as 1e4.",
        ),
    ] = 10_000,
    zipf: Annotated[float, typer.Option(min=0, max=10, help="Exponent of the keys' distribution; 0: uniform.")] = 0.0,
    read_from: Annotated[ReadFrom, typer.Option("--from", help="The node to ask first.")] = ReadFrom.nearest,
    first_lane: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_LANES - 1,
            help="Static lanes: clients times depth of them from here are this program's alone. Default: the keeper "
            "grants them; in mode static, 0.",
        ),
    ] = None,
    spin: Annotated[bool, typer.Option("--spin", help="Clients never sleep: faster answers, a core for each.")] = False,
    xdp: Annotated[
        str | None,
        typer.Option(
            metavar="IFACE",
            help="The client on AF_XDP there, past the kernel: eth0 with `up --xdp`; or several, eth0,eth1. As root.",
        ),
    ] = None,
    fill: Annotated[bool, typer.Option("--fill/--no-fill", help="Write every key once, first.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="What the program printed, for programs.")] = False,
) -> None:
    """Load a cluster and report its operations per second, their latency, and their outcomes.

    Overwrites keys 1, 2, 3 ... of the cluster. With --depth 1 it measures latency, with a larger depth also throughput.
    Latency is the time of a successful operation, from before the request is sent until the answer is received.

    Examples:

      wherry kv bench

      wherry kv bench --depth 32 --clients 2 --reads 50 --writes 50 --value-bytes 1024

      wherry kv bench --xdp eth0 --spin           with `wherry kv up --xdp --spin`

      wherry kv bench --zipf 0.99 --conditional 5 --json | jq .operations.write.p99_us
    """
    from wherry.kv import programs, running

    if keys < 1:
        raise typer.BadParameter(f"{keys}: want 1 or more", param_hint="--keys")
    where = running.locate(cluster)
    flight = f"{counted(clients, 'client')} with {counted(depth, 'operation')} in flight"
    if first_lane is None and where.mode == "static":
        first_lane = 0
    if first_lane is None and clients * depth > where.lanes - where.static_lanes:
        raise InvalidArgument(
            f"{flight}: {counted(clients * depth, 'lane')}; the keeper of cluster "
            f"'{where.name}' grants {where.lanes - where.static_lanes}"
        )
    if first_lane is not None and first_lane + clients * depth > where.static_lanes:
        raise InvalidArgument(
            f"{flight}: lanes {first_lane} to "
            f"{first_lane + clients * depth - 1}; of cluster '{where.name}' those below {where.static_lanes} are static"
        )
    room = KEYS_IN_BUCKET << where.bucket_bits
    if keys > room:
        raise InvalidArgument(
            f"--keys {keys}: cluster '{where.name}' has room for {room} keys; start it with a larger --bucket-bits, "
            f"{(keys - 1).bit_length() - KEYS_IN_BUCKET.bit_length() + 1} for so many"
        )
    words: dict[str, object] = {
        "--seconds": seconds,
        "--clients": clients,
        "--depth": depth,
        "--reads": reads,
        "--writes": writes,
        "--conditional": conditional,
        "--value-bytes": value_bytes,
        "--keys": keys,
        "--zipf": zipf,
        "--read-from": read_from.value,
        "--cluster": where.path,
    }
    if first_lane is not None:
        words["--first-lane"] = first_lane
    command = programs.load(*(text for flag, value in words.items() for text in (flag, str(value))))
    command += ["--xdp", xdp] if xdp else []
    command += (["--spin"] if spin else []) + ([] if fill else ["--no-fill"])
    with running.reached(where):
        done = programs.finished(command)
    if done.returncode != 0:
        raise Error(done.stderr.strip().removeprefix("kv_load: ") or f"kv_load ended with status {done.returncode}")
    if as_json:
        print(done.stdout, end="")
        return
    _show(json.loads(done.stdout))


def _show(result: dict[str, Any]) -> None:
    console = Console(file=sys.stdout, soft_wrap=True, highlight=False)
    table = Table("operation", box=None)
    for name in ("a second", "p50 us", "p99 us", "p99.9 us", "longest us"):
        table.add_column(name, justify="right")
    table.add_column("how they ended")
    for name, verb in result["operations"].items():
        figures = [f"{verb[key]:.1f}" for key in ("p50_us", "p99_us", "p999_us", "max_us")]
        ended = ", ".join(f"{count} {outcome}" for outcome, count in verb["outcomes"].items())
        table.add_row(name, f"{verb['per_second']:,.0f}", *figures, ended)
    console.print(table)
    client = ", ".join(f"{count} {name}" for name, count in result["client"].items())
    console.print(f"\n{result['ok_per_second']:,.0f} a second in all; clients: {client}", markup=False)
