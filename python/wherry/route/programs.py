# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the programs of route's benchmarks and demonstration. All functions raise NotFound."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wherry.errors import Error
from wherry.system import application as installed_application
from wherry.system import built, run_to_end
from wherry.system import scratch_directory as scratch_directory


def application(name: str) -> Path:
    """One of the five applications of paper 001, table 1."""
    return installed_application(name)


def run_job(options: list[str], program: list[str]) -> None:
    """Runs `wherry run` in a separate process. Raises Error with the job's output if it fails."""
    done = run_to_end(
        [sys.executable, "-m", "wherry", "run", *options, "--", *program],
        environment=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if done.returncode != 0:
        raise Error(f"route: the job ended with status {done.returncode}: {done.stderr.strip()}")


def balance() -> Path:
    """The kernel that calibrates the advice, with an adjustable mixture of work and messages."""
    return built("bench", "route_balance")
