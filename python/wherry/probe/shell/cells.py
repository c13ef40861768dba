# SPDX-License-Identifier: Apache-2.0
"""The cells of the thesis's tables: assigns ids to shell_bench's output, and a mark to each cell.

A cell is *fitted* if a number was fitted to it, or if something was chosen after the cell was seen. Numbers were fitted
only to the cells of FITTED_SIZES (fitting.py).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, Literal

SIZES = {128: "128", 256: "256", 512: "512", 1024: "1k", 2048: "2k", 4096: "4k"}
FITTED_SIZES = (128, 2048)
"""The sizes to which parameters are fitted: the smallest, and the largest that all three cases have."""
CHOSEN = {
    "rep_t5_5_read_4k": "transactions one by one: chosen after this value was seen",
    "rep_t5_6_r_*_4k": "transactions one by one: chosen after these values were seen",
    "rep_t5_4_?_dm_hbm_*": "sim/hbm's preset was set to all sizes before; a fit to two of them gives the same numbers",
    "rep_t5_12_*": "size not stated: that of 1 KiB with the directions swapped, chosen after the values were seen",
}
"""Patterns of cells that count as fitted at every size, and the reason."""
HOW = "bench probe: thesis"
_TABLES = {1: (1, 2), 2: (3, 4), 3: (5, 6)}
"""For each case, the number of the table of latencies and of the table of sections."""


def why_fitted(identifier: str) -> str:
    """Why a cell does not count as predicted. Empty: it counts as predicted."""
    for pattern, why in CHOSEN.items():
        if fnmatch.fnmatchcase(identifier, pattern):
            return why
    size = identifier.rpartition("_")[2]
    of = next((bytes_ for bytes_, name in SIZES.items() if name == size), None)
    return f"numbers were set to {of} bytes" if of in FITTED_SIZES else ""


def mark_of(identifier: str) -> Literal["fitted", "predicted"]:
    """The mark of a cell."""
    return "fitted" if why_fitted(identifier) else "predicted"


def is_latency(identifier: str) -> bool:
    """Whether a cell is in Table 5.1, 5.3 or 5.5. The bars use these cells."""
    return identifier.startswith(("rep_t5_1_", "rep_t5_3_", "rep_t5_5_"))


def case_of(identifier: str) -> int:
    """The case of a cell, 1 to 3; 0: Table 5.12."""
    table = int(identifier.split("_")[2])
    return next((case for case, tables in _TABLES.items() if table in tables), 0)


def cells(document: Mapping[str, Any]) -> dict[str, float]:
    """The simulated nanoseconds of each cell, by the id of the published value."""
    found: dict[str, float] = {}
    for row in document["rows"]:
        found |= _row(row)
    return found | _plain(found)


def _row(row: Mapping[str, Any]) -> dict[str, float]:
    case, way, size = row["case"], row["way"], SIZES[row["bytes"]]
    latencies, sections = _TABLES[case]
    short = way if case == 1 else way[0]
    phase = {"out": "out_write", "in": "in_read"}.get(way, way)
    found = {f"rep_t5_{latencies}_{phase}_{size}": float(row["total_ns"])}
    if case != 2:  # case 2 has no descriptor
        found[f"rep_t5_{latencies}_{short}_desc_{size}"] = float(row["descriptor_ns"])
    for section in row["sections"]:
        found[f"rep_t5_{sections}_{short}_{section['name']}_{size}"] = float(section["ns"])
    return found


def _plain(found: Mapping[str, float]) -> dict[str, float]:
    """The cells of Table 5.12. The published values show that RX is 1 KiB outgoing, and TX incoming
    (spec/published/README.md)."""
    rx = found["rep_t5_2_out_qdma_1k"] + found["rep_t5_2_out_qdma_cmac_1k"], found["rep_t5_2_out_cmac_1k"]
    tx = found["rep_t5_2_in_qdma_1k"] + found["rep_t5_2_in_cmac_qdma_1k"], found["rep_t5_2_in_cmac_1k"]
    return {
        f"rep_t5_12_{side}_{part}": value
        for side, (qdma, cmac) in (("rx", rx), ("tx", tx))
        for part, value in (("qdma", qdma), ("cmac", cmac), ("total", qdma + cmac))
    }
