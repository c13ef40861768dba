# SPDX-License-Identifier: Apache-2.0
"""`wherry kv`: a cluster of the replicated key-value store, its keys and its nodes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wherry import _cli_kv_bench
from wherry._cli_help import App
from wherry._kv_frame import MAX_LANES
from wherry.errors import (
    Cancelled,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)

if TYPE_CHECKING:
    from wherry._kv_cluster import Cluster, Up
    from wherry.kv import Client

NO, UNKNOWN, UNAVAILABLE = 1, 3, 4
"""Exit statuses of get, put and delete: no such key or another version; may have happened; nobody answered."""

kv_app = App(
    no_args_is_help=True,
    help="A replicated key-value store: every key linearizable, what was acknowledged on every live node (docs/kv.md)."
    "\n\n[bold]A first look[/bold]\n\n"
    "  wherry kv up --detach                  three nodes and a keeper on this machine\n\n"
    "  wherry kv put greeting hello           prints the version\n\n"
    "  wherry kv get greeting\n\n"
    "  wherry kv put greeting bye --if-version 1\n\n"
    "  wherry kv nodes                        who serves, leads, and holds a lease until when\n\n"
    "  wherry kv bench --seconds 3            throughput and latency\n\n"
    "  wherry kv down\n\n"
    "[bold]Keys[/bold] are numbers of 64 bits: 42, 0x2a, or a text of up to 8 bytes, which stands for the number that "
    "its bytes make (greeting is 0x6772656574696e67). Values are up to 1024 bytes.\n\n"
    "[bold]Exit status[/bold] of get, put, delete: 0 done, 1 no such key or another version, 3 not known whether it "
    "happened, 4 nobody answered and nothing was changed.",
)


def add_to(app: typer.Typer) -> None:
    """Gives `app` the command kv."""
    kv_app.command("bench")(_cli_kv_bench.bench)
    app.add_typer(kv_app, name="kv")


def out() -> Console:
    """The console for results."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if terminal else 160, soft_wrap=not terminal, highlight=False)


def note(text: str) -> None:
    """A line for people, on standard error."""
    print(text, file=sys.stderr, flush=True)


ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="The cluster file. Default: $WHERRY_KV_CLUSTER, or that of your newest `wherry kv up`.",
    ),
]
KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="Decimal, 0x and hexadecimal, or up to 8 bytes of text.")
]
TextOption = Annotated[bool, typer.Option("--text", help="KEY is a text, even if it looks like a number.")]
IfVersionOption = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", min=0, max=2**32 - 1, help="Only if the key has this version."),
]
TimeoutOption = Annotated[float, typer.Option(min=0.001, help="Seconds.")]
LaneOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MAX_LANES - 1,
        help="Static lane to write with, which no other client uses. Default: one that the keeper grants; in mode "
        "static, one of the cluster's last 64, which your commands on this machine share out among themselves.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]


# ---- up and down


