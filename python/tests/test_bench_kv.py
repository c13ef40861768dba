# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`: how bars are computed, and small runs with real nodes and peers."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from wherry import cli, report
from wherry.bench import load, parse_as
from wherry.errors import BenchError
from wherry.kv import programs
from wherry.kv.bench import failover, gateway, hardware, software, stores
from wherry.kv.bench import run as bench_kv
from wherry.kv.bench.bars import median_bar, resource_bars, simulation_bars
from wherry.kv.bench.failover import TIMINGS, Outage, outage_of, row_of
from wherry.kv.bench.schema import KvBench
from wherry.kv.bench.software import Contest, Effort, Measurement
from wherry.system import paths

Document = dict[str, Any]
QUIET = Console(stderr=True, quiet=True)


def test_unknown_experiment_is_a_wrong_command_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["bench", "kv", "--json", str(tmp_path / "k.json"), "--only", "everything"]) == 2
    assert "line_rate" in capfd.readouterr().err


# ---- the RTL's part


def rtl_rows(**changes: Any) -> list[Document]:
    rows = []
    for operation, policy, followers in (
        ("read", "none", 0), ("replica_write", "store", 0), ("replica_write", "accept", 0),
        ("leader_write", "accept", 1), ("leader_write", "accept", 7),
    ):  # fmt: skip
        for size in (64, 1024):
            rows.append({
                "operation": operation, "policy": policy, "size": size, "followers": followers, "memory": "hardware",
                "cmac_ns": 200.0, "replication_rx_ns": 20.0 + followers, "replication_tx_ns": 16.0,
                "memory_ns": 200.0 if policy == "store" else 4.0, "total_ns": 440.0 if policy == "store" else 240.0,
            } | changes)  # fmt: skip
    return rows


def test_bars_of_the_simulation() -> None:
    rates = [
        {"workload": "read", "size": 1024, "per_second": 1e7, "limit_per_second": 1e7, "share": 0.99, "lost": 0},
        {"workload": "read", "size": 64, "per_second": 1e8, "limit_per_second": 1e8, "share": 0.96, "lost": 1},
        {"workload": "replica_write", "size": 64, "per_second": 2e7, "limit_per_second": 8e7, "share": 0.25, "lost": 0},
        {"workload": "replica_write, with commits", "size": 64, "per_second": 5e7, "limit_per_second": 5.2e7,
         "share": 0.96, "lost": 0},
    ]  # fmt: skip
    bars = simulation_bars({"rtl_latency": rtl_rows(), "line_rate": rates})
    assert set(bars) == {
        "rtl_read_repl_ns", "rtl_write_repl_ns", "rtl_leader_repl_ns", "rtl_read_ns", "rtl_write_store_ns",
        "rtl_write_accept_ns", "rtl_leader_write_accept_ns", "line_rate_read", "line_rate_small_read",
        "rate_replica_write_64",
    }  # fmt: skip
    assert bars["rtl_read_repl_ns"] == {
        "value": 36.0, "min": 36.0, "max": 36.0, "target": "<= 48", "pass": True, "unit": "ns", "published": "272 ns",
    }  # fmt: skip
    assert bars["rtl_leader_repl_ns"]["value"] == 37.0, "one follower"
    assert (bars["rtl_write_store_ns"]["value"], bars["rtl_write_accept_ns"]["value"]) == (440.0, 240.0)
    assert bars["rtl_leader_write_accept_ns"]["published"] == "1776 ns"
    assert bars["line_rate_read"]["pass"]
    assert bars["line_rate_small_read"]["value"] == 0.0, "a frame was lost"
    assert not bars["line_rate_small_read"]["pass"]
    assert (bars["rate_replica_write_64"]["value"], bars["rate_replica_write_64"]["pass"]) == (0.96, True)
    assert simulation_bars({"rtl_latency": rtl_rows(memory="simulated")}) == {}
    assert simulation_bars({}) == {}


def test_resources_are_of_the_core_or_of_its_parts(tmp_path: Path) -> None:
    row = {"parameters": {"Width": 8}, "lut": 100, "lutram": 20, "ff": 5, "bram36": 1, "bram18": 3, "uram": 0}
    table = [row | {"name": name, "depth": depth} for name, depth in (("kv_parser", 7), ("kv_pool", 9), ("fifo", 20))]
    file = tmp_path / "resources.json"
    file.write_text(json.dumps(table))
    rows = hardware.read_resources(file)
    assert [one["name"] for one in rows] == ["kv_parser", "kv_pool"]
    assert rows[0]["parameters"] == "Width 8"
    bars = resource_bars(rows)
    assert [bars[name]["value"] for name in ("luts_total", "bram36_total", "lut_levels_max")] == [240, 5.0, 9]
    assert bars["luts_total"]["published"] == "20158 + 5574 LUTRAM"
    assert bars["bram36_total"]["published"] == "74.5"
    file.write_text(json.dumps([*table, row | {"name": "kv_core", "depth": 8}]))
    bars = resource_bars(hardware.read_resources(file))
    assert [bars[name]["value"] for name in ("luts_total", "bram36_total", "lut_levels_max")] == [120, 2.5, 8]
    file.write_text('[{"name": "kv_core"}]')
    with pytest.raises(BenchError, match=r"resources.json is not what tools/synth.py writes"):
        hardware.read_resources(file)


