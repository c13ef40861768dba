# SPDX-License-Identifier: Apache-2.0
"""Measures `wherry kv resp` and Redis in alternating rounds with redis-benchmark."""

from __future__ import annotations

import csv
import statistics
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wherry.errors import BenchError
from wherry.kv import network, programs
from wherry.kv.bench.bars import median_bar
from wherry.kv.bench.failover import TIMINGS, Cluster
from wherry.kv.bench.processes import Processes
from wherry.kv.bench.software import Effort, Say
from wherry.kv.bench.stores import memory_directory
from wherry.units import counted

NODES = (3, 1)
"""The measured numbers of nodes: 3 is the default of `wherry kv up`, and 1 compares with a single Redis server."""
CLIENTS = 50
NAMES = 100_000
BUCKET_BITS = 17
"""The table has room for five times as many keys."""
REQUESTS, QUICK_REQUESTS = 100_000, 5_000
READY_S = 60.0
OPERATIONS = ("set", "get")

System = tuple[str, int]
"""A system's name and its number of nodes."""


def _until_it_listens(port: int, processes: Processes) -> None:
    """Waits until a process listens at the port. Raises BenchError."""
    deadline = time.monotonic() + READY_S
    while not network.listens(port):
        processes.check()
        if time.monotonic() > deadline:
            raise BenchError(f"gateway: no process listens at port {port} after {READY_S:g} s")
        time.sleep(0.05)


def rates_of(printed: str) -> dict[str, float]:
    """The rate of each operation in requests per second, from the output of `redis-benchmark --csv`."""
    rows = csv.reader(line for line in printed.splitlines() if line.startswith('"'))
    return {row[0].lower(): float(row[1]) for row in rows if row[0].lower() in OPERATIONS}


def _measured(port: int, requests: int) -> dict[str, float]:
    command = [programs.peer("redis-benchmark"), "-p", str(port), "-t", ",".join(OPERATIONS), "--csv"]
    command += ["-n", str(requests), "-c", str(CLIENTS), "-r", str(NAMES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    rates = rates_of(done.stdout)
    if done.returncode or set(rates) != set(OPERATIONS):
        raise BenchError(f"gateway: redis-benchmark: {(done.stderr or done.stdout).strip()[-400:]}")
    return rates


def run(document: dict[str, Any], effort: Effort, quick: bool, say: Say) -> None:
    """Measures, and puts `gateway` and its bars into the document. Raises NotFound if Redis is missing; BenchError."""
    programs.peer("redis-benchmark")  # raises NotFound before a process is started
    requests = QUICK_REQUESTS if quick else REQUESTS
    found: dict[tuple[System, str], list[float]] = {}
    with ExitStack() as stack:
        directory = stack.enter_context(memory_directory())
        processes = Processes("gateway", directory)
        stack.callback(processes.close)
        ports: dict[System, int] = {}
        ports["redis", 1] = _start_redis(processes, directory)
        for nodes in NODES:
            place = directory / f"nodes{nodes}"
            place.mkdir()
            cluster = Cluster(stack, place, TIMINGS["default"], nodes, BUCKET_BITS)
            cluster.until_all_serve()
            (port,) = network.loopback_ports(1)
            words = ["--listen", f"127.0.0.1:{port}"]
            processes.start(f"gateway{nodes}", programs.resp(cluster.cluster.path, words))
            ports["wherry", nodes] = port
        for port in ports.values():
            _until_it_listens(port, processes)
        for number in range(effort.rounds):
            for system, port in ports.items():
                for operation, rate in _measured(port, requests).items():
                    found.setdefault((system, operation), []).append(rate)
            say(f"gateway: round {number + 1} of {effort.rounds}")
    _tell(document, found, say)


def _start_redis(processes: Processes, directory: Path) -> int:
    (port,) = network.loopback_ports(1)
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(directory)]
    processes.start("redis", [programs.peer("redis-server"), *words])
    return port


def _tell(document: dict[str, Any], found: dict[tuple[System, str], list[float]], say: Say) -> None:
    rows = document["results"].setdefault("gateway", [])
    for ((system, nodes), operation), rates in found.items():
        rows.append({
            "system": system, "nodes": nodes, "operation": operation, "clients": CLIENTS,
            "per_second": statistics.median(rates), "per_second_min": min(rates), "per_second_max": max(rates),
        })  # fmt: skip
        say(f"{system}, {counted(nodes, 'node')}, {operation}: {rows[-1]['per_second']:,.0f} requests/s")
    for operation in OPERATIONS:
        for nodes, name in zip(NODES, ("", "_one_node"), strict=True):
            ours, theirs = found[("wherry", nodes), operation], found[("redis", 1), operation]
            ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
            document["bars"][f"resp_{operation}{name}_vs_redis"] = median_bar(ratios, ">=", 0.8)
