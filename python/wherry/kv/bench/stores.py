# SPDX-License-Identifier: Apache-2.0
"""The stores that `wherry bench kv` compares, and their clients. Each store is a leader and a follower on this
machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.errors import BenchError
from wherry.kv import network, programs
from wherry.kv.bench.processes import Processes, how_it_ended
from wherry.kv.bench.schema import BENCHMARK
from wherry.version import VERSION

KEYS = 1000
READY_S = 20.0
TRY_S = 60
MOST_S = 2.0
"""The longest measurement. A measurement in which no operation ended is repeated with twice the time, up to this."""
VERBS = {"read": "read", "leader_write": "write"}
"""The operations, and their names in the clients' output."""

Enter = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Placement:
    """The cores of the three processes, and how the client waits."""

    leader: frozenset[int]
    follower: frozenset[int]
    client: frozenset[int]
    idle: str
    """"spin", "yield" (to other processes on its core) or "sleep"."""

    def __str__(self) -> str:
        cores = [",".join(map(str, sorted(of))) for of in (self.leader, self.follower, self.client)]
        return "leader on core {}, follower on {}, client on {}, which waits by: {}".format(*cores, self.idle)


def placements(a: int, b: int) -> list[Placement]:
    """The candidate placements of peers, whose servers sleep between requests."""
    one, two, both = frozenset({a}), frozenset({b}), frozenset({a, b})
    cores = [(one, two, two), (one, one, two), (both, both, both)]
    return [Placement(*who, idle) for who in cores for idle in ("spin", "yield", "sleep")]


@contextmanager
def memory_directory() -> Iterator[Path]:
    """A temporary directory in memory if possible, so that the disk does not slow down stores that write files."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with BENCHMARK.scratch_directory(base) as directory:
        yield directory


class Store(ABC):
    """A leader and a follower. They run from start() until `stack` is closed."""

    name: str
    version = ""
    most_in_flight = 1024

    def __init__(self, stack: ExitStack, directory: Path, *, leader_in: Enter | None = None,
                 follower_in: Enter | None = None, client_in: Enter | None = None) -> None:  # fmt: skip
        """`..._in`: a function that the process calls first, for example to enter a namespace."""
        self._directory = directory
        self._enter = {"leader": leader_in, "follower": follower_in, "client": client_in}
        self._processes = Processes(self.name, directory)
        stack.callback(self._processes.close)
        self._client_in = client_in

    def start_process(self, role: str, command: Sequence[str], cores: frozenset[int] | None = None) -> None:
        """Starts a process whose output goes to a file. If the process dies, the error quotes the end of that file."""
        self._processes.start(role, command, cores, self._enter[role])

    def until(self, ready: Callable[[], bool], what: str) -> None:
        """Waits until ready() is true. Raises BenchError if a process dies or the wait takes too long."""
        deadline = time.monotonic() + READY_S
        while True:
            self._processes.check()
            try:
                if ready():
                    return
            except (OSError, ValueError):
                pass  # not ready yet
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: {what} within {READY_S:g} s did not happen")
            time.sleep(0.05)

    def place(self, where: Placement) -> None:
        """Moves all threads of leader and follower to their cores."""
        self._processes.place("leader", where.leader)
        self._processes.place("follower", where.follower)

    @abstractmethod
    def start(self) -> None:
        """Starts both, and waits until they serve. Raises BenchError."""

    def resume(self, operation: str) -> None:  # noqa: B027 - most have nothing to do
        """Begins the store's turn."""

    def pause(self) -> None:  # noqa: B027
        """Ends the store's turn: the store leaves the cores to the others."""

    @abstractmethod
    def command(self, operation: str, size: int, depth: int, seconds: float, idle: str, *, fill: bool) -> list[str]:
        """The command line of the store's client."""

    def fill(self, size: int, where: Placement) -> None:
        """Writes a value of that size to every key."""
        self._load("leader_write", size, 1, 0.02, where, fill=True)

    def load(self, operation: str, size: int, depth: int, seconds: float, where: Placement) -> dict[str, Any]:
        """Runs the client and returns its figures: count, per_second, p50_us, p99_us and so on. All operations must
        succeed. If no operation ended within `seconds`, which can happen on a busy machine, it measures again, twice as
        long."""
        return self._load(operation, size, depth, seconds, where, fill=False)

    def _load(
        self, operation: str, size: int, depth: int, seconds: float, where: Placement, *, fill: bool
    ) -> dict[str, Any]:
        self.resume(operation)
        self.place(where)
        try:
            end = time.monotonic() + TRY_S
            while True:
                command = self.command(operation, size, depth, seconds, where.idle, fill=fill)
                found = self._run_client(operation, command, where)
                if found:
                    return found
                if time.monotonic() > end:
                    break
                seconds = min(2 * seconds, MOST_S)
        finally:
            self.pause()
        raise BenchError(f"{self.name}: for {TRY_S} s no {operation} began in time and ended: others have the cores")

    def _run_client(self, operation: str, command: Sequence[str], where: Placement) -> dict[str, Any]:
        enter = self._enter["client"]

        def before() -> None:
            os.sched_setaffinity(0, where.client)
            if enter is not None:
                enter()

        try:
            done = programs.finished(command, before=before, timeout=120)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{self.name}, {operation}: its client did not end") from None
        if done.returncode:
            raise BenchError(f"{self.name}, {operation}: {done.stderr.strip() or how_it_ended(done.returncode)}")
        found: dict[str, Any] = json.loads(done.stdout)["operations"].get(VERBS[operation], {})
        if found and found["outcomes"] != {"ok": found["count"]}:
            raise BenchError(f"{self.name}, {operation}: not all went well: {found['outcomes']}")
        return found


