# SPDX-License-Identifier: Apache-2.0
"""Longer time limit for RTL tests: they build a simulation first, which is slow on some machines."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replaces the time limit of ordinary tests."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(3000))
