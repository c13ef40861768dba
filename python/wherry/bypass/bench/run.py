# SPDX-License-Identifier: Apache-2.0
"""`wherry bench bypass`: runs the simulations in parallel, then QEMU's NICs, and writes all results to one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from wherry.bypass import programs
from wherry.bypass.bench import bars, hardware
from wherry.bypass.bench.jobs import Job, Say, run_jobs
from wherry.bypass.bench.schema import BENCHMARK, EXPERIMENTS, MODELS, RTL, BypassBench
from wherry.errors import BenchError, NotFound

QUICK_FRAMES = 200
"""The frames of a quick run with a NIC of QEMU."""


class Collector:
    """Collects the results of the experiments for the file."""

    def __init__(self, say: Say) -> None:
        self.document: dict[str, Any] = BENCHMARK.document({}, 1) | {"not_measured": {}, "not_run": {}}
        self.failed: list[str] = []
        self._say = say

    def lacking(self, names: Sequence[str], why: Exception) -> None:
        """Records that the requested experiments `names` could not run, and why."""
        for name in names:
            self.document["not_measured"][name] = str(why)
        self._say(f"{', '.join(names)}: not measured: {why}")
        if isinstance(why, BenchError):
            self.failed.append(f"{', '.join(names)}: {why}")

    def take(self, names: Sequence[str], file: Path | BenchError, use: Callable[[Any], None]) -> None:
        """Adds a program's results with `use`. `file`: the program's JSON, or the reason why it is missing. A result
        that does not match the schema is discarded."""
        before = {name: dict(self.document[name]) for name in ("bars", "results", "versions")}
        try:
            if isinstance(file, BenchError):
                raise file
            use(BENCHMARK.read(file))
            BENCHMARK.parse(self.document, ", ".join(names))
            return
        except (NotFound, BenchError) as why:
            self.lacking(names, why)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            fault = f"rows that are not as docs/reference/bench-bypass.md describes them: {error!r}"
            self.lacking(names, BenchError(fault))
        self.document |= before

    def add_rtl(self, said: Any) -> None:
        """Adds the output of bypass_rtl_bench."""
        self.document["versions"] |= said.get("versions", {})
        rows = hardware.rtl_rows(said)
        self.document["bars"] |= bars.rtl_bars(said["figures"], rows.get("rtl_rates", []))
        self.document["results"] |= rows

    def add_models(self, said: Any) -> None:
        """Adds the output of host_bypassing_bench."""
        rows = hardware.model_rows(said)
        self.document["bars"] |= bars.model_bars(rows)
        self.document["results"] |= rows

    def add_resources(self, table: Any) -> None:
        """Adds the committed resource table."""
        rows = hardware.resource_rows(table)
        self.document["bars"] |= bars.resource_bars(rows)
        self.document["results"]["resources"] = rows

    def add_qemu(self, said: Any) -> None:
        """Adds the output of bypass_qemu for one NIC."""
        rows = [*self.document["results"].get("qemu", []), hardware.qemu_row(said)]
        self.document["results"]["qemu"] = rows
        self.document["bars"] |= bars.qemu_bars(rows)

    def add_guest(self, said: Any) -> None:
        """Adds the output of tools/guest/run.py."""
        row = hardware.guest_row(said)
        self.document["bars"] |= bars.guest_bars(row)
        self.document["results"]["guest"] = [row]

    def add_kv(self, said: Any) -> None:
        """Adds the results of kv behind bypass."""
        row = hardware.kv_row(said)
        self.document["bars"] |= bars.kv_bars(row)
        self.document["results"]["kv"] = [row]

    def close(self) -> None:
        """Gives a reason for each bar without a value. Puts the bars into the order of TARGETS. Removes constants of
        models that did not run."""
        known = self.document["bars"]
        self.document["bars"] = {name: known[name] for name in bars.TARGETS if name in known}
        missing = self.document["not_measured"]
        for experiment, names in bars.EXPERIMENT_OF.items():
            for name in names:
                if name in known:
                    continue
                why = missing.get(experiment) or missing.get(f"{experiment} {name.rpartition('_')[2]}")
                if why is None and experiment in ("guest", "kv"):
                    why = f"needs --{experiment} FILE"
                self.document["not_run"][name] = why or f"{experiment} was not asked for"


def run(
    json_file: Path,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    guest: Path | None = None,
    kv: Path | None = None,
    progress: Console,
) -> BypassBench:
    """Simulates, writes `json_file`, and returns its content.

    If this machine lacks the programs of an experiment, the run skips it, and `not_measured` says why. Raises
    BenchError if an experiment failed; the file then has the results of the others."""
    wanted = set(only or EXPERIMENTS)

    def say(text: str) -> None:
        progress.print(text, markup=False)

    collector = Collector(say)
    with BENCHMARK.scratch_directory() as directory:
        _simulate(collector, wanted, quick, directory, say)
        if "qemu" in wanted:
            _qemu(collector, quick, directory, say)
    if "resources" in wanted:
        _resources(collector)
    for name, file, use in (("guest", guest, collector.add_guest), ("kv", kv, collector.add_kv)):
        if file is not None:
            collector.take([name], file, use)
    collector.close()
    bench = BENCHMARK.parse(collector.document, json_file)
    BENCHMARK.write(json_file, collector.document)
    if collector.failed:
        raise BenchError(f"{'; '.join(collector.failed)}. What else was measured is in {json_file}")
    return bench


def _resources(collector: Collector) -> None:
    try:
        table = programs.resource_table()
    except NotFound as why:
        collector.lacking(["resources"], why)
    else:
        collector.take(["resources"], table, collector.add_resources)


def _simulate(collector: Collector, wanted: set[str], quick: bool, directory: Path, say: Say) -> None:
    """Runs the RTL groups and the model experiments, each as a separate process, the longest first."""
    jobs: list[Job] = []

    def add(names: Mapping[str, str], program: Callable[[], Path]) -> None:
        asked = [name for name in names if name in wanted]
        try:
            path = program() if asked else Path()
        except NotFound as why:
            collector.lacking(asked, why)
            return
        for name in asked:
            file = directory / f"{name}.json"
            words = ["--json", str(file), *(["--quick"] if quick else []), "--only", names[name]]
            jobs.append(Job(name, [str(path), *words], file))

    add(RTL, programs.rtl_bench)
    add({name: name for name in MODELS}, programs.model_bench)
    if jobs:
        say(f"{len(jobs)} simulations on {len(os.sched_getaffinity(0))} cores")
    for name, found in run_jobs(jobs, say).items():
        collector.take([name], found, collector.add_rtl if name in RTL else collector.add_models)


def _qemu(collector: Collector, quick: bool, directory: Path, say: Say) -> None:
    """Runs the NICs of QEMU: e1000e with the installed QEMU, igb with a newer one."""
    frames = QUICK_FRAMES if quick else bars.FRAMES
    for nic, qemu in (("e1000e", None), ("igb", programs.newer_qemu)):
        file = directory / f"{nic}.json"
        try:
            line = [str(programs.qemu_bench()), "--core", "rtl", "--nic", nic, "--frames", str(frames)]
            line += ["--json", str(file), *(["--qemu", str(qemu())] if qemu is not None else [])]
        except NotFound as why:
            collector.lacking([f"qemu {nic}"], why)
            continue
        # Status 1: the program ran, and its file says what was wrong.
        found = run_jobs([Job(f"qemu {nic}", line, file, (0, 1))], say, 1)
        collector.take([f"qemu {nic}"], found[f"qemu {nic}"], collector.add_qemu)
