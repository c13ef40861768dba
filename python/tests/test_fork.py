# SPDX-License-Identifier: Apache-2.0
"""Sessions in forked children: by multiprocessing, and by os.fork() with a normal exit of the interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("forking.py")


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["multiprocessing", "exit", "exception"])
def test_child_is_refused_and_the_parent_goes_on(how: str) -> None:
    said = run(how)
    assert said.count("refused: this session was opened by process") == 3, said
    assert "the parent's frames: [(0, 0.0), (1, 0.0), (2, 0.0)]" in said


def test_child_opens_a_session_of_its_own() -> None:
    assert "the child's frames: [7.0]" in run("own")
