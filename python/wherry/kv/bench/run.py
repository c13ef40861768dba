# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`: runs the experiments one after another and writes their file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from wherry.errors import BenchError, NotFound, PermissionDenied, Unsupported
from wherry.kv.bench import failover, gateway, hardware, software, veth
from wherry.kv.bench.schema import BENCHMARK, EXPERIMENTS, KvBench

KILLS, QUICK_KILLS = 50, 3


def run(json_file: Path, *, quick: bool = False, only: Sequence[str] = (), progress: Console) -> KvBench:
    """Measures, writes `json_file`, and returns its content.

    If the machine lacks the programs or rights of an experiment, the run skips it, and `not_measured` says why. Raises
    BenchError if an experiment failed; the file then has the results of the others."""
    wanted = set(only or EXPERIMENTS)
    effort = software.QUICK if quick else software.FULL
    a, b = software.two_cores()
    document = BENCHMARK.document({"node": a, "client": b}, effort.rounds) | {"not_measured": {}}
    failed: list[str] = []

    def say(text: str) -> None:
        progress.print(text, markup=False)

    def attempt(names: Sequence[str], measure: Callable[[set[str]], None]) -> None:
        asked = wanted.intersection(names)
        if not asked:
            return
        try:
            measure(asked)
        except (NotFound, PermissionDenied, Unsupported, BenchError) as why:
            for name in sorted(asked):
                document["not_measured"][name] = str(why)
                say(f"{name}: not measured: {why}")
            if isinstance(why, BenchError):
                failed.append(f"{', '.join(sorted(asked))}: {why}")

    attempt(hardware.SECTIONS, lambda asked: hardware.run_simulation(document, asked, quick))
    attempt(["resources"], lambda _: hardware.run_resources(document, say))
    attempt(["software", "throughput"], lambda asked: software.run(document, asked, effort, say))
    attempt(["software_xdp"], lambda _: veth.run(document, effort, say))
    attempt(["failover"], lambda _: failover.run(document, QUICK_KILLS if quick else KILLS, say))
    attempt(["gateway"], lambda _: gateway.run(document, effort, quick, say))
    bench = BENCHMARK.parse(document, json_file)
    BENCHMARK.write(json_file, document)
    if failed:
        raise BenchError(f"{'; '.join(failed)}. What else was measured is in {json_file}")
    return bench
