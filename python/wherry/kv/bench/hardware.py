# SPDX-License-Identifier: Apache-2.0
"""The RTL part of `wherry bench kv`: simulated times from kv_rtl_bench, and the cores' resources from Yosys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wherry.errors import BenchError
from wherry.kv.bench.bars import resource_bars, simulation_bars
from wherry.kv.bench.schema import BENCHMARK
from wherry.kv.bench.software import Say
from wherry.kv.programs import resource_table, rtl_bench

SECTIONS = ("rtl_latency", "line_rate")


def run_simulation(document: dict[str, Any], wanted: set[str], quick: bool) -> None:
    """Runs the experiments `rtl_latency` and `line_rate`. Raises NotFound if kv_rtl_bench was not built, BenchError if
    it fails."""
    with BENCHMARK.scratch_directory() as directory:
        file = directory / "rtl.json"
        words = ["--json", str(file), *(["--quick"] if quick else [])]
        program, *words = rtl_bench(*words, "--only", ",".join(name for name in SECTIONS if name in wanted))
        try:
            status = BENCHMARK.wait_for(BENCHMARK.start([program, *words]))
        except OSError as error:
            raise BenchError(f"{program}: {error.strerror}") from None
        if status:
            raise BenchError(f"{program} failed (status {status}); its last lines above say why")
        said = BENCHMARK.read(file)
    if not isinstance(said, dict):
        raise BenchError(f"{program} wrote no object")
    document["versions"] |= said.get("versions", {})
    rows = {section: said.get(section, []) for section in SECTIONS if section in wanted}
    try:
        document["bars"] |= simulation_bars(rows)
    except (KeyError, TypeError, AttributeError) as error:
        fault = f"{program} wrote rows that docs/reference/bench-json.md does not describe: {error!r}"
        raise BenchError(fault) from None
    document["results"] |= rows


def read_resources(file: Path) -> list[dict[str, Any]]:
    """The rows of hdl/resources.json that belong to kv. Raises BenchError."""
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


def run_resources(document: dict[str, Any], say: Say) -> None:
    """Puts `resources` from the committed table into the document. Raises BenchError; NotFound outside of a
    checkout."""
    rows = read_resources(resource_table())
    document["bars"] |= resource_bars(rows)
    document["results"]["resources"] = rows
    say(f"resources: {len(rows)} cores of hdl/resources.json")
