# SPDX-License-Identifier: Apache-2.0
"""A hostile NIC, and the rules that the core's counters obey in spite of it."""

from __future__ import annotations

from bypass_nic import HEADS, QUEUE, TX_RING
from bypass_rig import Rig

PACK, SLOTS = 0x280000, 0x400000
IN = ("rx_frames", "rx_error", "rx_size", "rx_stopped")
OUT = ("tx_posted", "tx_refused", "tx_size", "tx_late")


def balance(found: dict[str, int]) -> None:
    """Checks that every incoming frame went out, or was counted once."""
    assert found.get("rx_in", 0) == sum(found.get(name, 0) for name in IN), found
    assert found.get("tx_in", 0) == sum(found.get(name, 0) for name in OUT), found
    assert found.get("tx_posted", 0) == found.get("tx_done", 0) + found.get("tx_stopped", 0), found


def attack(rig: Rig) -> None:
    """Makes a write or a read that a correct NIC would never make."""
    draw, nic = rig.bench.random, rig.nic
    queue = draw.randrange(rig.queues)
    index = draw.randrange(rig.rx_ring)
    kind = draw.randrange(7)
    if kind == 0:  # a write-back out of turn, or in turn with an impossible length
        raw = nic.format.rx_done(
            draw.choice([0, 1, 64, 2049, 16383]), eop=draw.random() < 0.5, error=False, noise=draw.getrandbits(128)
        )
        nic.write_window(QUEUE * queue + nic.format.rx_bytes * index, raw)
    elif kind == 1:  # a line of garbage
        nic.write_window(QUEUE * queue + draw.randrange(rig.rx_ring // 4) * 64, draw.randbytes(64))
    elif kind == 2:
        nic.write_window(HEADS + 64 * queue, draw.randbytes(4))
    elif kind == 3:
        nic.write_window(QUEUE * queue + TX_RING + 16 * draw.randrange(rig.tx_ring), draw.randbytes(16))
    elif kind == 4:  # into a slot that the NIC does not own
        nic.write_window(SLOTS + draw.randrange(4 * 64) * 2048 + draw.randrange(1984), draw.randbytes(64))
    elif kind == 5:
        nic.read(SLOTS + draw.randrange(4 * 64) * 2048, 64, lambda data: None)
    else:
        nic.read(PACK + 64 * draw.randrange(1024), draw.randint(1, 64), lambda data: None)
