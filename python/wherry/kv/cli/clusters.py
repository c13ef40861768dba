# SPDX-License-Identifier: Apache-2.0
"""`wherry kv list`: the clusters of this user on this machine."""

from __future__ import annotations

import json

from rich.markup import escape
from rich.table import Table

from wherry.errors import Error
from wherry.kv.cli.common import JsonOption, out


def list_clusters(as_json: JsonOption = False) -> None:
    """List your running clusters that `wherry kv up` started, the newest last.

    A star marks the cluster that commands use, unless --cluster or $WHERRY_KV_CLUSTER names another file.

    Examples:

      wherry kv list

      wherry kv list --json | jq '.[].cluster'
    """
    from wherry.kv import cluster_file, running

    found = []
    for up in running.all_ups():
        try:
            cluster = cluster_file.load(up.cluster)
        except (Error, OSError) as error:  # the cluster runs, even if its file was removed
            name, keeper = "-", str(error)
        else:
            name, keeper = cluster.name, cluster.keeper
        nodes = sum(pid != 0 for pid in up.nodes.values())
        found.append({"name": name, "cluster": str(up.cluster), "keeper": keeper, "pid": up.pid,
                      "nodes": len(up.nodes), "nodes_running": nodes})  # fmt: skip
    if as_json:
        print(json.dumps(found, indent=1))
        return
    if not found:
        out().print("no `wherry kv up` of this user runs", markup=False)
        return
    table = Table("", "name", "keeper", "cluster file", box=None)
    for title in ("nodes", "pid"):
        table.add_column(title, justify="right")
    for one in found:
        table.add_row(
            "*" if one is found[-1] else "",
            escape(str(one["name"])),
            escape(str(one["keeper"])),
            escape(str(one["cluster"])),
            f"{one['nodes_running']} of {one['nodes']}",
            str(one["pid"]),
        )
    out().print(table)