class Wherry(Store):
    """Two software nodes in mode static. Node 0 leads the keys that are used, and spins on its own core. The follower
    and the client share the second core, so both yield. The follower is stopped (SIGSTOP) during measurements of reads,
    which do not involve it. Both nodes are stopped during other stores' turns."""

    name = "wherry"

    def start(self) -> None:
        """Starts the nodes on two free ports of the loopback."""
        self.start_nodes([f"127.0.0.1:{port}" for port in network.loopback_ports(2)])

    def start_nodes(self, addresses: Sequence[str]) -> None:
        """Starts the nodes at these host:port addresses, and stops them until their first turn."""
        self.version = VERSION
        self.addresses = list(addresses)
        file = self._directory / "cluster.toml"
        file.write_text(self.cluster_text())
        programs.load()  # raises NotFound before a node is started
        for number, role, waits in ((0, "leader", "--spin"), (1, "follower", "--yield")):
            self.start_process(role, programs.node(file, number, waits, *self.node_options()))
        # The nodes must first agree with each other, which a stopped node cannot do.
        logs = [self._processes.log(role) for role in ("leader", "follower")]
        self.until(lambda: all(": it serves" in log.read_text() for log in logs), "two nodes that serve")
        self.pause()

    def node_options(self) -> list[str]:
        """Further options of a node's command line."""
        return []

    def client_options(self) -> list[str]:
        """Further options of the client's command line."""
        return []

    def cluster_text(self) -> str:
        """The cluster file. `retry_cycles` is so long that no message is repeated: a process that waits for its core
        would otherwise repeat messages, and the measurement would count both."""
        lines = ["[cluster]", 'name = "bench"', 'mode = "static"', "bucket_bits = 16", "lanes = 4096", "[timing]"]
        lines += ["retry_cycles = 2500000"]
        for number, address in enumerate(self.addresses):
            lines += ["[[node]]", f"number = {number}", f'udp = "{address}"']
        return "\n".join(lines) + "\n"

    def resume(self, operation: str) -> None:
        """Continues the nodes of the operation. Reads do not involve the follower."""
        self._processes.send(signal.SIGCONT, *(["leader"] if operation == "read" else ["leader", "follower"]))

    def pause(self) -> None:
        """Stops both nodes."""
        self._processes.send(signal.SIGSTOP, "leader", "follower")

    def command(self, operation: str, size: int, depth: int, seconds: float, idle: str, *, fill: bool) -> list[str]:
        """The command line of kv_load, or of kv_peer_load for many reads in flight."""
        reads = operation == "read"
        if reads and depth > 1:  # the client library would be slower than the node
            words = peer_words(self.name, self.addresses[0], operation, size, depth, seconds, idle, fill)
            return programs.peer_load(*words)
        nodes = ["--node", self.addresses[0], "--node", "-" if reads else self.addresses[1]]
        words = [*nodes, "--reads", str(int(reads)), "--writes", str(int(not reads))]
        words += ["--depth", str(depth), "--seconds", str(seconds), "--warm-up", "0.1", "--keys", str(KEYS)]
        words += ["--value-bytes", str(size), "--led-by", "0", "--first-lane", "0", *self.client_options()]
        words += {"spin": ["--spin"], "yield": ["--yield"], "sleep": []}[idle] + ([] if fill else ["--no-fill"])
        return programs.load(*words)


