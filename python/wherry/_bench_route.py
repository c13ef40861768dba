# SPDX-License-Identifier: Apache-2.0
"""`wherry bench route`: the benchmark program, then the five applications in the placements that two cores allow."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wherry import _paths
from wherry.bench_schema import BenchError

PROGRAM = ("histogram", "random_sizes", "agent_rate", "latency", "weak_scaling")
EXPERIMENTS = (*PROGRAM, "applications")
"""What `--only` takes."""

APPLICATIONS: dict[str, list[str]] = {
    "histogram": ["--updates", "{n}0000000"],
    "transpose": ["--rows", "{n}00000"],
    "triangle": ["--rows", "{n}0000"],
    "sssp": ["--rows", "{n}00000"],
    "transport": ["--particles", "{n}00000"],
}
"""Arguments of each; {n} is 1 with --quick, else 4."""

SPEEDUP_TARGETS = {"transport": 1.3, "transpose": 1.3}
PUBLISHED = {"histogram": 1.77, "transport": 1.55, "sssp": 1.68, "transpose": 1.51, "triangle": 1.35}
"""Paper 001, table 2: speed-up on another socket ("x86") over none."""


def run(
    json_file: Path, *, quick: bool = False, only: Sequence[str] = (), peers: Sequence[str] = (), progress: Console
) -> dict[str, Any]:
    """Measures, writes `json_file`, and returns what it holds. Raises BenchError; NotFound: something was not built."""
    wanted = only or EXPERIMENTS
    json_file.parent.mkdir(parents=True, exist_ok=True)
    line = [str(_paths.built("bench", "bench_route")), "--json", str(json_file)]
    line += ["--quick"] if quick else []
    line += ["--only", ",".join(name for name in wanted if name in PROGRAM) or "none"]
    for peer in peers:
        line += ["--peer", peer]
    if subprocess.run(line, stdin=subprocess.DEVNULL, check=False).returncode:
        raise BenchError(f"{line[0]} failed; its last lines above say why")
    bench: dict[str, Any] = json.loads(json_file.read_text())
    if "applications" in wanted:
        _applications(bench, quick, progress)
        json_file.write_text(json.dumps(bench, indent=2) + "\n")
    return bench


def _run_once(app: str, placement: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Two nodes of a rank each. The ranks have the first core; so have their agents, with `shared`, and with `host` the
    second one."""
    cores = "0" if placement == "shared" else "0,1"
    command = [sys.executable, "-m", "wherry.cli", "run", "--nodes", "2", "--placement", placement, "--cores", cores]
    done = subprocess.run(
        [*command, "--", str(_paths.built("apps", app)), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchError(f"{app}, placement {placement}: {done.stderr.strip() or done.stdout.strip()}")
    for line in done.stdout.splitlines():
        if '"app"' in line:
            found: dict[str, Any] = json.loads(line[line.index("{") :])
            return found
    raise BenchError(f"{app}, placement {placement}, printed no result")


def _applications(bench: dict[str, Any], quick: bool, progress: Console) -> None:
    rounds = 5 if quick else 9
    rows = bench["results"].setdefault("applications", [])
    for app, arguments in APPLICATIONS.items():
        words = [word.format(n=1 if quick else 4) for word in arguments]
        seconds: dict[str, list[float]] = {"inline": [], "shared": [], "host": []}
        last: dict[str, dict[str, Any]] = {}
        for _ in range(rounds):
            for placement, times in seconds.items():
                last[placement] = _run_once(app, placement, words)
                times.append(last[placement]["seconds"])
        if len({result["checksum"] for result in last.values()}) != 1:
            raise BenchError(f"{app} comes to different results in different placements")
        speedup = [shared / host for shared, host in zip(seconds["shared"], seconds["host"], strict=True)]
        median = {placement: statistics.median(times) for placement, times in seconds.items()}
        host = last["host"]
        rows.append(
            {
                "app": app,
                "arguments": words,
                **{f"{placement}_seconds": value for placement, value in median.items()},
                "speedup": statistics.median(speedup),
                "published_speedup_x86": PUBLISHED[app],
                "messages": host["messages"],
                "bytes": host["bytes"],
                "average_transfer": host["statistics"]["bytes_out"] / max(host["statistics"]["transfers"], 1),
            }
        )
        bar: dict[str, Any] = {
            "value": statistics.median(speedup),
            "min": min(speedup),
            "max": max(speedup),
            "unit": "",
        }
        if app in SPEEDUP_TARGETS:
            bar["target"] = f">= {SPEEDUP_TARGETS[app]}"
            bar["pass"] = bar["value"] >= SPEEDUP_TARGETS[app]
        bench["bars"][f"offload_speedup_{app}"] = bar
        progress.print(
            f"{app}: inline {median['inline']:.3f} s, shared {median['shared']:.3f} s, host {median['host']:.3f} s: "
            f"host over shared {bar['value']:.2f} (published: {PUBLISHED[app]})"
        )


def show(bench: dict[str, Any], console: Console) -> None:
    """The bars."""
    table = Table("bar", "median", "min", "max", "must be", "", title="Bars")
    for name, bar in bench["bars"].items():
        verdict = "" if "pass" not in bar else "met" if bar["pass"] else "missed"
        figures = [f"{bar[key]:.3g}" for key in ("value", "min", "max")]
        table.add_row(name, *figures, bar.get("target", ""), verdict)
    console.print(table)
