# SPDX-License-Identifier: Apache-2.0
"""Measures how long writes are interrupted when their leader is killed, and the parts of that time."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.errors import BenchError, Error
from wherry.kv import cluster_file, keeper, programs
from wherry.kv.bench.bars import failover_bars
from wherry.kv.bench.processes import Processes
from wherry.kv.bench.software import Say
from wherry.kv.bench.stores import memory_directory
from wherry.kv.options import Options, cluster_text

NODES = 3
READY_S = 20.0
CONFIRMED_S = 2.0
TRIES = 2
"""Attempts for each kill, because a keeper on a busy machine may already have removed the node."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The keeper's timing settings (docs/guide/kv.md)."""

    ping_ms: int
    misses: int
    lease_ms: int


TIMINGS = {"default": Timing(100, 3, 300), "tight": Timing(2, 3, 6)}
""""default": the timing that `wherry kv up` writes into its cluster file. "tight": the shortest timing that works for
processes that share two cores."""


class Cluster:
    """A keeper and nodes like those of `wherry kv up --restart`, but a killed node is restarted immediately."""

    def __init__(
        self, stack: ExitStack, directory: Path, timing: Timing, nodes: int = NODES, bucket_bits: int = 10
    ) -> None:
        """The processes of the cluster run until `stack` is closed, and write their files into `directory`."""
        file = directory / "cluster.toml"
        options = Options(
            nodes=nodes, ping_ms=timing.ping_ms, misses=timing.misses, lease_ms=timing.lease_ms, bucket_bits=bucket_bits
        )
        file.write_text(cluster_text(options))
        self.cluster = cluster_file.load(file)
        self._processes = Processes("failover", directory)
        stack.callback(self._processes.close)
        self._processes.start("keeper", programs.keeper(file))
        for number in range(nodes):
            self.restart(number)

    def pid(self, number: int) -> int:
        """The pid of a node's process."""
        return self._processes.pid(f"node{number}")

    def restart(self, number: int) -> None:
        """Starts a node, and ends the node's previous process."""
        self._processes.start(f"node{number}", programs.node(self.cluster.path, number))

    def status(self) -> dict[str, Any]:
        """The keeper's status."""
        return keeper.status(self.cluster)

    def until_all_serve(self) -> dict[str, Any]:
        """Waits until all nodes serve, and returns the keeper's status. Raises BenchError."""
        deadline = time.monotonic() + READY_S
        while True:
            try:
                said = self.status()
                if said["settled"] and all(node["state"] == "serving" and node["leads"] for node in said["nodes"]):
                    return said
            except Error as error:
                said = {"nodes": str(error)}
            if time.monotonic() > deadline:
                raise BenchError(f"failover: not all nodes serve within {READY_S:g} s: {said['nodes']}")
            time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Outage:
    """The events after one kill, in ms since the kill."""

    published: float
    confirmed: float
    eager: float
    usual: float


def outage_of(said: dict[str, Any], failovers: Sequence[dict[str, Any]], victim: int) -> Outage | None:
    """Computes the outage from the output of kv_outage and the keeper's record of removals. None: the keeper removed
    the node before the kill, or the members have not yet confirmed the new epoch."""

    def since(ns: int) -> float:
        return float(ns - said["killed_ns"]) / 1e6

    mine = [
        one for one in failovers
        if victim in one["removed"] and one["published_at_ns"] > said["killed_ns"] and "confirmed_ms" in one
    ]  # fmt: skip
    if not mine:
        return None
    published = since(mine[0]["published_at_ns"])
    confirmed = published + mine[0]["confirmed_ms"] - mine[0]["published_ms"]
    return Outage(published, confirmed, since(said["eager_first_ns"]), since(said["first_ns"]))


def row_of(name: str, timing: Timing, outages: Sequence[Outage]) -> dict[str, Any]:
    """A row of the results' `failover`."""
    eager = sorted(one.eager for one in outages)
    usual = sorted(one.usual for one in outages)

    def last(values: Sequence[float]) -> float:
        return values[min(len(values) - 1, int(0.99 * len(values)))]

    def median(values: Iterable[float]) -> float:
        return statistics.median(max(0.0, value) for value in values)

    return {
        "timing": name, "nodes": NODES,
        "ping_ms": timing.ping_ms, "misses": timing.misses, "lease_ms": timing.lease_ms, "kills": len(outages),
        "p50_ms": statistics.median(usual), "p99_ms": last(usual),
        "eager_p50_ms": statistics.median(eager), "eager_p99_ms": last(eager),
        "eager_min_ms": eager[0], "eager_max_ms": eager[-1],
        # A member reports to the keeper after it has entered the epoch, and may already have served a write by then.
        "detection_ms": median(min(one.published, one.eager) for one in outages),
        "control_ms": median(min(one.confirmed, one.eager) - one.published for one in outages),
        "leftovers_ms": median(one.eager - one.confirmed for one in outages),
        "backoff_ms": median(one.usual - one.eager for one in outages),
    }  # fmt: skip


def _kill_one(cluster: Cluster, victim: int, lane: int) -> Outage | None:
    leaders = cluster.until_all_serve()["leaders"]
    slots = [str(slot) for slot, leader in enumerate(leaders) if leader == str(victim)][:2]
    words = ["--pid", str(cluster.pid(victim)), "--slots", *slots]
    words += ["--first-lane", str(lane)]
    for address in cluster.cluster.nodes:
        words += ["--node", address]
    why = ""
    try:
        done = subprocess.run(programs.outage(*words), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            why = done.stderr.strip()
    except subprocess.TimeoutExpired:
        why = "no write was acknowledged within a minute of a kill"
    if why:
        if cluster.status()["members"] == [victim]:
            why += "; the keeper had removed all other nodes before: the machine is too busy for this timing"
        raise BenchError(f"failover: {why}")
    deadline = time.monotonic() + CONFIRMED_S
    while (found := outage_of(json.loads(done.stdout), cluster.status()["failovers"], victim)) is None:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    cluster.restart(victim)
    return found


def run(document: dict[str, Any], kills: int, say: Say) -> None:
    """Measures, and puts `failover` into the document. Raises BenchError."""
    rows = document["results"]["failover"] = []
    for name, timing in TIMINGS.items():
        outages: list[Outage] = []
        with ExitStack() as stack:
            cluster = Cluster(stack, stack.enter_context(memory_directory()), timing)
            for turn in range(TRIES * kills):
                outage = _kill_one(cluster, turn % NODES, 2 * turn % 4096)
                if outage is not None:
                    outages.append(outage)
                if len(outages) == kills:
                    break
        if not outages:
            raise BenchError(f"failover, {name}: the keeper removed every node before it was killed")
        row = row_of(name, timing, outages)
        rows.append(row)
        parts = ", ".join(
            f"{part} {row[f'{part}_ms']:.2f}" for part in ("detection", "control", "leftovers", "backoff")
        )
        say(
            f"failover, {name} ({timing.ping_ms} ms x {timing.misses}, lease {timing.lease_ms} ms), {len(outages)} "
            f"kills: p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f}; asking each ms: {row['eager_p50_ms']:.1f}, "
            f"{row['eager_p99_ms']:.1f}; of it {parts}"
        )
    document["bars"] |= failover_bars(rows)
