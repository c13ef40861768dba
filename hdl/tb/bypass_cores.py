# SPDX-License-Identifier: Apache-2.0
"""The cores of the bench, and the modules with tests of them."""

from __future__ import annotations

from typing import Any

from bypass_rig import Rig

CORES = {"one": {}, "four": {"queue_bits": 2, "rx_bits": 5, "tx_bits": 5}}
NAMES = {"queue_bits": "QueueBits", "rx_bits": "RxRingBits", "tx_bits": "TxRingBits", "pack_bits": "PackBits"}
MORE = ("bypass_core_times", "bypass_core_in_place", "bypass_core_refuses", "bypass_core_stops")


def rig_of(dut: Any, name: str = "one", seed: int = 1) -> Rig:
    """The core of that name."""
    return Rig(dut, name, seed=seed, **CORES[name])
