# SPDX-License-Identifier: Apache-2.0
"""`wherry bench route`: runs the benchmark program, then the five applications in the placements that two cores
allow."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from wherry.errors import BenchError
from wherry.route import advise, calibration, programs
from wherry.route.bench.schema import BENCHMARK, EXPERIMENTS, PROGRAM, RouteBench

PLACEMENTS = ("inline", "shared", "host")
SPEEDUP_TARGETS = {"transport": 1.3, "transpose": 1.3}


@dataclass(frozen=True, slots=True)
class Application:
    """How to run an application, and its name in the paper."""

    arguments: tuple[str, ...]
    """Arguments of the application, in which {n} is 1 with --quick, else 4."""
    published: str

    def value(self, of: str) -> float:
        """The published figure `of` of this application in the paper's table 2."""
        return float(BENCHMARK.published[f"bud_{self.published}_{of}"]["value"])


APPLICATIONS = {
    "histogram": Application(("--updates", "{n}0000000"), "histogram"),
    "transpose": Application(("--rows", "{n}00000"), "transpose"),
    "triangle": Application(("--rows", "{n}0000"), "tricount"),
    "sssp": Application(("--rows", "{n}00000"), "sssp"),
    "transport": Application(("--particles", "{n}00000"), "quicksilver"),
}


def run(
    json_file: Path, *, quick: bool = False, only: Sequence[str] = (), peers: Sequence[str] = (), progress: Console
) -> RouteBench:
    """Measures, writes `json_file`, and returns its content. Raises BenchError; NotFound if a program was not built."""
    wanted = set(only or EXPERIMENTS)
    if "applications" in wanted:
        wanted.add("link")
        for app in APPLICATIONS:
            programs.application(app)
    more = ["--only", ",".join(name for name in PROGRAM if name in wanted)]
    for peer in peers:
        more += ["--peer", peer]
    json_file.parent.mkdir(parents=True, exist_ok=True)  # report now if it cannot be made
    with BENCHMARK.scratch_directory() as directory:
        said = directory / "route.json"
        BENCHMARK.run_program("bench_route", said, quick=quick, more=more)
        document: dict[str, Any] = BENCHMARK.read(said)
    if "applications" in wanted:
        _applications(document, quick, progress)
    bench = BENCHMARK.parse(document, json_file)
    BENCHMARK.write(json_file, document)
    return bench


