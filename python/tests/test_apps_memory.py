# SPDX-License-Identifier: Apache-2.0
"""Applications without enough memory report an error and an exit status, never an uncaught exception."""

from __future__ import annotations

import os
import resource
import subprocess

import pytest
from apps import program

LIMIT = 4 << 30


@pytest.mark.parametrize(
    "words",
    [
        "histogram --updates 1e10",
        "histogram --counters 4e9",
        "transpose --rows 4e9",
        "triangle --rows 4e9",
        "sssp --rows 4e9 --degree 1000",
        "transport --cells 100000,100000,100000",
    ],
)
def test_too_large_an_input_expect_an_error(words: str) -> None:
    app, *arguments = words.split()
    done = subprocess.run(
        [str(program(app)), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),  # whatever the machine has
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(f"{app}: rank 0: there is not enough memory"), done.stderr
    assert "terminate called" not in done.stderr


@pytest.mark.parametrize("app", ["histogram", "transpose", "triangle", "sssp", "transport"])
def test_nobody_can_be_told_why_expect_the_exit_status_all_the_same(app: str) -> None:
    """Standard error is on a full disk. The rank cannot start, because its bootstrap address is not valid."""
    with open("/dev/full", "wb") as full:
        command = [str(program(app))]
        environment = os.environ | {"WHERRY_BOOTSTRAP": "nonsense"}
        done = subprocess.run(command, stdout=full, stderr=full, timeout=300, env=environment)
    assert done.returncode == 1
