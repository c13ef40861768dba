# SPDX-License-Identifier: Apache-2.0
"""The RTL's part of `wherry bench kv`: what kv_rtl_bench measured in simulation, and what Yosys says the cores take."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wherry.bench import BenchError, published_values, read_json
from wherry.errors import NotFound
from wherry.kv.bench.software import Say
from wherry.system import paths

SECTIONS = ("rtl_latency", "line_rate")
WHOLE = 1024
SMALL = 64


def run_simulation(document: dict[str, Any], wanted: set[str], quick: bool) -> None:
    """`rtl_latency` and `line_rate`. Raises NotFound: the harness was not built; BenchError: it fails."""
    program = paths.built("sim", "kv_rtl_bench")
    with tempfile.TemporaryDirectory(prefix="wherry-bench-") as directory:
        file = Path(directory) / "rtl.json"
        words = [str(program), "--json", str(file), *(["--quick"] if quick else [])]
        words += ["--only", ",".join(name for name in SECTIONS if name in wanted)]
        try:
            status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode
        except OSError as error:
            raise BenchError(f"{program}: {error.strerror}") from None
        if status:
            raise BenchError(f"{program} failed (status {status}); its last lines above say why")
        said = read_json(file)
    if not isinstance(said, dict):
        raise BenchError(f"{program} wrote no object")
    document["versions"] |= said.get("versions", {})
    rows = {section: said.get(section, []) for section in SECTIONS if section in wanted}
    try:
        document["bars"] |= simulation_bars(rows)
    except (KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"{program} wrote rows that docs/bench-json.md does not describe: {error!r}") from None
    document["results"] |= rows


def exact_bar(value: float, comparison: str, target: float, unit: str, published: str) -> dict[str, Any]:
    """Of what is counted, and the same each time."""
    met = value <= target if comparison == "<=" else value >= target
    bar = {"value": value, "min": value, "max": value, "target": f"{comparison} {target:g}", "pass": met, "unit": unit}
    return bar | ({"published": published} if published else {})


def simulation_bars(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Those that the rows allow. Times: with the memory that gives the thesis's own pipeline its 376 and 384 ns, values
    of 1 KiB; the other preset is in the rows."""
    known = published_values("kv")
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
    ):
        for row in results.get("line_rate", []):
            if (row["workload"], row["size"]) == (workload, size):
                # A rate at which frames are lost is none.
                bars[name] = exact_bar(0.0 if row["lost"] else row["share"], ">=", least, "", published)
    return bars


def read_resources(file: Path) -> list[dict[str, Any]]:
    """The rows of hdl/resources.json that are kv's. Raises BenchError."""
    try:
        table = json.loads(file.read_text())
        return [
            {
                "name": row["name"],
                "parameters": ", ".join(f"{name} {value}" for name, value in row["parameters"].items()),
                **{key: row[key] for key in ("lut", "lutram", "ff", "uram")},
                "bram36": row["bram36"] + row["bram18"] / 2,
                "levels": row["depth"],
            }
            for row in table
            if row["name"].startswith("kv_")
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"{file} is not what tools/synth.py writes: {error!r}") from None


def resource_bars(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of the whole core (kv_core) where the table has it, else of the sum of its parts."""
    whole = [row for row in rows if row["name"] == "kv_core"] or list(rows)
    if not whole:
        return {}
    known = published_values("kv")

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


def run_resources(document: dict[str, Any], say: Say) -> None:
    """`resources`, of the committed table. Raises BenchError; NotFound: this is no checkout."""
    root = paths.repository()
    file = root / "hdl" / "resources.json" if root is not None else None
    if file is None or not file.is_file():
        raise NotFound("the table of resources is in a checkout: hdl/resources.json")
    rows = read_resources(file)
    document["bars"] |= resource_bars(rows)
    document["results"]["resources"] = rows
    say(f"resources: {len(rows)} cores of hdl/resources.json")