def harness(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\nimport json, sys\narguments = sys.argv[1:]\n{text}")
    path.chmod(0o755)
    return path


def test_harness_of_the_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"rtl_latency": rtl_rows(), "versions": {"verilator": "5.6"}}
    program = harness(
        tmp_path / "kv_rtl_bench",
        f"open({str(tmp_path / 'arguments')!r}, 'w').write(' '.join(arguments))\n"
        f"open(arguments[arguments.index('--json') + 1], 'w').write({json.dumps(said)!r})\n",
    )
    monkeypatch.setattr(programs, "built", lambda folder, name: program)
    bench = bench_kv.run(tmp_path / "k.json", quick=True, only=["rtl_latency"], progress=QUIET)
    assert (tmp_path / "arguments").read_text().endswith("--quick --only rtl_latency")
    assert len(bench.results.rtl_latency) == 10
    assert bench.bars["rtl_read_ns"].passed
    assert bench.versions["verilator"] == "5.6"
    assert "The RTL core, one operation" in report.build([tmp_path / "k.json"])
    harness(program, "sys.exit(3)")
    with pytest.raises(BenchError, match="status 3"):
        bench_kv.run(tmp_path / "other.json", only=["line_rate"], progress=QUIET)
    harness(program, "open(arguments[1], 'w').write('{\"line_rate\": [{}]}')")
    with pytest.raises(BenchError, match=r"rows that docs/reference/bench-json.md does not describe: KeyError"):
        bench_kv.run(tmp_path / "other.json", only=["line_rate"], progress=QUIET)
    left = parse_as(KvBench, json.loads((tmp_path / "other.json").read_text()))
    assert (left.bars, left.results.line_rate, set(left.not_measured)) == ({}, [], {"line_rate"})


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "repository", lambda: None)
    monkeypatch.setattr("wherry.system.paths.repository", lambda: None)
    monkeypatch.setenv("PATH", "")
    bench = bench_kv.run(tmp_path / "k.json", only=["line_rate", "resources"], progress=QUIET)
    assert set(bench.not_measured) == {"line_rate", "resources"}
    assert "no kv_rtl_bench" in bench.not_measured["line_rate"]
    assert bench.bars == {}


# ---- turns


def contest(ours: dict[int, list[float]], theirs: dict[int, list[float]], monkeypatch: pytest.MonkeyPatch) -> Contest:
    """A contest from the p50 of each round by size. Rates are 1 / p50; a depth stands for its size."""
    one = Contest([], Effort(3, 0.1, 0.1), lambda text: None)
    found = {
        ("wherry" if whose is ours else "redis", "read", 64 if deep else size, size if deep else 1): [
            Measurement(p50, p50, 1e6 / p50) for p50 in values
        ]
        for deep in (False, True) for whose in (ours, theirs) for size, values in whose.items()
    }  # fmt: skip
    monkeypatch.setattr(one, "_found", found)
    return one


def test_ratios_are_of_neighbours_and_of_the_worse_size(monkeypatch: pytest.MonkeyPatch) -> None:
    one = contest({64: [10, 10, 20], 1024: [10, 10, 10]}, {64: [30, 40, 40], 1024: [25, 26, 60]}, monkeypatch)
    assert one.times_faster("redis", "read") == [2.5, 2.6, 6.0], "the median of 64 bytes is 3, not 2.6"
    bar = median_bar(one.times_faster("redis", "read"), ">=", 2.6)
    assert (bar["value"], bar["min"], bar["max"], bar["target"], bar["pass"]) == (2.6, 2.5, 6.0, ">= 2.6", True)


def test_rates_are_compared_where_the_peer_does_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "DEPTHS", (16, 256))
    one = contest({16: [1, 1, 1], 256: [2, 2, 2]}, {16: [10, 10, 10], 256: [3, 4, 5]}, monkeypatch)
    assert one.rate_ratio("redis") == [1.5, 2.0, 2.5]


# ---- failover


