# SPDX-License-Identifier: Apache-2.0
"""`wherry bench probe`: runs the measuring tool, and records its time, its repeatability and its detection of wrong
data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from wherry.errors import BenchError, NotFound
from wherry.probe.bench import designs, gains
from wherry.probe.bench.bars import EXPERIMENT_OF, bars_of
from wherry.probe.bench.cache import cache_bars, run_cache
from wherry.probe.bench.dma import dma_bars, rows_of
from wherry.probe.bench.schema import (
    BENCHMARK,
    EXPERIMENTS,
    Absent,
    PathFigures,
    ProbeBench,
    ProbeResults,
    Same,
    Spoiled,
    Suite,
)
from wherry.probe.bench.thesis import add_thesis
from wherry.probe.comparing import compare_series
from wherry.probe.lines import Progress
from wherry.probe.measuring import measure, measure_dma
from wherry.probe.model import claims
from wherry.probe.schema import ProbeRun

Say = Callable[[str], None]
SPOILED = ("--bytes", "64", "--bytes", "4096", "--depth", "1", "--rounds", "3", "--seconds", "5", "--spoil")
PROFILE_S, PROFILE_QUICK_S = 60, 5
"""The duration of the profile's measurement."""


def suite_of(name: Literal["quick", "full", "twice", "spoiled"], run: ProbeRun, seconds: float) -> Suite:
    """The summary of one run."""
    troubles = [trouble for path in run.paths for trouble in path.troubles]
    return Suite(
        suite=name,
        seconds=seconds,
        rows=len(run.rows),
        refused=sum(bool(row.refused) for _, row in run.rows),
        failed=sum(not trouble.wrong for trouble in troubles),
        wrong=run.wrong,
        unsettled=sum(row.unsettled for _, row in run.rows),
        harness_batched_ns=run.harness_batched_ns,
        harness_timed_ns=run.harness_timed_ns,
    )


def figures_of(run: ProbeRun) -> list[PathFigures]:
    """The figures of all rows that were not refused."""
    return [
        PathFigures(
            id=path.id,
            group=path.group,
            provenance=path.provenance,
            size=row.bytes,
            depth=row.depth,
            shape=row.words,
            p50_ns=row.p50_ns,
            least_ns=row.least,
            most_ns=row.most,
            p99_ns=row.p99_ns,
            gbytes_per_s=row.gbytes_per_s,
            transfers_per_s=row.transfers_per_s,
            cpu_ns=row.cpu_user_ns + row.cpu_system_ns,
            other_cpu_ns=row.other_user_ns + row.other_system_ns,
            unsettled=row.unsettled,
        )
        for path, row in run.rows
        if not row.refused and row.series == 0
    ]


def same_of(run: ProbeRun) -> list[Same]:
    """The comparison of the two series of a run with --twice."""
    found = [one for one in compare_series(run) if one.verdict != "undecided"]
    return [Same(one.path.id, one.a.bytes, one.a.words, one.ratio, one.low, one.high, one.verdict) for one in found]


def spoiled_of(run: ProbeRun) -> list[Spoiled]:
    """For every present path, the number of cells and of cells whose wrong data was noticed. The two must be equal."""
    found = []
    for path in run.paths:
        if not path.absent:
            noticed = sum(trouble.wrong for trouble in path.troubles)
            found.append(Spoiled(path.id, len(path.rows) + len(path.troubles), noticed))
    return found


