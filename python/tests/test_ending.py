# SPDX-License-Identifier: Apache-2.0
"""A thread of a failed test does not keep the run from ending."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_a_thread_that_goes_on_is_named_and_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from ending import pytest_sessionfinish\n")
    (tmp_path / "test_it.py").write_text(
        "import threading, time\n"
        "def test_it():\n"
        "    threading.Thread(target=time.sleep, args=(3600,), name='the recorder').start()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(HERE), "TESTS_END_WITHIN_S": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "1 passed" in ran.stdout
    assert "threads go on: the recorder" in ran.stderr
