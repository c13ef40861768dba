# SPDX-License-Identifier: Apache-2.0
"""The bars of `wherry bench bypass`: each bar's target, and the published value to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wherry.bypass.bench.schema import KNOWN

FRAMES = 10_000
"""The frames of a full run with a NIC of QEMU. With fewer frames, the bars of that NIC have no target."""
RUNS = 20
"""The bar of kv behind bypass has a target only with at least this many random histories."""

TARGETS = {
    "rate_64b_10g": (">= 1", "", "10 Gbit/s at 300 B"),
    "rate_64b_25g": (">= 1", "", "its RTL ends at 16 Gbit/s"),
    "rate_64b_40g": (">= 1", "", "its RTL ends at 16 Gbit/s"),
    "rate_64b_100g_of_link": (">= 0.97", "", ""),
    "rx_cycles": ("<= 6", "cycles", "7 + bytes / 8"),
    "tx_cycles": ("<= 6", "cycles", "2 + bytes / 8"),
    "inplace_cycles": ("<= 8", "cycles", ""),
    "flow_control_bytes_per_packet": ("<= 0", "bytes", "16 with write-back"),
    "overload_reordered": ("<= 0", "frames", "0.49 % without write-back"),
    "overload_lost_uncounted": ("<= 0", "frames", ""),
    "overload_cost": ("<= 0.005", "", "6 points of loss: 15.79 against 9.90 %"),
    "intel_root_loss_10g": ("<= 0.001", "", "9.90 or 15.79 %"),
    "intel_root_latency_us": ("<= 10", "us", "almost 400 us"),
    "switch_latency_us": ("<= 7.7", "us", "7.99 us (8.14)"),
    "tails_per_packet": ("<= 1", "", "2"),
    "model_error_table2_bytes": ("<= 0.1", "%", "324, 317, 316.7 out; 316 in"),
    "model_error_loss_writeback": ("<= 0.3", "points", "15.79 %"),
    "model_error_batch16_latency": ("<= 4", "%", "9.92 us"),
    "model_error_switch_latency": ("<= 2", "%", "7.99 us"),
    "model_error_tcp_goodput": ("<= 2", "%", "9.29 Gbit/s"),
    "personality_luts": ("<= 500", "", ""),
    "luts_total": ("<= 5000", "", "2.08 % of an Alveo U50, with the bridge"),
    "uram_total": ("<= 16", "", "0"),
    "bram36_total": ("<= 16", "", "311 with the bridge"),
    "lut_levels_max": ("<= 8", "", ""),
    "qemu_frames_wrong_e1000e": ("<= 0", "frames", ""),
    "qemu_frames_wrong_igb": ("<= 0", "frames", ""),
    "qemu_tx_writebacks": ("<= 0", "", ""),
    "guest_setup_s": ("<= 60", "s", ""),
    "guest_frames_while_stopped": (">= 1", "frames", ""),
    "guest_frames_wrong": ("<= 0", "frames", ""),
    "kv_behind_bypass": (">= 1", "", ""),
}
"""Every bar: its target, its unit, and the paper's value."""

EXPERIMENT_OF = {
    "rtl_rates": ("rate_64b_10g", "rate_64b_25g", "rate_64b_40g", "rate_64b_100g_of_link",
                  "flow_control_bytes_per_packet"),
    "rtl_cycles": ("rx_cycles", "tx_cycles", "inplace_cycles"),
    "rtl_overload": ("overload_reordered", "overload_lost_uncounted", "overload_cost"),
    "rtl_latency": ("intel_root_loss_10g", "intel_root_latency_us", "switch_latency_us", "tails_per_packet"),
    "batching": ("model_error_table2_bytes", "model_error_batch16_latency"),
    "overload": ("model_error_loss_writeback",),
    "latency": ("model_error_switch_latency",),
    "tcp": ("model_error_tcp_goodput",),
    "resources": ("personality_luts", "luts_total", "uram_total", "bram36_total", "lut_levels_max"),
    "qemu": ("qemu_frames_wrong_e1000e", "qemu_frames_wrong_igb", "qemu_tx_writebacks"),
    "guest": ("guest_setup_s", "guest_frames_while_stopped", "guest_frames_wrong"),
    "kv": ("kv_behind_bypass",),
}  # fmt: skip
"""The bars of each experiment."""


