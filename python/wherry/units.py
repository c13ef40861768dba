# SPDX-License-Identifier: Apache-2.0
"""Formats figures with units, in the same way for every table and plot."""

from __future__ import annotations

import math


def size_text(size: float) -> str:
    """Formats a size that is a setting, without rounding: 4096 as "4 KiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def bytes_text(number: float) -> str:
    """Formats a measured amount, rounded: 1600 as "1.6 KiB"."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Formats a count: "1 frame", "12,000 frames". `plural`: the plural of the noun, if it is not the noun with an
    s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def number_text(value: float) -> str:
    """Formats a figure of any size: 10485 as "10,485", 0.123456 as "0.123". It keeps at least three digits, and does
    not round digits before the decimal point."""
    if not math.isfinite(value):
        return f"{value:g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 999.5 else f"{value:.3g}"


def time_text(seconds: float) -> str:
    """Formats a measured time: 0.0000123 as "12.3 us"."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{number_text(seconds / factor)} {unit}"
    return f"{number_text(seconds / 1e-9)} ns" if seconds else "0 s"


def span_text(seconds: float) -> str:
    """Formats a running time in its two largest units: "3 days 4 h", "12 min 5 s", "7 s"."""
    whole = max(0, int(seconds))
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{counted(days, 'day')} {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
