# SPDX-License-Identifier: Apache-2.0
"""`wherry kv up`, `down` and `exec`: a cluster on this machine."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from wherry.errors import DeadlineExceeded, InvalidArgument
from wherry.kv.cli.common import ClusterOption, after, note, out

if TYPE_CHECKING:
    from wherry.kv.cluster_file import Cluster
    from wherry.kv.running import Up


def up(
    nodes: Annotated[int | None, typer.Option(min=1, max=8, help="How many.  [default: 3]")] = None,
    spin: Annotated[bool, typer.Option("--spin", help="Nodes never sleep: faster answers, a core for each.")] = False,
    bucket_bits: Annotated[
        int | None,
        typer.Option(min=8, max=24, help="2^this buckets of 4 keys in each node's memory, 4 KiB each.  [default: 16]"),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="For cluster.toml, which is used if it is there already, the logs and the keeper's state. Default: a "
            "temporary one.",
        ),
    ] = None,
    etcd: Annotated[
        str | None, typer.Option(metavar="URL", help="Keep the configuration in this etcd, as http://127.0.0.1:2379.")
    ] = None,
    ping_ms: Annotated[
        int | None, typer.Option(min=1, help="The keeper asks each node so often.  [default: 100]")
    ] = None,
    misses: Annotated[
        int | None, typer.Option(min=1, help="A node that was silent for so many pings is removed.  [default: 3]")
    ] = None,
    lease_ms: Annotated[int | None, typer.Option(min=5, help="Of a lease.  [default: pings times misses]")] = None,
    name: Annotated[str | None, typer.Option(help="Of the cluster.  [default: local]")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Restart processes that die.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; `wherry kv down` ends the cluster.")
    ] = False,
    xdp: Annotated[
        bool,
        typer.Option(
            "--xdp",
            help="Nodes on AF_XDP, past the kernel, in network namespaces that a switch joins. Takes root; commands "
            "that talk to the cluster enter it (docs/guide/kv-xdp.md).",
        ),
    ] = False,
    rtl: Annotated[
        int,
        typer.Option(
            metavar="K", min=0, max=8, help="Make the first K nodes simulated RTL: the same behaviour, much slower."
        ),
    ] = 0,
    tap: Annotated[
        bool,
        typer.Option(
            "--tap",
            help="With --rtl: those are on TAP devices, and everything else to their addresses passes through them. "
            "Takes root, and network namespaces as --xdp does (docs/design/kv-sim.md).",
        ),
    ] = False,
) -> None:
    """Start a keeper and nodes on this machine, wait until all serve, and stay until Ctrl-C (with --detach: return).

    All data is in the nodes' memory. If all nodes end, the data is lost. The processes end with this command, even if
    it is killed. If a process dies, the command reports it, and with --restart starts it again. A restarted node
    fetches all data from the others before it serves.

    Examples:

      wherry kv up

      wherry kv up --nodes 5 --ping-ms 20 --restart --detach

      wherry kv up --dir ~/lab                    # cluster.toml, logs; edit the file, and run it again

      wherry kv up --etcd http://127.0.0.1:2379

      wherry kv up --nodes 3 --rtl 1              # docs/design/kv-sim.md

      wherry kv up --rtl 1 --tap --detach && wherry kv exec ping -c 1 10.89.0.1

      wherry kv up --xdp --nodes 2 --detach && wherry kv exec ping -c 1 10.89.0.1
    """
    from wherry.kv.options import Options
    from wherry.kv.up import run, run_detached

    if spin and (nodes or 3) >= (os.cpu_count() or 1):
        note(f"warning: {nodes or 3} spinning nodes and {os.cpu_count()} cores: they take turns, which is slow")
    options = Options(
        nodes=nodes,
        bucket_bits=bucket_bits,
        etcd=etcd,
        ping_ms=ping_ms,
        misses=misses,
        lease_ms=lease_ms,
        name=name,
        directory=directory.expanduser() if directory is not None else None,
        spin=spin,
        restart=restart,
        xdp=xdp,
        rtl=rtl,
        tap=tap,
    )
    if not detach:
        raise typer.Exit(run(options, lambda where, status, up: _show_up(where, status, up, "Ctrl-C")))
    code, said = run_detached(options, lambda where, status, up: _described(where, status, up, "wherry kv down"))
    if not said:
        raise typer.Exit(code)
    with after("the cluster runs; its description could not be printed"):
        sys.stdout.write(said)


def _show_up(cluster: Cluster, status: dict[str, Any], running: Up, end: str) -> None:
    console = out()
    console.print(_up_table(cluster, status, running))
    file = shlex.quote(str(cluster.path))
    for text in (
        "",
        f"keeper {cluster.keeper}, pid {running.keeper}; cluster file {file}",
        *(["its network is its own: other programs run with `wherry kv exec`"] if running.namespace else []),
        "try   wherry kv put greeting hello",
        "      wherry kv get greeting",
        "      wherry kv nodes",
        f"      kill -9 {next(iter(running.nodes.values()))}; wherry kv get greeting",
        f"end   {end}",
    ):
        console.print(text, markup=False)


def _described(cluster: Cluster, status: dict[str, Any], running: Up, end: str) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        _show_up(cluster, status, running, end)
    return text.getvalue()


def _up_table(cluster: Cluster, status: dict[str, Any], running: Up) -> Table:
    table = Table("node", "address", "state", box=None)
    table.add_column("pid", justify="right")
    for node in status["nodes"]:
        number = node["node"]
        table.add_row(str(number), cluster.nodes[number], node["state"], str(running.nodes[number] or "-"))
    return table


def down(
    cluster: ClusterOption = None,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="The directory of `up`: the same as --cluster DIR/cluster.toml."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for it to go.")] = 10.0,
) -> None:
    """End the cluster that `wherry kv up` started. Its data is lost.

    Examples:

      wherry kv down

      wherry kv down --cluster ~/lab/cluster.toml
    """
    from wherry.kv import running

    if directory is not None:
        if cluster is not None:
            raise InvalidArgument("--cluster and --dir: give one of them")
        cluster = directory / "cluster.toml"
    named = cluster or (Path(os.environ["WHERRY_KV_CLUSTER"]) if os.environ.get("WHERRY_KV_CLUSTER") else None)
    ended = running.up_of(named.expanduser()) if named is not None else running.newest_up()
    os.kill(ended.pid, signal.SIGTERM)
    end = time.monotonic() + timeout
    while ended.alive():
        if time.monotonic() > end:
            raise DeadlineExceeded(f"pid {ended.pid} runs still, {timeout:g} s after SIGTERM")
        time.sleep(0.01)
    note(f"ended: {ended.cluster}")


def execute(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="A program and its arguments.")],
    cluster: ClusterOption = None,
) -> None:
    """Run a program that can reach the cluster: in the network namespace of `wherry kv up --xdp` or `--tap`, or in this
    one.

    Examples:

      wherry kv exec python program.py

      wherry kv exec ping -c 3 10.89.0.1
    """
    from wherry.kv import running

    where = running.locate(cluster)
    environment = os.environ | {"WHERRY_KV_CLUSTER": str(where.path.absolute())}
    with running.reached(where):
        try:
            os.execvpe(command[0], command, environment)
        except OSError as error:
            raise InvalidArgument(f"{command[0]}: {error.strerror}") from None
