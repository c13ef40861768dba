# SPDX-License-Identifier: Apache-2.0
"""The programs of a checkout that route measures with. All raise NotFound."""

from __future__ import annotations

from pathlib import Path

from wherry.system import built


def application(name: str) -> Path:
    """One of the five of paper 001, table 1."""
    return built("apps", name)


def balance() -> Path:
    """Work and messages in a mixture that is asked for: what advice is calibrated with."""
    return built("bench", "route_balance")
