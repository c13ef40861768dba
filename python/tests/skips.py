# SPDX-License-Identifier: Apache-2.0
"""With NO_SKIPS=1 in the environment, as in CI, a skipped test fails, because every test must run there."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skip into a failure, except for tests that are marked `may_lack`."""
    report = yield
    if report.skipped and os.environ.get("NO_SKIPS") == "1" and not item.get_closest_marker("may_lack"):
        report.outcome, report.longrepr = "failed", f"{report.nodeid} was skipped, and must not be: {report.longrepr}"
    return report