class Redis(Store):
    """A leader and a replica without files on disk. A write is SET, then WAIT 1 0; a read is GET at the leader."""

    name = "redis"

    def start(self, hosts: tuple[str, str] = ("127.0.0.1", "127.0.0.1")) -> None:
        """`hosts`: the addresses of the leader and of the replica."""
        program = programs.peer("redis-server")
        self.version = (
            subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split("v=")[1].split()[0]
        )
        first, second = network.loopback_ports(2)
        self.address = f"{hosts[0]}:{first}"
        for role, host, port in (("leader", hosts[0], first), ("follower", hosts[1], second)):
            words = ["--bind", host, "--port", str(port), "--save", "", "--appendonly", "no", "--protected-mode", "no"]
            words += [
                "--dir",
                str(self._directory),
                "--repl-diskless-sync-delay",
                "0",
                "--repl-diskless-load",
                "swapdb",
            ]
            if role == "follower":
                words += ["--replicaof", hosts[0], str(first)]
            self.start_process(role, [program, *words])
        # WAIT returns when the replica is connected.
        probe = [*self.command("leader_write", 64, 1, 0.01, "sleep", fill=False)]
        self.until(lambda: self._answers(probe), "a write on leader and replica")

    def _answers(self, probe: Sequence[str]) -> bool:
        enter = self._enter["client"]
        try:
            return programs.finished(probe, before=enter, timeout=3).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def command(self, operation: str, size: int, depth: int, seconds: float, idle: str, *, fill: bool) -> list[str]:
        """kv_peer_load."""
        words = peer_words(self.name, self.address, operation, size, depth, seconds, idle, fill)
        return programs.peer_load(*words)


class Etcd(Store):
    """Two members with their data in memory (tmpfs). A write is a Put, and a read is a linearizable Range. Both go to
    the leader over one persistent gRPC connection."""

    name = "etcd"
    most_in_flight = 32

    def start(self) -> None:
        """Starts the members, and waits until they have elected a leader."""
        program = programs.peer("etcd")
        self.version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[2]
        ports = network.loopback_ports(4)
        peers, clients = ports[:2], ports[2:]
        members = ",".join(f"m{n}=http://127.0.0.1:{port}" for n, port in enumerate(peers))
        for n, role in enumerate(("leader", "follower")):
            peer, client = f"http://127.0.0.1:{peers[n]}", f"http://127.0.0.1:{clients[n]}"
            words = ["--name", f"m{n}", "--data-dir", str(self._directory / f"m{n}"), "--initial-cluster", members]
            words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--logger", "zap"]
            words += ["--listen-client-urls", client, "--advertise-client-urls", client, "--log-level", "error"]
            # With the default of 1 s, a leader without enough CPU time would be replaced too early.
            words += ["--election-timeout", "5000"]
            self.start_process(role, [program, *words])
        urls = [f"http://127.0.0.1:{port}/v3/maintenance/status" for port in clients]
        found: list[dict[str, Any]] = []

        def elected() -> bool:
            found[:] = [_post(url) for url in urls]
            return all(int(said.get("leader", "0")) for said in found)

        self.until(elected, "the election of a leader")
        lead = next(n for n, said in enumerate(found) if said["leader"] == said["header"]["member_id"])
        if lead == 1:
            self._processes.swap("leader", "follower")
        self.address = f"127.0.0.1:{clients[lead]}"

    def command(self, operation: str, size: int, depth: int, seconds: float, idle: str, *, fill: bool) -> list[str]:
        """kv_peer_load."""
        words = peer_words(self.name, self.address, operation, size, depth, seconds, idle, fill)
        return programs.peer_load(*words)


def peer_words(
    peer: str, at: str, operation: str, size: int, depth: int, seconds: float, idle: str, fill: bool
) -> list[str]:
    """Arguments of kv_peer_load."""
    words = [peer, "--at", at, "--verb", VERBS[operation], "--depth", str(depth), "--seconds", str(seconds)]
    words += ["--warm-up", "0.1", "--value-bytes", str(size), "--keys", str(KEYS), "--idle", idle]
    return words + ([] if fill else ["--no-fill"])


def _post(url: str) -> dict[str, Any]:
    request = urllib.request.Request(url, data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=2) as answer:
        said: dict[str, Any] = json.load(answer)
    return said