def test_outage_is_split_by_the_keepers_account() -> None:
    said = {"killed_ns": 1_000_000, "first_ns": 31_000_000, "eager_first_ns": 16_000_000, "unknown": 0}
    keeper = [
        {"removed": [2], "published_at_ns": 500_000, "published_ms": 9.0, "confirmed_ms": 9.5},
        {"removed": [1], "published_at_ns": 9_000_000, "published_ms": 9.0, "confirmed_ms": 9.5},
        {"removed": [2], "published_at_ns": 11_000_000, "published_ms": 12.0, "confirmed_ms": 13.5},
    ]
    assert outage_of(said, keeper, 2) == Outage(published=10.0, confirmed=11.5, eager=15.0, usual=30.0)
    assert outage_of(said, keeper[:2], 2) is None, "it was removed before it was killed"
    row = row_of("tight", TIMINGS["tight"], [Outage(10.0, 11.5, 15.0, 30.0), Outage(10.0, 17.0, 15.0, 12.0)])
    assert (row["p50_ms"], row["p99_ms"], row["eager_p50_ms"]) == (21.0, 30.0, 15.0)
    assert (row["detection_ms"], row["control_ms"]) == (10.0, 3.25), "a write was done before the keeper knew"
    assert (row["leftovers_ms"], row["backoff_ms"]) == (1.75, 7.5)


def test_a_measurement_in_which_nothing_ended_is_made_again_for_longer(tmp_path: Path) -> None:
    asked: list[float] = []

    class Slow(stores.Store):
        """Whose operations take a second."""

        name = "slow"

        def start(self) -> None:
            for role in ("leader", "follower"):
                self.start_process(role, ["sleep", "600"])

        def command(self, operation: str, size: int, depth: int, seconds: float, idle: str, *, fill: bool) -> list[str]:
            asked.append(seconds)
            ended = {"read": {"count": 1, "outcomes": {"ok": 1}, "p50_us": 1e6}} if seconds > 1 else {}
            return ["echo", json.dumps({"operations": ended})]

    cores = frozenset(os.sched_getaffinity(0))
    with ExitStack() as stack:
        slow = Slow(stack, tmp_path)
        slow.start()
        assert slow.load("read", 64, 1, 0.3, stores.Placement(cores, cores, cores, "sleep"))["count"] == 1
    assert asked == [0.3, 0.6, 1.2]


def test_failure_of_one_experiment_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(document: dict[str, Any], *_: object) -> None:
        document["bars"]["bar"] = median_bar([3.0], ">=", 2)

    def fails(*_: object) -> None:
        raise BenchError("no answer")

    monkeypatch.setattr(software, "run", found)
    monkeypatch.setattr(failover, "run", fails)
    file = tmp_path / "k.json"
    with pytest.raises(BenchError, match=r"failover: no answer.*k\.json"):
        bench_kv.run(file, only=["software", "failover"], progress=QUIET)
    bench = parse_as(KvBench, json.loads(file.read_text()))
    assert bench.bars["bar"].value == 3
    assert bench.not_measured == {"failover": "no answer"}


# ---- real ones


@pytest.mark.agent
def test_real_nodes_beside_real_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("redis-server", "etcd"):
        paths.peer_program(name)  # raises, with the remedy
    monkeypatch.setattr(software, "QUICK", Effort(rounds=1, seconds=0.05, trial_seconds=0.02))
    monkeypatch.setattr(software, "DEPTHS", (16,))
    file = tmp_path / "k.json"
    bench = bench_kv.run(file, quick=True, only=["software", "throughput"], progress=QUIET)
    assert isinstance(bench, KvBench)
    rows = {(row.system, row.operation, row.size): row for row in bench.results.software}
    assert len(rows) == 12
    for row in rows.values():
        assert 0 < row.p50_us <= row.p99_us
    assert {row.system for row in bench.results.throughput} == {"wherry", "redis", "etcd"}
    assert {"redis", "etcd"} <= set(bench.versions)
    for bar in ("sw_read_vs_redis", "sw_leader_write_vs_redis_wait", "sw_leader_write_vs_etcd",
                "sw_throughput_vs_redis"):  # fmt: skip
        assert bench.bars[bar].value > 0
    assert bench.not_measured == {}
    assert load(file) == bench
    assert "Software nodes beside Redis and etcd" in report.build([file])