@kv_app.command("up")
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
    restart: Annotated[bool, typer.Option("--restart", help="Start again what dies.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="In the background; `wherry kv down` ends it.")] = False,
    xdp: Annotated[
        bool,
        typer.Option(
            "--xdp",
            help="Nodes on AF_XDP, past the kernel, in network namespaces that a switch joins. Takes root; commands "
            "that talk to the cluster enter it (docs/kv-xdp.md).",
        ),
    ] = False,
    rtl: Annotated[
        int,
        typer.Option(
            metavar="K", min=0, max=8, help="The first K nodes are the hardware's RTL, simulated: slow, and the same."
        ),
    ] = 0,
    tap: Annotated[
        bool,
        typer.Option(
            "--tap",
            help="With --rtl: those are on TAP devices, and everything else to their addresses passes through them. "
            "Takes root, and network namespaces as --xdp does (docs/kv-sim.md).",
        ),
    ] = False,
) -> None:
    """Start a keeper and nodes on this machine, wait until all serve, and stay until Ctrl-C (or, with --detach, not).

    Everything is in the nodes' memory: what ends all of them ends the data. Whatever way this command ends, the
    processes end with it. One that dies is reported, and started again with --restart: a node then fetches everything
    from the others before it serves.

    Examples:

      wherry kv up

      wherry kv up --nodes 5 --ping-ms 20 --restart --detach

      wherry kv up --dir ~/lab                    # cluster.toml, logs; edit the file, and run it again

      wherry kv up --etcd http://127.0.0.1:2379

      wherry kv up --nodes 3 --rtl 1              # docs/kv-sim.md

      wherry kv up --rtl 1 --tap --detach && wherry kv exec ping -c 1 10.89.0.1

      wherry kv up --xdp --nodes 2 --detach && wherry kv exec ping -c 1 10.89.0.1
    """
    from wherry import _kv_up

    if spin and (nodes or 3) >= (os.cpu_count() or 1):
        note(f"warning: {nodes or 3} spinning nodes and {os.cpu_count()} cores: they take turns, which is slow")
    options = _kv_up.Options(
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
        raise typer.Exit(_kv_up.run(options, lambda where, status, up: _show_up(where, status, up, "Ctrl-C")))
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.setsid()
        raise typer.Exit(_kv_up.run(options, lambda where, status, up: _go_to_background(write, where, status, up)))
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    if not said:  # it has said why
        raise typer.Exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or 1)
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


def _go_to_background(write: int, cluster: Cluster, status: dict[str, Any], running: Up) -> None:
    """Says what the foreground shows, and from then on talks to a log."""
    import io
    from contextlib import redirect_stdout

    text = io.StringIO()
    with redirect_stdout(text):
        _show_up(cluster, status, running, "wherry kv down")
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(cluster.path.parent / "up.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with os.fdopen(write, "w") as pipe:
        pipe.write(text.getvalue())


def _up_table(cluster: Cluster, status: dict[str, Any], running: Up) -> Table:
    table = Table("node", "address", "state", box=None)
    table.add_column("pid", justify="right")
    for node in status["nodes"]:
        number = node["node"]
        table.add_row(str(number), cluster.nodes[number], node["state"], str(running.nodes[number] or "-"))
    return table


@kv_app.command("down")
def down(
    cluster: ClusterOption = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for it to go.")] = 10.0,
) -> None:
    """End the cluster that `wherry kv up` started, and with it its data.

    Examples:

      wherry kv down

      wherry kv down --cluster ~/lab/cluster.toml
    """
    from wherry import _kv_cluster

    named = cluster or (Path(os.environ["WHERRY_KV_CLUSTER"]) if os.environ.get("WHERRY_KV_CLUSTER") else None)
    running = _kv_cluster.up_of(named.expanduser()) if named is not None else _kv_cluster.newest_up()
    os.kill(running.pid, signal.SIGTERM)
    end = time.monotonic() + timeout
    while running.alive():
        if time.monotonic() > end:
            raise DeadlineExceeded(f"pid {running.pid} runs still, {timeout:g} s after SIGTERM")
        time.sleep(0.01)
    note(f"ended: {running.cluster}")


@kv_app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def execute(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="A program and its arguments.")],
    cluster: ClusterOption = None,
) -> None:
    """Run a program where clients of the cluster are: in the network of `wherry kv up --xdp` or `--tap`, or here.

    Examples:

      wherry kv exec python program.py

      wherry kv exec ping -c 3 10.89.0.1
    """
    from wherry import _kv_cluster

    where = _kv_cluster.locate(cluster)
    environment = os.environ | {"WHERRY_KV_CLUSTER": str(where.path.absolute())}
    with _kv_cluster.reached(where):
        try:
            os.execvpe(command[0], command, environment)
        except OSError as error:
            raise InvalidArgument(f"{command[0]}: {error.strerror}") from None


# ---- keys


@contextmanager
def _outcomes() -> Iterator[None]:
    """What became of an operation, as an exit status and a line."""
    try:
        yield
    except NotFound:
        note("no such key")
        raise typer.Exit(NO) from None
    except FailedPrecondition as error:
        found = int(getattr(error, "version", 0))
        note(f"another version: it is {found}" if found else "another version: there is no such key")
        raise typer.Exit(NO) from None
    except (DeadlineExceeded, Cancelled) as error:
        note(f"unknown: {error}")
        raise typer.Exit(UNKNOWN) from None
    except Unavailable as error:
        note(f"unavailable: {error}")
        raise typer.Exit(UNAVAILABLE) from None


