# SPDX-License-Identifier: Apache-2.0
"""A kv cluster in `wherry top`: its nodes as the keeper sees them, with rates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from wherry.errors import DeadlineExceeded, Unavailable
from wherry.kv.cli.common import Meter, TopPart, plain_table, rate_text
from wherry.kv.cli.nodes import coloured, with_processes
from wherry.units import counted, number_text

PATIENCE_S = 1.0
"""The time limit for the keeper's answer, because the page waits for it."""
COUNTERS = ("frames", "dropped", "retries")
"""Counters of a node since its start. The node's `boot` identifies the start."""


def cluster_top(cluster: Path | None, meter: Meter) -> TopPart:
    """The page's part about a cluster, named by its file. None: the default cluster. Raises the errors of
    running.locate()."""
    from wherry.kv import keeper, running

    where = running.locate(cluster)
    try:
        status = keeper.status(where, PATIENCE_S)
    except (Unavailable, DeadlineExceeded) as error:
        said = keeper.ping(where)
        silent: list[dict[str, Any]] = [
            {"node": number, "address": where.nodes[number], "state": said.get(number, "silent")}
            for number in where.numbers
        ]
        table = plain_table(f"kv cluster '{escape(where.name)}'", ("node", "address", "says"), ())
        for node in silent:
            table.add_row(str(node["node"]), node["address"], coloured(node["state"]))
        document = {"cluster": where.name, "keeper_missing": str(error), "nodes": silent}
        return TopPart({"kv": document}, [table, str(error)])
    at = time.monotonic()
    with_processes(status, where)
    for node in status["nodes"]:
        for name in COUNTERS:
            key = where.path.absolute(), node["node"], node["boot"], name
            node[f"{name}_per_second"] = meter.rate(key, node[name], at)
    return TopPart({"kv": status | {"keeper_missing": None}}, _shown(status))


def _shown(status: dict[str, Any]) -> list[Table | str]:
    lanes = status["lanes"]
    title = (
        f"kv cluster '{escape(status['cluster'])}': {status['phase']}, epoch {status['epoch']}"
        f"{'' if status['settled'] else ', not yet entered by all'}, {counted(lanes['clients'], 'client')} with "
        f"{counted(lanes['granted'], 'lane')}"
    )
    table = plain_table(
        title,
        ("node", "address", "state"),
        ("pid", "leads", "lease left", "to fetch", "frames", "dropped", "retries", "in flight"),
    )
    for node in status["nodes"]:
        fetches = node["state"] == "catching up"
        table.add_row(
            f"{node['node']} rtl" if node["rtl"] else str(node["node"]),
            node["address"],
            coloured(node["state"]),
            str(node["pid"] or "-"),
            str(node["leads"]),
            f"{node['lease_ms']:.0f} ms" if node["lease_ms"] else "-",
            counted(node["buckets_left"], "bucket") if fetches else "-",
            *(rate_text(node[f"{name}_per_second"]) for name in COUNTERS),
            number_text(node["in_flight"]),
        )
    shown: list[Table | str] = [table]
    if status.get("waits_for"):
        shown.append(f"waits: {status['waits_for']}".replace("`start_over`", "`wherry kv nodes --start-over`"))
    if status["failovers"]:
        last = status["failovers"][-1]
        shown.append(
            f"epoch {last['epoch']} removed node {', '.join(map(str, last['removed']))}, published "
            f"{last['published_ms']:.0f} ms after its last word"
        )
    return shown
