# SPDX-License-Identifier: Apache-2.0
"""Figures with units in words, the same in every table and plot."""

from __future__ import annotations


def size_text(size: float) -> str:
    """A size that is a setting: 4096 as "4 KiB", exact."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def bytes_text(number: int) -> str:
    """An amount that was counted: 1600 as "1.6 KiB", rounded."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")
