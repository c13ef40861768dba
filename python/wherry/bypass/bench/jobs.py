# SPDX-License-Identifier: Apache-2.0
"""Runs simulations in parallel, at most one per core, because each simulation is a single compute-bound thread."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wherry.bypass.bench.schema import BENCHMARK
from wherry.errors import BenchError

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A program that writes JSON."""

    name: str
    line: Sequence[str]
    json_file: Path
    accepted: Sequence[int] = (0,)
    """The exit statuses that mean that the program has written its file."""


@dataclass(slots=True)
class _Running:
    job: Job
    process: subprocess.Popen[str]
    reader: threading.Thread
    last: list[str] = field(default_factory=list)


def run_jobs(jobs: Sequence[Job], say: Say, cores: int = 0) -> dict[str, Path | BenchError]:
    """Returns each job's file, or a BenchError that says why the file is missing. The jobs' output goes to `say`, line
    by line. Ctrl-C ends all jobs, and then raises KeyboardInterrupt."""
    cores = cores or len(os.sched_getaffinity(0))
    waiting, running = list(jobs), list[_Running]()
    found: dict[str, Path | BenchError] = {}
    ended = threading.Semaphore(0)
    try:
        while waiting or running:
            while waiting and len(running) < cores:
                job = waiting.pop(0)
                try:
                    running.append(_start(job, say, ended))
                except OSError as error:
                    found[job.name] = BenchError(f"{job.line[0]}: {error.strerror}")
            if not running:
                continue
            ended.acquire()
            for one in [one for one in running if not one.reader.is_alive() or one.process.poll() is not None]:
                one.process.wait()
                one.reader.join()
                running.remove(one)
                found[one.job.name] = _outcome(one)
    except BaseException:
        _end(running)
        raise
    return found


def _start(job: Job, say: Say, ended: threading.Semaphore) -> _Running:
    job.json_file.parent.mkdir(parents=True, exist_ok=True)
    process = BENCHMARK.start(job.line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.rstrip()
            if text:
                say(f"{job.name}: {text}")
                last[:] = [*last[-4:], text]
        process.stdout.close()
        ended.release()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return _Running(job, process, reader, last)


def _outcome(one: _Running) -> Path | BenchError:
    status = one.process.returncode
    if status not in one.job.accepted:
        how = f"status {status}" if status >= 0 else f"signal {-status}"
        return BenchError(f"{one.job.line[0]} failed ({how}): {'; '.join(one.last[-2:]) or 'it said nothing'}")
    return one.job.json_file


def _end(running: Sequence[_Running]) -> None:
    """Ends all jobs. After Ctrl-C at a terminal, the jobs have received SIGINT as well."""
    BENCHMARK.end(*(one.process for one in running))
