# SPDX-License-Identifier: Apache-2.0
"""Measures our software nodes, Redis and etcd in alternating rounds: latency, and the throughput of one node on one
core."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from wherry.errors import BenchError
from wherry.kv.bench.bars import latency_bars, median_bar
from wherry.kv.bench.stores import Etcd, Placement, Redis, Store, Wherry, memory_directory, placements

SIZES = (64, 1024)
DEPTHS = (16, 64, 256)
OPERATIONS = ("read", "leader_write")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of rounds, and the durations of measurements."""

    rounds: int
    seconds: float
    """The duration of one measurement."""
    trial_seconds: float
    """The duration of a trial that searches for a peer's best placement."""


FULL = Effort(rounds=7, seconds=0.5, trial_seconds=0.3)
QUICK = Effort(rounds=3, seconds=0.1, trial_seconds=0.05)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures of one round."""

    p50: float
    p99: float
    per_second: float


def two_cores() -> tuple[int, int]:
    """Two cores that this process may use. Raises BenchError if it may use only one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise BenchError("two cores are needed: one for the node, one for its client")
    return cores[0], cores[1]


class Contest:
    """Measures several stores in turn, and keeps the results of all rounds."""

    def __init__(self, stores: Sequence[Store], effort: Effort, say: Say) -> None:
        self._stores, self._effort, self._say = stores, effort, say
        self._a, self._b = two_cores()
        self._found: dict[tuple[str, str, int, int], list[Measurement]] = {}
        self._places: dict[tuple[str, str], Placement] = {}

    def choose_places(self) -> None:
        """Chooses the placements. Ours is fixed by design. Each peer gets its fastest placement for each operation."""
        one, two = frozenset({self._a}), frozenset({self._b})
        for store in self._stores:
            for operation in OPERATIONS:
                if isinstance(store, Wherry):
                    idle = "spin" if operation == "read" else "yield"
                    self._places[store.name, operation] = Placement(one, two, two, idle)
                    continue
                candidates = placements(self._a, self._b)
                if operation == OPERATIONS[0]:
                    store.fill(SIZES[0], candidates[-1])
                timed = [
                    (store.load(operation, SIZES[0], 1, self._effort.trial_seconds, where)["p50_us"], n)
                    for n, where in enumerate(candidates)
                ]
                best = candidates[min(timed)[1]]
                self._places[store.name, operation] = best
                self._say(f"{store.name}, {operation}: fastest with {best}")

    def latencies(self) -> None:
        """Measures with one operation in flight."""
        for _ in range(self._effort.rounds):
            for size in SIZES:
                for store in self._stores:
                    store.fill(size, self._places[store.name, "leader_write"])
                for operation in OPERATIONS:
                    for store in self._stores:
                        self._measure(store, operation, size, 1, self._places[store.name, operation])

    def rates(self) -> None:
        """Measures with many operations in flight. The leader of each store has its own core, and the client has the
        other core. The client spins, except during writes, when the follower needs the client's core."""
        one, two = frozenset({self._a}), frozenset({self._b})
        for _ in range(self._effort.rounds):
            for store in self._stores:
                store.fill(SIZES[0], Placement(one, two, two, "yield"))
            for depth in DEPTHS:
                for operation in OPERATIONS:
                    for store in self._stores:
                        if depth > store.most_in_flight:
                            continue
                        where = Placement(one, two, two, "spin" if operation == "read" else "yield")
                        self._measure(store, operation, SIZES[0], depth, where)

    def _measure(self, store: Store, operation: str, size: int, depth: int, where: Placement) -> None:
        said = store.load(operation, size, depth, self._effort.seconds, where)
        self._found.setdefault((store.name, operation, size, depth), []).append(
            Measurement(said["p50_us"], said["p99_us"], said["per_second"])
        )

    def of(self, system: str, operation: str, size: int, depth: int) -> list[Measurement]:
        """All rounds of one combination."""
        return self._found[system, operation, size, depth]

    def latency_rows(self, network: str, path: str) -> list[dict[str, Any]]:
        """Rows of the results' `software`. `path`: the path of our nodes; peers always use sockets."""
        rows = []
        for (system, operation, size, depth), found in self._found.items():
            if depth != 1:
                continue
            medians = [one.p50 for one in found]
            rows.append({
                "system": system, "network": network, "path": path if system == "wherry" else "sockets",
                "operation": operation, "size": size, "p50_us": statistics.median(medians),
                "p50_min_us": min(medians), "p50_max_us": max(medians),
                "p99_us": statistics.median(one.p99 for one in found),
                "placement": str(self._places[system, operation]),
            })  # fmt: skip
            row = rows[-1]
            self._say(
                f"{system}, {network}, {row['path']}, {operation} of {size} B: p50 {row['p50_us']:.1f} us "
                f"({row['p50_min_us']:.1f} to {row['p50_max_us']:.1f}), p99 {row['p99_us']:.1f}"
            )
        return rows

    def rate_rows(self) -> list[dict[str, Any]]:
        """Rows of the results' `throughput`."""
        rows = []
        for (system, operation, size, depth), found in self._found.items():
            if depth == 1:
                continue
            rates = [one.per_second for one in found]
            rows.append({
                "system": system, "operation": operation, "size": size, "depth": depth,
                "per_second": statistics.median(rates), "per_second_min": min(rates), "per_second_max": max(rates),
            })  # fmt: skip
            self._say(f"{system}, {operation} of {size} B, {depth} in flight: {statistics.median(rates):,.0f} a second")
        return rows

    def times_faster(self, peer: str, operation: str) -> list[float]:
        """The ratio of the peer's p50 to ours in each round, for the size whose median ratio is smallest."""
        by_size = [
            [theirs.p50 / ours.p50 for ours, theirs in
             zip(self.of("wherry", operation, size, 1), self.of(peer, operation, size, 1), strict=True)]
            for size in SIZES
        ]  # fmt: skip
        return min(by_size, key=statistics.median)

    def rate_ratio(self, peer: str) -> list[float]:
        """The ratio of our reads per second to the peer's in each round, at the depth at which the peer is fastest."""

        def rate(depth: int) -> float:
            return statistics.median(one.per_second for one in self.of(peer, "read", SIZES[0], depth))

        depth = max(DEPTHS, key=rate)
        rounds = zip(self.of("wherry", "read", SIZES[0], depth), self.of(peer, "read", SIZES[0], depth), strict=True)
        return [ours.per_second / theirs.per_second for ours, theirs in rounds]


def run(document: dict[str, Any], wanted: set[str], effort: Effort, say: Say) -> None:
    """Puts `software` and `throughput` into the document. Raises BenchError; NotFound if a peer is not installed."""
    with ExitStack() as stack:
        directory = stack.enter_context(memory_directory())
        stores: list[Store] = []
        for kind in (Wherry, Redis, Etcd):
            (directory / kind.name).mkdir()
            store: Store = kind(stack, directory / kind.name)
            store.start()
            stores.append(store)
            if kind is not Wherry:
                document["versions"][store.name] = store.version
        contest = Contest(stores, effort, say)
        contest.choose_places()
        if "software" in wanted:
            contest.latencies()
            document["results"]["software"] = contest.latency_rows("loopback", "sockets")
            document["bars"] |= latency_bars(contest.times_faster, "sw")
            document["bars"]["sw_leader_write_vs_etcd"] = median_bar(
                contest.times_faster("etcd", "leader_write"), ">=", 20
            )
        if "throughput" in wanted:
            contest.rates()
            document["results"]["throughput"] = contest.rate_rows()
            document["bars"]["sw_throughput_vs_redis"] = median_bar(contest.rate_ratio("redis"), ">=", 3)
