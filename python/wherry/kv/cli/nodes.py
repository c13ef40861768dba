# SPDX-License-Identifier: Apache-2.0
"""`wherry kv nodes`: shows which nodes serve, and how long their leases last."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from wherry.errors import DeadlineExceeded, Error, Unavailable
from wherry.kv.cli.common import UNAVAILABLE, ClusterOption, JsonOption, note, out
from wherry.units import counted

if TYPE_CHECKING:
    from wherry.kv.cluster_file import Cluster


def nodes(
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
    remove: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=7, help="Remove node N from the cluster, until --admit.")
    ] = None,
    admit: Annotated[int | None, typer.Option(metavar="N", min=0, max=7, help="Admit node N again.")] = None,
    start_over: Annotated[
        bool, typer.Option("--start-over", help="After all nodes that had the data were lost: an empty store.")
    ] = False,
) -> None:
    """Show the nodes as the keeper sees them. If the keeper does not answer, show the nodes' own answers (exit status
    4).

    "leads": the number of slots of keys that the node leads, of 256. "lease left": the time for which the node may
    still answer without a message from the keeper. "to fetch": buckets and lanes that a restarted node must still fetch
    from the others.

    Examples:

      wherry kv nodes

      wherry kv nodes --json | jq '.nodes[] | {node, state}'

      wherry kv nodes --remove 2
    """
    from wherry.kv import keeper, running

    where = running.locate(cluster)
    orders = [("remove", remove)] if remove is not None else []
    orders += [("admit", admit)] if admit is not None else []
    orders += [("start_over", 0)] if start_over else []
    for op, number in orders:
        note(keeper.ask(where, op, number))
    if orders:
        return
    try:
        status = keeper.status(where)
    except (Unavailable, DeadlineExceeded) as error:
        found = keeper.ping(where)
        said = {number: found.get(number, "silent") for number in where.numbers}
        if as_json:
            print(json.dumps({"error": str(error), "nodes": [{"node": n, "state": s} for n, s in said.items()]}))
        else:
            table = Table("node", "address", "says", box=None)
            for number, state in said.items():
                table.add_row(str(number), where.nodes[number], coloured(state))
            out().print(table)
            note(str(error))
        raise typer.Exit(0 if where.mode == "static" and found else UNAVAILABLE) from None
    with_processes(status, where)
    if as_json:
        print(json.dumps(status, indent=1))
        return
    _show_nodes(status)


def with_processes(status: dict[str, Any], where: Cluster) -> None:
    """Adds three fields to each node of the keeper's status: its address, its pid (0: unknown), and whether it is
    RTL."""
    pids, rtl = _started(where)
    for node in status["nodes"]:
        node["address"], node["pid"] = where.nodes[node["node"]], pids.get(node["node"], 0)
        node["rtl"] = node["node"] in rtl


def coloured(state: str) -> str:
    """A node's state as text with colour markup."""
    wrong = state in ("silent", "fault", "removed", "refused", "cut off", "not serving")
    colour = "green" if state == "serving" else "red" if wrong else "yellow"
    return f"[{colour}]{escape(state)}[/{colour}]"


def _started(cluster: Cluster) -> tuple[dict[int, int], list[int]]:
    """The pids of the nodes and the numbers of simulated RTL nodes, from the record of `wherry kv up` if there is
    one."""
    from wherry.kv import running

    try:
        up = running.up_of(cluster.path)
    except (Error, OSError):
        return {}, []  # `wherry kv up` did not start the cluster
    return up.nodes, up.rtl


def _show_nodes(status: dict[str, Any]) -> None:
    console = out()
    table = Table("node", "address", "state", box=None)
    for name in ("pid", "leads", "lease left", "to fetch", "frames", "dropped", "retries", "boot"):
        table.add_column(name, justify="right")
    for node in status["nodes"]:
        fetches = node["state"] == "catching up"
        fetch = f"{counted(node['buckets_left'], 'bucket')}, {counted(node['lanes_left'], 'lane')}" if fetches else "-"
        table.add_row(
            f"{node['node']} rtl" if node.get("rtl") else str(node["node"]),
            node["address"],
            coloured(node["state"]),
            str(node["pid"] or "-"),
            str(node["leads"]),
            f"{node['lease_ms']:.0f} ms" if node["lease_ms"] else "-",
            fetch,
            str(node["frames"]),
            str(node["dropped"]),
            str(node["retries"]),
            f"{node['boot']:016x}"[:8],
        )
    console.print(table)
    for node in status["nodes"]:
        if node["state"] == "refused":
            console.print(f"\nnode {node['node']} is refused: {node['refusal']}", markup=False)
    settled = "" if status["settled"] else ", not yet entered by all"
    console.print(f"\ncluster '{status['cluster']}': {status['phase']}, epoch {status['epoch']}{settled}", markup=False)
    if status.get("waits_for"):
        hint = status["waits_for"].replace("`start_over`", "`wherry kv nodes --start-over`")
        console.print(f"waits: {hint}", markup=False)
    for failover in status["failovers"][-3:]:
        removed = ", ".join(map(str, failover["removed"]))
        done = f", in {failover['confirmed_ms']:.0f} ms entered by all" if "confirmed_ms" in failover else ""
        console.print(
            f"epoch {failover['epoch']} removed node {removed}: published {failover['published_ms']:.0f} ms after its "
            f"last word{done}",
            markup=False,
        )