def bar_of(name: str, value: float, *, demanding: bool = True) -> dict[str, Any]:
    """The bar of a counted or simulated figure, which is the same in every run."""
    target, unit, published = TARGETS[name]
    bar: dict[str, Any] = {"value": value, "min": value, "max": value, "unit": unit}
    if demanding:
        comparison, limit = target.split()
        bar |= {"target": target, "pass": value >= float(limit) if comparison == ">=" else value <= float(limit)}
    return bar | ({"published": published} if published else {})


def rtl_bars(figures: Mapping[str, float], rates: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The bars of bypass_rtl_bench. If a measurement lost a frame, its share of line rate counts as 0. Shares are
    rounded to four decimals, because the first and the last frame of a measurement are incomplete."""
    bars = {}
    for name, value in figures.items():
        if name not in TARGETS:
            continue
        found = float(value)
        if name.startswith("rate_64b_") and not name.endswith("of_link"):
            rows = [row for row in rates if row["name"] in (f"{name}_in_place", f"{name}_stream")]
            found = 0.0 if any(row["lost"] for row in rows) else round(found, 4)
        bars[name] = bar_of(name, found)
    return bars


def model_bars(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The bars of the models whose rows are present. The mark of a row says whether it was fitted, chosen or
    predicted."""
    errors: dict[str, float] = {}
    bytes_of = [
        100 * abs(row[way] / row[f"published_{way}"] - 1)
        for row in results.get("batching", [])
        for way in ("outgoing", "ingoing")
    ]
    if bytes_of:
        errors["model_error_table2_bytes"] = max(bytes_of)
    for row in results.get("batching", []):
        if (row["reading"], row["batch"]) == ("one_fetch", 16):
            errors["model_error_batch16_latency"] = 100 * abs(row["latency_us"] / row["published_latency_us"] - 1)
    for row in results.get("overload", []):
        if row["topology"] == "intel" and row["writeback"]:
            errors["model_error_loss_writeback"] = abs(row["loss_percent"] - KNOWN["hb_loss_writeback"]["value"])
    for row in results.get("latency", []):
        if (row["reading"], row["scenario"]) == ("one_fetch", "both"):
            errors["model_error_switch_latency"] = 100 * abs(row["mean_us"] / KNOWN["hb_s3_latency_avg"]["value"] - 1)
    for row in results.get("tcp", []):
        if row["topology"] == "switch":
            published = KNOWN["hb_t1_switch_goodput"]["value"]
            errors["model_error_tcp_goodput"] = 100 * abs(row["goodput_gbps"] / published - 1)
    return {name: bar_of(name, value) for name, value in errors.items()}


def resource_bars(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Resource bars of the whole core, and of the two blocks that depend on the NIC family."""
    by_name = {row["name"]: row for row in rows}
    bars = {}
    if {"bypass_expand", "bypass_decode"} <= set(by_name):
        luts = sum(by_name[name]["lut"] + by_name[name]["lutram"] for name in ("bypass_expand", "bypass_decode"))
        bars["personality_luts"] = bar_of("personality_luts", luts)
    if core := by_name.get("bypass_core"):
        bars["luts_total"] = bar_of("luts_total", core["lut"] + core["lutram"])
        bars["uram_total"] = bar_of("uram_total", core["uram"])
        bars["bram36_total"] = bar_of("bram36_total", core["bram36"])
    if rows:
        bars["lut_levels_max"] = bar_of("lut_levels_max", max(row["levels"] for row in rows))
    return bars


def qemu_bars(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The bars of each NIC. They have a target only if the run had at least FRAMES frames. A failed reset or removal
    counts as a wrong frame."""
    bars = {}
    for row in rows:
        name = f"qemu_frames_wrong_{row['nic']}"
        full = row["frames"] >= FRAMES
        bars[name] = bar_of(name, row["wrong"] + row["lost"] + (0 if row["good"] else 1), demanding=full)
    if rows:
        full = all(row["frames"] >= FRAMES for row in rows)
        bars["qemu_tx_writebacks"] = bar_of(
            "qemu_tx_writebacks", sum(row["tx_writebacks"] for row in rows), demanding=full
        )
    return bars


def guest_bars(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The bars of the guest."""
    names = {"guest_setup_s": "setup_s", "guest_frames_while_stopped": "frames_while_stopped",
             "guest_frames_wrong": "frames_wrong"}  # fmt: skip
    return {name: bar_of(name, row[of]) for name, of in names.items()}


def kv_bars(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The bar of kv behind bypass."""
    share = row["linearizable"] / row["runs"] if row["runs"] else 0.0
    return {"kv_behind_bypass": bar_of("kv_behind_bypass", share, demanding=row["runs"] >= RUNS)}
