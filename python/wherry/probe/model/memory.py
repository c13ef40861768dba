# SPDX-License-Identifier: Apache-2.0
"""Computes the memory sections of paper 003 (Tables 5.4, 5.7 and 5.8) from the two numbers of each preset of
sim/hbm.hpp.

A cycle is 4 ns and transfers one beat of 32 bytes (docs/design/kv-hbm.md). The simulation of the thesis's shell
(docs/design/shell-model.md) has its own figures of Table 5.4, which take priority.
"""

from __future__ import annotations

from wherry.probe.model.published import Figure, one

CYCLE_NS, BEAT_BYTES = 4, 32
READ_SIMULATED, WRITE_SIMULATED = 128, 39
"""The preset kHbmSimulated of sim/hbm.hpp: cycles until a read's first beat, and from a write's last beat to its
answer."""
READ_HARDWARE, WRITE_HARDWARE = 52, 60
"""The same for the preset kHbmHardware."""
DATA_MOVER_READ_NS, DATA_MOVER_WRITE_NS = 44, 20
"""The DataMover's part of the time of a read and of a write (Table 5.4)."""
CARD_BYTES = 1024
"""The most likely packet size of Tables 5.7 and 5.8. The paper does not state it, but the CMAC times equal those of 1
KB in Table 5.4."""
SIZES = {"128": 128, "256": 256, "512": 512, "1k": 1024, "2k": 2048, "4k": 4096}


def read_ns(size: int, first_beat: int) -> float:
    """The time of a read, from the posted request to the last beat."""
    return (first_beat + size / BEAT_BYTES - 1) * CYCLE_NS


def write_ns(size: int, answer: int) -> float:
    """The time of a write, from the first beat to the answer."""
    return (size / BEAT_BYTES - 1 + answer) * CYCLE_NS


def figures() -> dict[str, Figure]:
    """The model's figures, by the id of the published value."""
    how = "sim/hbm, preset simulated: one number for six sizes"
    found = {}
    for name, size in SIZES.items():
        found[f"rep_t5_4_r_dm_hbm_{name}"] = one(read_ns(size, READ_SIMULATED), "fitted", how)
        found[f"rep_t5_4_w_dm_hbm_{name}"] = one(write_ns(size, WRITE_SIMULATED), "fitted", how)
    how = "sim/hbm, preset hardware, and the DataMover of Table 5.4"
    reads = one(read_ns(CARD_BYTES, READ_HARDWARE) + DATA_MOVER_READ_NS, "fitted", how)
    writes = one(write_ns(CARD_BYTES, WRITE_HARDWARE) + DATA_MOVER_WRITE_NS, "fitted", how)
    for table in ("7", "8"):
        found[f"rep_t5_{table}_read_memory"] = reads
        found[f"rep_t5_{table}_write_memory"] = writes
    return found
