# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`: the experiments in turn, and their file."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from wherry import _bench_kv_failover, _bench_kv_hardware, _bench_kv_software, _bench_kv_veth, bench_schema
from wherry.bench_schema import BenchError
from wherry.bench_schema_kv import EXPERIMENTS, KvBench, parse_kv
from wherry.errors import NotFound, PermissionDenied, Unsupported
from wherry.system import secure

KILLS, QUICK_KILLS = 50, 3


def run(json_file: Path, *, quick: bool = False, only: Sequence[str] = (), progress: Console) -> KvBench:
    """Measures, writes `json_file`, and returns what it holds.

    What this machine lacks the programs or the rights for is left out, and `not_measured` says why. Raises BenchError
    when an experiment failed; the file then has what the others found."""
    wanted = set(only or EXPERIMENTS)
    effort = _bench_kv_software.QUICK if quick else _bench_kv_software.FULL
    a, b = _bench_kv_software.two_cores()
    document: dict[str, Any] = {
        "schema": bench_schema.SCHEMA,
        "name": "kv",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "wherry": bench_schema.wherry_version(),
        "machine": dataclasses.asdict(bench_schema.this_machine()),
        "versions": {"python": platform.python_version()},
        "pinning": {"node": a, "client": b},
        "repetitions": effort.rounds,
        "bars": {},
        "results": {},
        "not_measured": {},
    }

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

    attempt(_bench_kv_hardware.SECTIONS, lambda asked: _bench_kv_hardware.run_simulation(document, asked, quick))
    attempt(["resources"], lambda _: _bench_kv_hardware.run_resources(document, say))
    attempt(["software", "throughput"], lambda asked: _bench_kv_software.run(document, asked, effort, say))
    attempt(["software_xdp"], lambda _: _bench_kv_veth.run(document, effort, say))
    attempt(["failover"], lambda _: _bench_kv_failover.run(document, QUICK_KILLS if quick else KILLS, say))
    bench = parse_kv(document, str(json_file))
    json_file.parent.mkdir(parents=True, exist_ok=True)
    # An interrupted run leaves nothing, or the old file.
    with secure.replacing(json_file) as partial:
        partial.write_text(json.dumps(document, indent=2) + "\n")
    if failed:
        raise BenchError(f"{'; '.join(failed)}. What else was measured is in {json_file}")
    return bench
