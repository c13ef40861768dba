# SPDX-License-Identifier: Apache-2.0
"""The DMA engine's part of `wherry bench probe`: results of dma_card_bench in simulation (docs/design/dma-card.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.errors import BenchError
from wherry.probe.bench.schema import DmaRate

SCHEMA = "wherry.dma_card_bench/1"
DMA_TARGETS = {
    "dma_h2c_4k_depth16": (">= 0.98", "of the TLP bound"),
    "dma_c2h_4k_depth16": (">= 0.98", "of the TLP bound"),
    "dma_h2c_512b": (">= 0.9", "of the TLP bound"),
    "dma_c2h_512b": (">= 0.9", "of the TLP bound"),
    "dma_h2c_4k_rtt2us": (">= 0.98", "of the TLP bound"),
    "dma_c2h_4k_rtt2us": (">= 0.98", "of the TLP bound"),
    "dma_64b_mps": (">= 100", "M transfers/s"),
    "dma_4k_depth1_us": ("<= 2.9", "us"),
    "dma_4k_depth1_doorbell_us": ("<= 2", "us"),
    "dma_half_rate_bytes": ("<= 40960", "bytes"),
    "dma_channels_unfair": ("<= 0.02", "of the mean"),
}
"""Every bar: its target, and its unit."""
XDMA = {
    "dma_h2c_4k_depth16": "XDMA: 0.6 takes about 1 MiB",
    "dma_half_rate_bytes": "XDMA: about 500 KiB",
}
"""Values of the paper's DMA engine (XDMA) for bars where a comparison is useful."""


def rows_of(document: Mapping[str, Any]) -> list[DmaRate]:
    """The rows of rates. Raises BenchError if `document` is not the output of dma_card_bench."""
    if document.get("schema") != SCHEMA:
        raise BenchError(f"dma_card_bench wrote schema {document.get('schema')!r}; {SCHEMA} is expected")
    try:
        return [DmaRate(**row) for row in document["rates"]]
    except (KeyError, TypeError) as error:
        raise BenchError(f"dma_card_bench wrote rows that its header does not describe: {error!r}") from None


def dma_bars(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The bars of the DMA engine."""
    found = {}
    for name, (target, unit) in DMA_TARGETS.items():
        if name not in document["bars"]:
            continue
        value = float(document["bars"][name]["value"])
        comparison, limit = target.split()
        met = value >= float(limit) if comparison == ">=" else value <= float(limit)
        found[name] = {"value": value, "min": value, "max": value, "target": target, "pass": met, "unit": unit,
                       "published": XDMA.get(name)}  # fmt: skip
    return found