@pytest.mark.agent
def test_etcd_keeps_its_leader_when_others_have_the_cores(tmp_path: Path) -> None:
    """etcd keeps a leader that did not run for some seconds, and the leader still accepts every call."""
    cores = frozenset(os.sched_getaffinity(0))
    with ExitStack() as stack:
        etcd = stores.Etcd(stack, tmp_path)
        etcd.start()
        where = stores.Placement(cores, cores, cores, "sleep")
        etcd.fill(64, where)
        stop, go = (Timer(after, etcd._processes.send, (number, "leader"))
                    for after, number in ((0.5, signal.SIGSTOP), (4, signal.SIGCONT)))  # fmt: skip
        stop.start()
        go.start()
        try:
            assert etcd.load("read", 64, 1, 5, where)["count"] > 1
            assert etcd.load("leader_write", 64, 1, 0.1, where)["count"] > 0
        finally:
            go.join()


@pytest.mark.agent
@pytest.mark.usefixtures("namespaces")
def test_past_the_kernel_beside_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs on namespaces that stand for machines with a direct cable."""
    monkeypatch.setattr(software, "QUICK", Effort(rounds=1, seconds=0.05, trial_seconds=0.02))
    bench = bench_kv.run(tmp_path / "k.json", quick=True, only=["software_xdp"], progress=QUIET)
    assert isinstance(bench, KvBench)
    assert bench.not_measured == {}
    rows = bench.results.software
    assert {(row.system, row.network, row.path) for row in rows} == {
        ("wherry", "veth", "xdp"), ("redis", "veth", "sockets"),
    }  # fmt: skip
    assert len(rows) == 8
    # The ratios have no threshold here, because other tests share the machine.
    assert bench.bars["sw_read_xdp_vs_redis"].value > 0
    assert bench.bars["sw_leader_write_xdp_vs_redis_wait"].value > 0


@pytest.mark.agent
def test_real_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_kv, "QUICK_KILLS", 1)
    # On a busy machine, a process may wait tens of milliseconds for a core.
    timings = failover.TIMINGS | {"tight": failover.Timing(80, 5, 400)}
    monkeypatch.setattr(failover, "TIMINGS", timings)
    monkeypatch.setattr(failover, "READY_S", 300.0)
    monkeypatch.setattr(failover, "TRIES", 20)
    bench = bench_kv.run(tmp_path / "k.json", quick=True, only=["failover"], progress=QUIET)
    rows = {row.timing: row for row in bench.results.failover}
    assert set(rows) == {"default", "tight"}
    default = rows["default"]
    assert (default.kills, default.ping_ms, default.lease_ms) == (1, 100, 300)
    assert default.detection_ms > 100, "its lease was good for longer"
    assert default.p50_ms >= default.detection_ms
    assert bench.bars["failover_default_ms_p50"].target is None
    assert parse_as(KvBench, json.loads((tmp_path / "k.json").read_text())) == bench


@pytest.mark.parametrize(("members", "alone"), [([1], True), ([1, 2], False)])
def test_a_leader_that_was_killed_alone_is_said(
    members: list[int], alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = tmp_path / "kv_outage"
    outage.write_text("#!/bin/sh\necho kv_outage: a write ended as no answer >&2; exit 1\n")
    outage.chmod(0o755)
    monkeypatch.setattr(programs, "built", lambda *_: outage)
    cluster = SimpleNamespace(
        until_all_serve=lambda: {"leaders": "0112"},
        pid=lambda _: 0,
        cluster=SimpleNamespace(nodes=[]),
        status=lambda: {"members": members},
    )
    with pytest.raises(BenchError, match="a write ended as no answer") as raised:
        failover._kill_one(cluster, 1, 0)  # type: ignore[arg-type]
    assert ("had removed all other nodes" in str(raised.value)) == alone


# ---- gateway


def test_rates_are_those_that_redis_benchmark_prints() -> None:
    printed = """"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms"
"SET","40983.61","0.763","0.168","0.663","1.423"
"GET","45454.55","0.702","0.136","0.615","1.191"
"""
    assert gateway.rates_of(printed) == {"set": 40983.61, "get": 45454.55}
    assert gateway.rates_of("") == {}


def test_the_gateway_takes_turns_with_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "QUICK_REQUESTS", 500)
    monkeypatch.setattr(failover, "READY_S", 300.0)
    monkeypatch.setattr(gateway, "READY_S", 300.0)
    bench = bench_kv.run(tmp_path / "k.json", quick=True, only=["gateway"], progress=QUIET)
    assert {(row.system, row.nodes, row.operation) for row in bench.results.gateway} == {
        (system, nodes, operation)
        for system, nodes in (("wherry", 3), ("wherry", 1), ("redis", 1))
        for operation in ("get", "set")
    }
    for operation in ("get", "set"):
        rate = {(row.system, row.nodes): row for row in bench.results.gateway if row.operation == operation}
        bar = bench.bars[f"resp_{operation}_vs_redis"]
        assert rate["wherry", 3].per_second_max >= bar.min * rate["redis", 1].per_second_min