class _Bench:
    def __init__(self, say: Say) -> None:
        self.results = ProbeResults()
        self.without: list[str] | None = None
        self.environment: dict[str, str] = {}
        self.rounds = 0
        self.bars: dict[str, dict[str, Any]] = {}
        self.lacking: dict[str, str] = {}
        self._say = say
        self._told = 0.0

    def _watch(self, line: Progress) -> None:
        if line.seconds < self._told or line.seconds - self._told >= 10:
            self._told = line.seconds
            self._say(f"  {100 * line.done // max(line.of, 1)} %, {line.seconds:.0f} s: {line.id}, {line.bytes} bytes")

    def dma(self) -> None:
        """Measures the DMA engine in simulation. A build without RTL lacks the program."""
        self._say(_WORDS["dma"])
        try:
            document = measure_dma()
        except NotFound as why:
            self.lacking["dma"] = str(why)
            return
        self.results.dma[:] = rows_of(document)
        self.bars = dma_bars(document)

    def experiment(self, name: str, say_first: str) -> None:
        self._say(say_first)
        self._told = 0.0
        begin = time.monotonic()
        if name == "spoiled":
            run = measure(more=SPOILED, watch=self._watch)
        else:
            run = measure(quick=name != "full", twice=name == "twice", watch=self._watch)
        seconds = time.monotonic() - begin
        if run.stopped:
            raise KeyboardInterrupt
        if run.wrong and name != "spoiled":
            wrong = sorted({path.id for path in run.paths for trouble in path.troubles if trouble.wrong})
            raise BenchError(f"wrong data from {', '.join(wrong)}: `wherry probe run` shows more")
        kind: Literal["quick", "full", "twice", "spoiled"] = name  # type: ignore[assignment]
        self.results.suites.append(suite_of(kind, run, seconds))
        self.environment = run.environment
        if name in ("quick", "full"):
            self.rounds = run.settings.rounds
            self.results.paths[:] = figures_of(run)
            self.results.absent[:] = [Absent(path.id, path.absent) for path in run.paths if path.absent]
            having = {row.id for row in self.results.paths}
            self.without = [path.id for path in run.paths if not path.absent and path.id not in having]
        elif name == "twice":
            self.results.same.extend(same_of(run))
        else:
            self.results.spoiled.extend(spoiled_of(run))

    def profile(self, say_first: str, *, quick: bool) -> None:
        self._say(say_first)
        self._told = 0.0
        settings = gains.measure(PROFILE_QUICK_S if quick else PROFILE_S, self._watch)
        found = gains.gains(settings, quick=quick, say=self._say)
        self.results.settings.extend(found.settings)
        self.results.gains.extend(found.rows)

    def simulate(self) -> dict[str, dict[str, Any]]:
        """Runs the experiment `designs` and returns its bars."""
        self._say("four FPGA designs of paper 000, simulated: a minute or two")
        with BENCHMARK.scratch_directory() as folder:
            file = folder / "designs.json"
            BENCHMARK.run_program("designs_bench", file, quick=False, more=(), folder="sim/designs")
            found = designs.read(BENCHMARK.read(file))
        self.results.designs.extend(found.points)
        self.results.design_turns.extend(found.turns)
        self.results.design_ways.extend(found.ways)
        self.results.design_linux.extend(found.linux)
        self.results.design_firmwares.extend(found.firmwares)
        self.environment |= {"linux_traffic": found.traffic}
        return designs.bars_of(found)


_WORDS = {
    "quick": "the quick suite",
    "full": "the full suite, some three minutes",
    "twice": "the quick suite, everything twice",
    "spoiled": "every path, with one byte flipped",
    "profile": "a path profile, and what its settings gain: some ten minutes",
    "dma": "the DMA engine as a card, simulated",
}


def run(json_file: Path, *, quick: bool = False, only: Sequence[str] = (), say: Say) -> ProbeBench:
    """Measures, writes `json_file`, and returns its content. Raises BenchError, NotFound."""
    wanted = [
        name for name in EXPERIMENTS if name in only or (not only and not (quick and name in ("full", "profile")))
    ]
    bench = _Bench(say)
    pinning: dict[str, int] = {}
    simulated: dict[str, dict[str, Any]] = {}
    for name in wanted:
        if name == "profile":
            bench.profile(_WORDS[name], quick=quick)
        elif name == "cache":
            say("caches and memory under an agent")
            pinning = run_cache(bench.results, quick, say)
        elif name == "thesis":
            say("the thesis's shell, simulated, and under load: half a minute")
            add_thesis(bench.results, quick=quick)
        elif name == "dma":
            bench.dma()
        elif name == "designs":
            simulated |= bench.simulate()
        elif name != "model":  # `model` measures nothing
            bench.experiment(name, _WORDS[name])
    bars = bars_of(bench.results, bench.without) | cache_bars(bench.results)
    bars |= (claims() if "model" in wanted else {}) | simulated | bench.bars
    document: dict[str, Any] = BENCHMARK.document(pinning, max(bench.rounds, 1)) | {
        "bars": bars,
        "results": asdict(bench.results),
        "environment": bench.environment,
        "not_run": {
            name: bench.lacking.get(of, f"{of} was not asked for")
            for name, of in EXPERIMENT_OF.items()
            if name not in bars
        },
    }
    found = BENCHMARK.parse(document, json_file)
    BENCHMARK.write(json_file, document)
    return found
