# SPDX-License-Identifier: Apache-2.0
"""Figures of a benchmark in words."""

from __future__ import annotations

from wherry.bench.schema import Run


def size_text(size: float) -> str:
    """4096 as "4 KiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def met_of(bench: Run) -> str:
    """How many of the bars that demand something are met: "3 of 4"."""
    demanding = [bar.passed for bar in bench.bars.values() if bar.passed is not None]
    return f"{sum(demanding)} of {len(demanding)}"
