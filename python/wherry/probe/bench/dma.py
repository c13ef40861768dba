# SPDX-License-Identifier: Apache-2.0
"""The DMA engine's part of `wherry bench probe`: what dma_card_bench found in simulation (docs/dma-card.md)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wherry.bench import read_json
from wherry.errors import BenchError
from wherry.probe.bench.schema import DmaRate
from wherry.system import built

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
"""Every bar: what it must be, and its unit."""
DMA_USES = {
    "dma_h2c_4k_depth16": "dma: share of h2c_4k_depth16",
    "dma_c2h_4k_depth16": "dma: share of c2h_4k_depth16",
    "dma_h2c_512b": "dma: share of h2c_512",
    "dma_c2h_512b": "dma: share of c2h_512",
    "dma_h2c_4k_rtt2us": "dma: share of h2c_4k_rtt2us",
    "dma_c2h_4k_rtt2us": "dma: share of c2h_4k_rtt2us",
    "dma_64b_mps": "dma: millions_per_s of h2c_64",
    "dma_4k_depth1_us": "dma: latency_us of h2c_4k_depth1",
    "dma_4k_depth1_doorbell_us": "dma: latency_us of h2c_4k_depth1_doorbell",
    "dma_half_rate_bytes": "dma_card_bench, from host to card at depth 1: the size at half of the bound",
    "dma_channels_unfair": "dma: the larger unfair of h2c_4k_4channels and c2h_4k_4channels",
}
XDMA = {
    "dma_h2c_4k_depth16": "XDMA: 0.6 takes about 1 MiB",
    "dma_half_rate_bytes": "XDMA: about 500 KiB",
}
"""What the paper's engine takes, where that says something."""


def rows_of(document: Mapping[str, Any]) -> list[DmaRate]:
    """The rates. Raises BenchError: it is not what dma_card_bench writes."""
    if document.get("schema") != SCHEMA:
        raise BenchError(f"dma_card_bench wrote schema {document.get('schema')!r}; {SCHEMA} is expected")
    try:
        return [DmaRate(**row) for row in document["rates"]]
    except (KeyError, TypeError) as error:
        raise BenchError(f"dma_card_bench wrote rows that its header does not describe: {error!r}") from None


def dma_bars(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The claims."""
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


def run_dma() -> Mapping[str, Any]:
    """Runs the program. Raises NotFound when it was not built; BenchError."""
    program = built("sim/card", "dma_card_bench")
    with tempfile.TemporaryDirectory(prefix="wherry-dma-") as folder:
        file = Path(folder) / "dma.json"
        done = subprocess.run(
            [str(program), "--json", str(file)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise BenchError(f"{program} failed (exit status {done.returncode}): {done.stderr.strip()[-400:]}")
        document: Mapping[str, Any] = read_json(file)
    return document
