# SPDX-License-Identifier: Apache-2.0
"""The bars of `wherry bench kv`: each figure's target, and the published value to compare with."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wherry.kv.bench.schema import BENCHMARK

WHOLE = 1024
SMALL = 64


def exact_bar(value: float, comparison: str, target: float, unit: str, published: str) -> dict[str, Any]:
    """The bar of a counted value, which is the same in every run."""
    met = value <= target if comparison == "<=" else value >= target
    bar = {"value": value, "min": value, "max": value, "target": f"{comparison} {target:g}", "pass": met, "unit": unit}
    return bar | ({"published": published} if published else {})


def median_bar(
    ratios: Sequence[float], comparison: str, target: float, published: str = "", unit: str = ""
) -> dict[str, Any]:
    """The bar of the median of samples."""
    value = statistics.median(ratios)
    bar: dict[str, Any] = {"value": value, "min": min(ratios), "max": max(ratios), "unit": unit}
    met = value >= target if comparison == ">=" else value <= target
    bar |= {"target": f"{comparison} {target:g}", "pass": met}
    return bar | ({"published": published} if published else {})


def simulation_bars(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The bars of the rows that are present. Times are for values of 1 KiB and the memory preset with which the model
    of the thesis's own pipeline takes 376 and 384 ns. The rows also contain the other preset."""
    known = BENCHMARK.published
    rows = results.get("rtl_latency", [])

    def paper(name: str) -> str:
        return f"{known[name]['value']:g} ns"

    def worst(figure: str, operation: str, policy: str = "", followers: int | None = None) -> float | None:
        chosen = [
            row for row in rows
            if row["memory"] == "hardware" and row["operation"] == operation and row["size"] == WHOLE
            and policy in ("", row["policy"])
            and followers in (None, row["followers"])
        ]  # fmt: skip
        parts = ("replication_rx_ns", "replication_tx_ns") if figure == "added" else ("total_ns",)
        return max((sum(row[part] for part in parts) for row in chosen), default=None)

    bars: dict[str, dict[str, Any]] = {}
    for name, value, target, published in (
        ("rtl_read_repl_ns", worst("added", "read"), 48, paper("rep_t5_7_read_replication")),
        ("rtl_write_repl_ns", worst("added", "replica_write"), 48, paper("rep_t5_7_write_replication")),
        ("rtl_leader_repl_ns", worst("added", "leader_write", followers=1), 96,
         paper("rep_t5_11_leader_write_replication")),
        ("rtl_read_ns", worst("total", "read"), 600, paper("rep_t5_7_read_total")),
        ("rtl_write_store_ns", worst("total", "replica_write", "store"), 560, paper("rep_t5_7_write_total")),
        ("rtl_write_accept_ns", worst("total", "replica_write", "accept"), 250, paper("rep_t5_7_write_total")),
        ("rtl_leader_write_accept_ns", worst("total", "leader_write", "accept", 1), 800,
         paper("rep_t5_9_without_network")),
    ):  # fmt: skip
        if value is not None:
            bars[name] = exact_bar(value, "<=", target, "ns", published)
    claimed = f"{known['rep_operating_rate']['value']:g} Gbit/s claimed, not measured"
    for name, workload, size, least, published in (
        ("line_rate_read", "read", WHOLE, 0.98, claimed),
        ("line_rate_replica_write", "replica_write", WHOLE, 0.98, claimed),
        ("line_rate_small_read", "read", SMALL, 0.95, ""),
        ("rate_replica_write_64", "replica_write, with commits", SMALL, 0.95, ""),
    ):
        for row in results.get("line_rate", []):
            if (row["workload"], row["size"]) == (workload, size):
                # If frames were lost, the rate counts as 0.
                bars[name] = exact_bar(0.0 if row["lost"] else row["share"], ">=", least, "", published)
    return bars


def resource_bars(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The bars of resources: those of the whole core (kv_core) if the table has a row for it, else the sum of its
    parts."""
    whole = [row for row in rows if row["name"] == "kv_core"] or list(rows)
    if not whole:
        return {}
    known = BENCHMARK.published

    def both(of: str) -> int:
        return sum(known[f"rep_t5_10_{of}_{part}"]["value"] for part in ("replication", "memory"))

    luts = sum(row["lut"] + row["lutram"] for row in whole)
    return {
        "luts_total": exact_bar(luts, "<=", 10000, "", f"{both('lut_logic'):g} + {both('lut_mem'):g} LUTRAM"),
        "bram36_total": exact_bar(
            sum(row["bram36"] for row in whole), "<=", 74, "", f"{known['rep_bram_added']['value']:g}"
        ),
        "lut_levels_max": exact_bar(max(row["levels"] for row in whole), "<=", 8, "", ""),
    }


def latency_bars(times_faster: Callable[[str, str], list[float]], prefix: str) -> dict[str, dict[str, Any]]:
    """Bars of our latency against Redis. `prefix`: "sw" for nodes on sockets; "sw_xdp" for nodes that bypass the
    kernel, with "xdp" in the bars' names. `times_faster(peer, operation)`: the ratio in each round."""
    beside = {
        name: f"{BENCHMARK.published_text(f'rep_t5_13_{of}_sw')}: the thesis' software"
        for name, of in (("read", "read"), ("leader_write", "leader_write"))
    }
    way, least = ("_xdp", (6, 8)) if prefix == "sw_xdp" else ("", (2, 3))
    return {
        f"sw_read{way}_vs_redis": median_bar(
            times_faster("redis", "read"), ">=", least[0], beside["read"]
        ),
        f"sw_leader_write{way}_vs_redis_wait": median_bar(
            times_faster("redis", "leader_write"), ">=", least[1], beside["leader_write"]
        ),
    }  # fmt: skip


def failover_bars(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The bars of the outage after a leader's death. These bars have no target."""
    with_mu, without = (BENCHMARK.published_text(f"rep_rw_mu_failover{other}") for other in ("", "_other"))
    mu = f"Mu: {with_mu}; without it {without}"
    bars = {}
    for row in rows:
        prefix = "failover" if row["timing"] == "tight" else "failover_default"
        for part in ("p50", "p99"):
            value = row[f"eager_{part}_ms"] if row["timing"] == "tight" else row[f"{part}_ms"]
            low, high = min(value, row["eager_min_ms"]), max(value, row["eager_max_ms"])
            bars[f"{prefix}_ms_{part}"] = {"value": value, "min": low, "max": high, "unit": "ms", "published": mu}
    return bars
