# SPDX-License-Identifier: Apache-2.0
"""What the simulated designs say of the 13 bandwidths of paper 000, beside the model's figures (docs/designs.md).

design_figures.json holds those of one run of the experiment `designs` of `wherry bench probe`, which tools/fidelity.py
--record writes; the simulation is deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wherry.probe.model.published import Figure, Mark

RECORDED = Path(__file__).with_name("design_figures.json")
HOW = "bench probe: designs"

FITTED = {
    "ma_bram_h2c_1ch": "the call was set to this and the other direction",
    "ma_bram_c2h_1ch": "the call was set to this and the other direction",
    "ma_ddr_h2c_1ch": "the link's round trip was set to it",
    "ma_mb_h2c_1ch": "the way to the memory was set to both directions",
    "ma_mb_c2h_1ch": "the way and the engine's cycles were set to it",
}
"""Values that a number of the simulation was set to."""

CHANNELS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "ma_bram_h2c_1ch": ("bram", "h2c", (1,)),
    "ma_bram_c2h_1ch": ("bram", "c2h", (1,)),
    "ma_ddr_h2c_1ch": ("ddr4", "h2c", (1,)),
    "ma_ddr_c2h_1ch": ("ddr4", "c2h", (1,)),
    "ma_ddr_h2c_multi": ("ddr4", "h2c", (2, 3, 4)),
    "ma_ddr_c2h_multi": ("ddr4", "c2h", (2, 3, 4)),
    "ma_mb_h2c_1ch": ("softcore", "h2c", (1,)),
    "ma_mb_c2h_1ch": ("softcore", "c2h", (1,)),
    "ma_mb_c2h_multi": ("softcore", "c2h", (2, 3, 4)),
    "ma_pl_h2c_1ch": ("linux", "h2c", (1,)),
    "ma_pl_h2c_multi": ("linux", "h2c", (2, 3, 4)),
    "ma_pl_c2h_3_4ch": ("linux", "c2h", (3, 4)),
    "ma_pl_c2h_2ch": ("linux", "c2h", (2,)),
}
"""By published value: design, direction, channels."""
_BRAM_BYTES, _RUN_BYTES = 1 << 20, 8 << 20


def recorded() -> dict[str, Figure]:
    """By the id of the published value."""
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {identifier: Figure(**figure) for identifier, figure in document["figures"].items()}


def from_probe(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Of the `results` of a probe document with the experiment `designs`; nothing of one without."""
    if not results.get("designs"):
        return {}
    rates = {
        (row["design"], row["flow"], row["channels"], row["size"]): float(row["gbytes_per_s"])
        for row in results["designs"]
        if (row["notice"], row["preset"]) == ("interrupt", "xdma")
    }
    found = {}
    for identifier, (design, flow, channels) in CHANNELS.items():
        size = _BRAM_BYTES if design == "bram" else _RUN_BYTES
        values = [rates[design, flow, count, size] for count in channels]
        mark: Mark = "fitted" if identifier in FITTED else "predicted"
        found[identifier] = Figure(min(values), max(values), mark, HOW, FITTED.get(identifier, ""))
    return found


def document_of(figures: Mapping[str, Figure]) -> str:
    """The text of design_figures.json."""
    rounded = {
        name: asdict(figure) | {"low": float(f"{figure.low:.4g}"), "high": float(f"{figure.high:.4g}")}
        for name, figure in figures.items()
    }
    note = "written by tools/fidelity.py --record, from `wherry bench probe --only designs`"
    return json.dumps({"note": note, "figures": rounded}, indent=1) + "\n"