def _run_once(app: str, placement: str, arguments: Sequence[str], directory: Path) -> dict[str, Any]:
    """Runs an application on two nodes with one rank each. `inline`: each rank has its own core. `shared`: ranks and
    agents use the first core. `host`: the ranks use the first core, the agents the second. Returns the application's
    report, and M:C."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if placement == "shared":
        cores = cores[:1]
    words = ["--nodes", "2", "--placement", placement, "--cores", ",".join(map(str, cores))]
    words += ["--statistics", str(directory)]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = BENCHMARK.start(
            [sys.executable, "-m", "wherry.cli", "run", *words, "--", str(programs.application(app)), *arguments],
            stdout=output,
            stderr=errors,
        )
        status = BENCHMARK.wait_for(process)
        output.seek(0)
        errors.seek(0)
        said, complaint = output.read(), errors.read()
    if status:
        raise BenchError(f"{app}, placement {placement}: {complaint.strip() or said.strip()}")
    for line in said.splitlines():
        if '"app"' in line:
            found: dict[str, Any] = json.loads(line[line.index("{") :])
            return found | memory_to_communication(app, directory, alone=placement == "inline")
    raise BenchError(f"{app}, placement {placement}, printed no result")


def memory_to_communication(app: str, directory: Path, *, alone: bool) -> dict[str, Any]:
    """The M:C ratio (docs/guide/route-advise.md) from the files of a job's ranks in `directory`. If a rank could not
    count misses, returns the reason and, if each rank was `alone` on its core, an estimate."""
    files = sorted(directory.glob("rank-*.json"))
    ranks = [advise.RankFile(**json.loads(path.read_text())) for path in files]
    said = advise.conclude([app], ranks, calibration.DEFAULT, alone=alone)
    missing = next((rank.cache_misses_missing for rank in ranks if rank.cache_misses is None), "")
    return {
        "mc_ratio": None if said.estimated else said.ratio,
        "mc_estimate": said.ratio if said.estimated and alone else None,
        "mc_missing": missing,
        "category": said.category.value,
    }


def _applications(document: dict[str, Any], quick: bool, progress: Console) -> None:
    results = document["results"]
    link = next(row["gbps"] for row in results["link"] if row["placement"] == "host")
    with BENCHMARK.scratch_directory() as directory:
        for app, how in APPLICATIONS.items():
            words = [word.format(n=1 if quick else 4) for word in how.arguments]
            runs: dict[str, list[dict[str, Any]]] = {placement: [] for placement in PLACEMENTS}
            for _ in range(document["repetitions"]):
                for placement, of in runs.items():
                    of.append(_run_once(app, placement, words, directory))
            if len({one["checksum"] for of in runs.values() for one in of}) != 1:
                raise BenchError(f"{app} comes to different results in different placements")
            row, speedups = _application_row(app, how, words, runs, link)
            results.setdefault("applications", []).append(row)
            document["bars"][f"offload_speedup_{app}"] = _speedup_bar(app, speedups, row)
            mc = f"{row['mc_ratio']:.2f}" if row["mc_estimate"] is None else f"{row['mc_estimate']:.2f} (estimated)"
            progress.print(
                f"{app}: inline {row['inline_seconds']:.3f} s, shared {row['shared_seconds']:.3f} s, "
                f"host {row['host_seconds']:.3f} s: host over shared {row['speedup']:.2f} "
                f"(published: {row['published_speedup']}), network share {row['network_share']:.3f}, M:C {mc}"
            )


def _application_row(
    app: str, how: Application, words: list[str], runs: dict[str, list[dict[str, Any]]], link: float
) -> tuple[dict[str, Any], list[float]]:
    """The row of an application, and all samples of its speed-up."""
    seconds = {placement: [one["seconds"] for one in of] for placement, of in runs.items()}
    over_shared = {
        placement: [shared / own for shared, own in zip(seconds["shared"], times, strict=True)]
        for placement, times in seconds.items()
    }
    host = runs["host"]
    # The estimate needs a core for each rank, which only placement inline has.
    missing = next((one["mc_missing"] for one in runs["inline"] if one["mc_ratio"] is None), "")
    figure = "mc_estimate" if missing else "mc_ratio"
    mc = statistics.median_low([one[figure] for one in runs["inline"] if one[figure] is not None])
    share = [one["bytes"] * 8e-9 / one["seconds"] / link for one in host]
    row = {
        "app": app,
        "arguments": words,
        **{f"{placement}_seconds": statistics.median(times) for placement, times in seconds.items()},
        "speedup": statistics.median(over_shared["host"]),
        "inline_speedup": statistics.median(over_shared["inline"]),
        "messages": host[-1]["messages"],
        "bytes": host[-1]["bytes"],
        "average_transfer": host[-1]["statistics"]["bytes_out"] / max(host[-1]["statistics"]["transfers"], 1),
        "network_share": statistics.median(share),
        "mc_ratio": None if missing else mc,
        "mc_estimate": mc if missing else None,
        "mc_missing": missing,
        "category": next(one["category"] for one in runs["inline"] if one[figure] == mc),
        "published_speedup": how.value("speedup_x86"),
        "published_network_share": how.value("net_util") / 100,
        "published_mc_ratio": how.value("mc_ratio"),
    }
    return row, over_shared["host"]


def _speedup_bar(app: str, samples: list[float], row: dict[str, Any]) -> dict[str, Any]:
    value = row["speedup"]
    bar: dict[str, Any] = {"value": value, "min": min(samples), "max": max(samples), "unit": ""}
    if app in SPEEDUP_TARGETS:
        bar |= {"target": f">= {SPEEDUP_TARGETS[app]}", "pass": value >= SPEEDUP_TARGETS[app]}
    return bar | {"published": f"{row['published_speedup']:g} (x86 over none)"}
