# SPDX-License-Identifier: Apache-2.0
"""Describes figures of a benchmark in words."""

from __future__ import annotations

from wherry.bench.schema import Run


def met_of(bench: Run) -> str:
    """How many of the bars with a target are met: "3 of 4"."""
    demanding = [bar.passed for bar in bench.bars.values() if bar.passed is not None]
    return f"{sum(demanding)} of {len(demanding)}"
