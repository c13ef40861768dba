# SPDX-License-Identifier: Apache-2.0
"""Ends a run of tests even if a thread of a failed test goes on for ever: Python waits for such threads at its exit."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

PATIENCE_S = float(os.environ.get("TESTS_END_WITHIN_S", "120"))
"""Time for the process to end by itself."""


def pytest_sessionfinish(exitstatus: int | pytest.ExitCode) -> None:
    """Starts a thread that ends the process if it does not end by itself. It then has status 1 at least, and standard
    error names the threads that held it up."""

    def end() -> None:
        time.sleep(PATIENCE_S)
        left = [one.name for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
        sys.stderr.write(f"tests: the process does not end, because threads go on: {', '.join(left)}\n")
        sys.stderr.flush()
        os._exit(int(exitstatus) or 1)

    threading.Thread(target=end, name="ends the tests", daemon=True).start()
