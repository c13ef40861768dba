# SPDX-License-Identifier: Apache-2.0
"""`wherry kv`: a cluster of the replicated key-value store, its keys and its nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from wherry.cli import App, JsonFileOption, OnlyOption, check_experiments, into, note, progress, show_bench
from wherry.kv.cli import clusters, keys, load, metrics, nodes, resp, snapshot, up
from wherry.kv.cli.top import cluster_top as cluster_top

kv_app = App(
    no_args_is_help=True,
    help="A replicated key-value store. Every key is linearizable; every live node has each acknowledged write "
    "(docs/guide/kv.md)."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry kv up --detach                  three nodes and a keeper on this machine\n\n"
    "  wherry kv put greeting hello           prints the version\n\n"
    "  wherry kv get greeting\n\n"
    "  wherry kv put greeting bye --if-version 1\n\n"
    "  wherry kv nodes                        which nodes serve and lead, and when their leases end\n\n"
    "  wherry kv list                         the clusters that you run\n\n"
    "  wherry kv dump all.kv                  every key into a file, while others write\n\n"
    "  wherry kv load all.kv                  and back, into this or another cluster\n\n"
    "  wherry kv resp                         redis-cli and Redis' client libraries work\n\n"
    "  wherry kv metrics                      what the keeper knows of the nodes, for Prometheus\n\n"
    "  wherry kv bench --seconds 3            throughput and latency\n\n"
    "  wherry kv down\n\n"
    "[bold]Keys[/bold] are numbers of 64 bits: 42, 0x2a, or a text of up to 8 bytes, which stands for the number that "
    "its bytes make (greeting is 0x6772656574696e67). Values are up to 1024 bytes.\n\n"
    "[bold]Exit status[/bold] of get, put, delete: 0 done, 1 no such key or another version, 3 not known whether it "
    "happened, 4 no node answered and nothing was changed, 74 the result could not be written.",
)


def bench(
    json_file: JsonFileOption,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and fewer: a look, not a measurement.")] = False,
    only: OnlyOption = None,
) -> None:
    """Evaluate the replicated key-value store. The benchmark simulates the RTL core, compares it with paper 003's
    tables, and reports its resources. It measures our software nodes in alternation with Redis (WAIT 1) and etcd, and
    the outage after a leader is killed. It skips what cannot be measured on this machine, and names it. A missed target
    is a result: the exit status is 0.

    Examples:

      wherry bench kv --json build/bench-kv.json

      wherry bench kv --json /tmp/quick.json --quick --only software --only failover
    """
    from wherry.kv.bench.run import run
    from wherry.kv.bench.schema import EXPERIMENTS

    experiments = check_experiments(only, EXPERIMENTS)
    with into(json_file):
        result = run(json_file, quick=quick, only=experiments, progress=progress())
    show_bench(result, json_file, quick=quick, only=experiments)
    for name, why in result.not_measured.items():
        note(f"{name}: not measured: {why}")


def add_to(app: App, benches: App) -> None:
    """Adds the group `kv` to `app`, and the benchmark to `wherry bench`."""
    kv_app.command("up")(up.up)
    kv_app.command("down")(up.down)
    kv_app.command("list")(clusters.list_clusters)
    kv_app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
        up.execute
    )
    kv_app.command("get")(keys.get)
    kv_app.command("put")(keys.put)
    kv_app.command("delete")(keys.delete)
    kv_app.command("nodes")(nodes.nodes)
    kv_app.command("dump")(snapshot.dump)
    kv_app.command("load")(snapshot.load)
    kv_app.command("resp")(resp.resp)
    kv_app.command("metrics")(metrics.metrics)
    kv_app.command("bench")(load.load)
    app.add_typer(kv_app, name="kv")
    benches.command("kv")(bench)
