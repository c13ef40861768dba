# SPDX-License-Identifier: Apache-2.0
"""The output of `wherry probe model --json FILE`: the model's rows and bars, for programs and for the report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wherry.probe.model.heldout import HeldOut
from wherry.probe.model.parameters import Parameters, constants
from wherry.probe.model.rows import Row, bandwidths, bars, beside
from wherry.version import VERSION

NAME = "probe_model"


def row_record(row: Row) -> dict[str, Any]:
    """The record of a row of the tables. Errors are in per cent."""
    figure = row.figure
    return {
        "ids": list(row.ids),
        "paper": row.paper,
        "quantity": row.quantity,
        "unit": row.unit,
        "published_low": row.published.low,
        "published_high": row.published.high,
        "model_low": figure.low if figure else None,
        "model_high": figure.high if figure else None,
        "error_percent": percent(row.off_middle),
        "outside_percent": percent(row.outside),
        "mark": figure.mark if figure else row.verdict,
        "provenance": figure.provenance if figure else None,
        "how": figure.how if figure else row.why,
        "note": figure.note if figure else "",
        "source": row.source,
    }


def percent(share: float | None) -> float | None:
    """A share in per cent, without a minus sign before zero."""
    return None if share is None else round(100 * share, 6) + 0.0


def held_out_record(row: HeldOut) -> dict[str, Any]:
    """The record of a value of another source."""
    return {
        "name": row.name,
        "measured": row.measured,
        "model": row.model,
        "unit": row.unit,
        "error_percent": percent(row.error),
        "mark": "bound" if row.bound else "missed" if row.miss else "predicted",
        "why": row.miss,
        "what": row.what,
        "address": row.address,
        "date": row.date,
    }


def document(parameters: Parameters, found: Sequence[Row], others: Sequence[HeldOut]) -> dict[str, Any]:
    """The whole document."""
    thirteen = bandwidths(found)
    return {
        "schema": 1,
        "name": NAME,
        "wherry": VERSION,
        "parameters": asdict(parameters),
        "constants": [asdict(one) for one in constants(parameters)],
        "bars": bars(found, others),
        "beside": {bar: beside(bar, found, others) for bar in bars(found, others)},
        "bandwidths": [row_record(row) for row in thirteen],
        "rows": [row_record(row) for row in found if row not in thirteen],
        "heldout": [held_out_record(row) for row in others],
    }


def write(path: Path, made: Mapping[str, Any]) -> None:
    """Writes the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
