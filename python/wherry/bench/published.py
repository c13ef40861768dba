# SPDX-License-Identifier: Apache-2.0
"""The published values that benchmarks and reports compare with ours: wherry/<service>/bench/published.json."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wherry.units import size_text

_PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def published_values(of: str) -> dict[str, dict[str, Any]]:
    """The published values of a service by id: "move" (paper 004), "route" (paper 001) or "kv" (paper 003). An entry
    has quantity, value (or low and high), unit, conditions, source and kind. The caller must not change them."""
    text = (_PACKAGE / of / "bench" / "published.json").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in json.loads(text)["values"]}


def published_text(entry: Mapping[str, Any]) -> str:
    """A published value in words: "at least 87 %", "250 to 350 us"."""
    unit = {"percent": " %", "bytes": "", "ratio": "", "orders_of_magnitude": " orders of magnitude"}.get(
        entry["unit"], f" {entry['unit']}"
    )
    show = size_text if entry["unit"] == "bytes" else lambda value: f"{value:g}"
    conditions = entry.get("conditions", "")
    prefix = "about " if "approx=yes" in conditions else ""
    if "value" not in entry:
        return f"{prefix}{show(entry['low'])} to {show(entry['high'])}{unit}"
    if "bound=lower" in conditions:
        prefix = "at least "
    elif "bound=upper" in conditions:
        prefix = "at most "
    return f"{prefix}{show(entry['value'])}{unit}"