def _reader(cluster: Cluster, timeout: float, node: int | None = None) -> Client:
    from wherry._kv_cluster import reached
    from wherry.kv import Client

    nodes = cluster.nodes
    if node is not None:
        if node not in cluster.numbers:
            raise InvalidArgument(f"cluster '{cluster.name}' has no node {node}")
        nodes = [address if number == node else "" for number, address in enumerate(nodes)]
    with reached(cluster):
        return Client(nodes, deadline=timeout, connect_timeout=timeout, lanes=0)


def _writer(cluster: Cluster, timeout: float, lane: int | None) -> Client:
    from wherry._kv_cluster import reached
    from wherry.kv import Client

    with reached(cluster):
        return Client(cluster=cluster.path, deadline=timeout, connect_timeout=timeout, first_lane=lane)


@kv_app.command("get")
def get(
    key: KeyArgument,
    cluster: ClusterOption = None,
    text: TextOption = False,
    as_hex: Annotated[bool, typer.Option("--hex", help="The value in hexadecimal.")] = False,
    output: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The value's bytes, exactly; - is standard output.")
    ] = None,
    as_json: JsonOption = False,
    node: Annotated[int | None, typer.Option(min=0, max=7, help="Ask this node alone.")] = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Print the value of a key: as text if it is one, else 0x and hexadecimal. The version goes to standard error.

    Examples:

      wherry kv get greeting

      wherry kv get 42 --out value.bin

      wherry kv get 0x2a --json | jq .version
    """
    from wherry import _kv_cluster

    number = _kv_cluster.parse_key(key, text)
    where = _kv_cluster.locate(cluster)
    with _outcomes():
        value, version = _reader(where, timeout, node).get(number)
    if as_json:
        print(json.dumps({"key": number, "version": version, **_value_fields(value)}))
        return
    if output is not None and str(output) != "-":
        output.write_bytes(value)
    elif output is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
    else:
        shown = None if as_hex else _as_text(value)
        print(value.hex() if as_hex else f"0x{value.hex()}" if shown is None else shown)
    note(f"version {version}")


def _as_text(value: bytes) -> str | None:
    """None if it is none: control characters would do things to a terminal."""
    try:
        decoded = value.decode()
    except UnicodeDecodeError:
        return None
    return decoded if all(c.isprintable() or c in "\n\t" for c in decoded) else None


def _value_fields(value: bytes) -> dict[str, str]:
    decoded = _as_text(value)
    return {"hex": value.hex()} | ({} if decoded is None else {"text": decoded})


def _value_of(word: str, as_hex: bool) -> bytes:
    if as_hex:
        try:
            return bytes.fromhex(word.removeprefix("0x"))
        except ValueError:
            raise InvalidArgument(f"--hex: '{word}' is not hexadecimal") from None
    if word == "-":
        return sys.stdin.buffer.read(1 << 16)
    if word.startswith("@"):
        with Path(word[1:]).expanduser().open("rb") as file:
            return file.read(1 << 16)  # more than a value can be: the client says so
    return word.encode(errors="surrogateescape")


@kv_app.command("put")
def put(
    key: KeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE|-|@FILE", help="A text; standard input; a file's bytes.")],
    cluster: ClusterOption = None,
    if_version: IfVersionOption = None,
    text: TextOption = False,
    as_hex: Annotated[bool, typer.Option("--hex", help="VALUE is hexadecimal.")] = False,
    as_json: JsonOption = False,
    lane: LaneOption = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Write a key; prints its new version. With --if-version 0: only if there is no such key.

    Examples:

      wherry kv put greeting hello

      wherry kv put greeting bye --if-version 3 || echo somebody was faster

      wherry kv put 42 @value.bin
    """
    from wherry import _kv_cluster

    number, data = _kv_cluster.parse_key(key, text), _value_of(value, as_hex)
    where = _kv_cluster.locate(cluster)
    with _kv_cluster.own_lane(where, lane) as mine, _outcomes():
        store = _writer(where, timeout, mine)
        version = store.put(number, data) if if_version is None else store.put_if(number, data, if_version)
    print(json.dumps({"key": number, "version": version}) if as_json else f"version {version}")


