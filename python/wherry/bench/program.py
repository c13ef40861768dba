# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark program, and writes its results."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wherry.bench.schema import SCHEMA, read_json
from wherry.errors import BenchError
from wherry.system import ask_to_end, built, ends_with_us, replacing, spawn, this_machine, wait_for_end
from wherry.system import scratch_directory as scratch_directory
from wherry.version import VERSION


def run_program(name: str, json_file: Path, *, quick: bool, more: Sequence[str], folder: str = "bench") -> None:
    """Runs a program of a build's `folder` until it succeeds. Raises NotFound if it was not built; BenchError if it
    fails."""
    program = built(folder, name)
    json_file.parent.mkdir(parents=True, exist_ok=True)
    line = [str(program), "--json", str(json_file), *(["--quick"] if quick else []), *more]
    status = wait_for(start(line))
    if status:
        how = f"exit status {status}" if status > 0 else f"signal {-status}"
        raise BenchError(f"{program} failed ({how}); its last lines above say why")


def start(line: Sequence[str], **more: Any) -> subprocess.Popen[Any]:
    """Starts a program without input. It ends when this process ends, for any reason. `more`: arguments of
    subprocess.Popen."""
    return spawn(line, before=ends_with_us(), stdin=subprocess.DEVNULL, **more)


def wait_for(process: subprocess.Popen[Any]) -> int:
    """Waits for the program's end and returns its exit status. After Ctrl-C the program has time to end its
    children."""
    try:
        return process.wait()
    except KeyboardInterrupt:  # the terminal also sends it to the program; if not, end() ends the program
        end(process)
        raise


def end(*processes: subprocess.Popen[Any]) -> None:
    """Asks all processes to end, including stopped ones, and waits. A process that takes too long is killed."""
    for process in processes:
        ask_to_end(process)
    for process in processes:
        wait_for_end(process)


def document_of(name: str, pinning: Mapping[str, int], repetitions: int) -> dict[str, Any]:
    """The JSON document at the beginning of a run, before any measurement."""
    return {
        "schema": SCHEMA,
        "name": name,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "wherry": VERSION,
        "machine": asdict(this_machine()),
        "versions": {"python": platform.python_version()},
        "pinning": dict(pinning),
        "repetitions": repetitions,
        "bars": {},
        "results": {},
    }


def mark_part(json_file: Path, *, quick: bool, only: Sequence[str]) -> None:
    """Marks the file of a run as partial, because readers of the file do not see the command."""
    if quick or only:
        write(json_file, read_json(json_file) | {"quick": quick, "only": list(only)})


def write(json_file: Path, document: Mapping[str, Any]) -> None:
    """Writes the file atomically: an interrupted run leaves an old file unchanged."""
    json_file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(json_file) as partial:
        partial.write_text(json.dumps(document, indent=2) + "\n")
