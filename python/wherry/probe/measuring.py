# SPDX-License-Identifier: Apache-2.0
"""Runs wherry-probe and shell_bench, and collects their output."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wherry.errors import BenchError
from wherry.probe.lines import End, Failed, Figures, Line, PathLine, Progress, RowLine, Start, Wrong, parse, paths_of
from wherry.probe.schema import SCHEMA, MeasuredPath, ProbeRun, Row, Settings, Trouble, now, trouble_of
from wherry.system import (
    ask_to_end,
    built,
    ends_with_us,
    how_it_ended,
    run_to_end,
    scratch_directory,
    spawn,
    wherry_probe,
)

WRONG_DATA, NOTHING, STOPPED = 1, 2, 130
"""Exit statuses of wherry-probe, and of `wherry probe run`."""


def lines_of(words: Sequence[str]) -> Iterator[Line]:
    """Runs wherry-probe and yields its lines as they arrive. Raises BenchError if it ends in an unexpected way;
    NotFound."""
    environment = {"UCX_LOG_LEVEL": "error"} | os.environ
    with spawn(
        [str(wherry_probe()), *words],
        before=ends_with_us(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None
        silent = True
        try:
            for text in process.stdout:
                yield parse(text)
                silent = False
        except BaseException:
            # After Ctrl-C, the terminal has signalled the program as well. The program's children end with it.
            ask_to_end(process)
            raise
        status = process.wait()
    if status not in (0, WRONG_DATA, NOTHING, STOPPED):
        raise BenchError(f"wherry-probe {how_it_ended(status)}; its last lines above say why")
    if status == NOTHING and silent:
        raise BenchError("wherry-probe refused what it was asked for; its last line above says why")


def known_paths(only: Sequence[str] = ()) -> list[PathLine]:
    """All known paths, or those that `only` names. Raises BenchError if a name does not match any path."""
    found = paths_of(lines_of(["list", *_only(only)]))
    if not found:
        raise BenchError("wherry-probe lists no path; its last lines above say why")
    return found


def _only(only: Sequence[str]) -> list[str]:
    return [word for name in only for word in ("--only", name)]


class Collector:
    """Collects the lines of one run."""

    def __init__(self) -> None:
        self._start: Start | None = None
        self._end: End | None = None
        self._paths: list[PathLine] = []
        self._rows: dict[str, list[Row]] = {}
        self._troubles: dict[str, list[Trouble]] = {}

    def take(self, line: Line) -> None:
        """Adds a line. Raises BenchError if the line is not allowed at this point."""
        if (self._start is None) != isinstance(line, Start) or self._end is not None:
            raise BenchError(f"wherry-probe wrote a line of kind {type(line).__name__} where none can be")
        match line:
            case Start():
                self._start = line
            case End():
                self._end = line
            case PathLine():
                self._paths.append(line)
            case RowLine():
                figures = {name: getattr(line, name) for name in Figures.__struct_fields__}
                self._rows.setdefault(line.id, []).append(Row(**figures))
            case Wrong() | Failed():
                self._troubles.setdefault(line.id, []).append(trouble_of(line, line.why))
            case Progress():
                pass

    def run(self, *, quick: bool, twice: bool, only: Sequence[str]) -> ProbeRun:
        """The complete run. Raises BenchError if the program did not run to its end."""
        start, end = self._start, self._end
        if start is None or end is None:
            raise BenchError("wherry-probe ended before its run did; its last lines above say why")
        unknown = {*self._rows, *self._troubles} - {path.id for path in self._paths}
        if unknown:
            raise BenchError(f"wherry-probe wrote rows of {sorted(unknown)}, which it lists no path for")
        return ProbeRun(
            schema=SCHEMA,
            name="probe_run",
            when=now(),
            wherry=start.wherry,
            machine_key=start.machine_key,
            environment=start.environment,
            clock_ghz=start.clock_ghz,
            clock_resolution_ns=start.clock_resolution_ns,
            harness_batched_ns=start.harness_batched_ns,
            harness_timed_ns=start.harness_timed_ns,
            settings=Settings(quick=quick, twice=twice, rounds=start.rounds, seed=start.seed, only=list(only)),
            seconds=end.seconds,
            stopped=end.stopped,
            paths=[
                MeasuredPath(
                    **{name: getattr(path, name) for name in PathLine.__struct_fields__},
                    rows=self._rows.get(path.id, []),
                    troubles=self._troubles.get(path.id, []),
                )
                for path in self._paths
            ],
        )


def measure(
    *,
    quick: bool = False,
    twice: bool = False,
    only: Sequence[str] = (),
    more: Sequence[str] = (),
    watch: Callable[[Progress], None] = lambda line: None,
) -> ProbeRun:
    """Runs wherry-probe once. `more`: further arguments of the program. Raises BenchError."""
    words = ["run", *(["--quick"] if quick else []), *(["--twice"] if twice else []), *_only(only), *more]
    collector = Collector()
    for line in lines_of(words):
        if isinstance(line, Progress):
            watch(line)
        collector.take(line)
    return collector.run(quick=quick, twice=twice, only=only)


def simulate_shell(values: Mapping[str, int] | None = None, packets: int = 0) -> dict[str, Any]:
    """Runs shell_bench with the given parameter values, and returns its output.

    `packets`: packets in each run under load; 0: no runs under load. Raises BenchError; NotFound if it was not built.
    """
    program = built("sim/shell", "shell_bench")
    words = [word for name, value in (values or {}).items() for word in ("--set", f"{name}={value}")]
    words += ["--load", str(packets)] if packets else []
    done = run_to_end([str(program), *words])
    if done.returncode:
        raise BenchError(f"shell_bench {how_it_ended(done.returncode)}: {done.stderr.strip() or 'it said nothing'}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_dma() -> dict[str, Any]:
    """Runs dma_card_bench, the DMA engine in simulation. Raises NotFound if the program was not built; BenchError."""
    program = built("sim/card", "dma_card_bench")
    with scratch_directory() as folder:
        file = folder / "dma.json"
        done = run_to_end([str(program), "--json", str(file)])
        if done.returncode:
            raise BenchError(f"{program} failed (exit status {done.returncode}): {done.stderr.strip()[-400:]}")
        document: dict[str, Any] = json.loads(file.read_text())
    return document