@kv_app.command("delete")
def delete(
    key: KeyArgument,
    cluster: ClusterOption = None,
    if_version: IfVersionOption = None,
    text: TextOption = False,
    lane: LaneOption = None,
    timeout: TimeoutOption = 5.0,
) -> None:
    """Delete a key. The exit status is 1 if there is none, or, with --if-version, if it has another version.

    Examples:

      wherry kv delete greeting

      wherry kv delete greeting --if-version 4
    """
    from wherry import _kv_cluster

    number = _kv_cluster.parse_key(key, text)
    where = _kv_cluster.locate(cluster)
    with _kv_cluster.own_lane(where, lane) as mine, _outcomes():
        store = _writer(where, timeout, mine)
        if if_version is None:
            store.remove(number)
        else:
            store.remove_if(number, if_version)


# ---- nodes


@kv_app.command("nodes")
def nodes(
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
    remove: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=7, help="Take node N out, until --admit.")
    ] = None,
    admit: Annotated[int | None, typer.Option(metavar="N", min=0, max=7, help="Let node N in again.")] = None,
    start_over: Annotated[
        bool, typer.Option("--start-over", help="After all nodes that had the data were lost: an empty store.")
    ] = False,
) -> None:
    """What the keeper knows of the nodes; or, if it does not answer, what the nodes say (exit status 4).

    "leads": how many of the 256 slots of keys. "lease left": how long it may still answer without hearing from the
    keeper. "to fetch": buckets and lanes that a node that came back still gets from the others.

    Examples:

      wherry kv nodes

      wherry kv nodes --json | jq '.nodes[] | {node, state}'

      wherry kv nodes --remove 2
    """
    from wherry import _kv_cluster

    where = _kv_cluster.locate(cluster)
    orders = [("remove", remove)] if remove is not None else []
    orders += [("admit", admit)] if admit is not None else []
    orders += [("start_over", 0)] if start_over else []
    for op, number in orders:
        note(_kv_cluster.ask(where, op, number))
    if orders:
        return
    try:
        status = _kv_cluster.status(where)
    except (Unavailable, DeadlineExceeded) as error:
        found = _kv_cluster.ping(where)
        said = {number: found.get(number, "silent") for number in where.numbers}
        if as_json:
            print(json.dumps({"error": str(error), "nodes": [{"node": n, "state": s} for n, s in said.items()]}))
        else:
            table = Table("node", "address", "says", box=None)
            for number, state in said.items():
                table.add_row(str(number), where.nodes[number], state)
            out().print(table)
            note(str(error))
        raise typer.Exit(0 if where.mode == "static" and found else UNAVAILABLE) from None
    pids, rtl = _started(where)
    for node in status["nodes"]:
        node["address"], node["pid"] = where.nodes[node["node"]], pids.get(node["node"], 0)
        node["rtl"] = node["node"] in rtl
    if as_json:
        print(json.dumps(status, indent=1))
        return
    _show_nodes(status)


def _started(cluster: Cluster) -> tuple[dict[int, int], list[int]]:
    """Pids of the nodes, and those that are simulated RTL, as far as a `wherry kv up` knows."""
    from wherry import _kv_cluster

    try:
        up = _kv_cluster.up_of(cluster.path)
    except (Error, OSError):
        return {}, []  # started otherwise
    return up.nodes, up.rtl


def _show_nodes(status: dict[str, Any]) -> None:
    console = out()
    table = Table("node", "address", "state", box=None)
    for name in ("pid", "leads", "lease left", "to fetch", "frames", "dropped", "retries", "boot"):
        table.add_column(name, justify="right")
    for node in status["nodes"]:
        state = node["state"]
        colour = (
            "green"
            if state == "serving"
            else "red"
            if state in ("silent", "fault", "removed", "refused", "cut off")
            else "yellow"
        )
        fetch = f"{node['buckets_left']} buckets, {node['lanes_left']} lanes" if state == "catching up" else "-"
        table.add_row(
            f"{node['node']} rtl" if node.get("rtl") else str(node["node"]),
            node["address"],
            f"[{colour}]{escape(state)}[/{colour}]",
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
