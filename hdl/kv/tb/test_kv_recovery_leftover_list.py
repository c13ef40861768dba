# SPDX-License-Identifier: Apache-2.0
"""Tests kv_recovery_leftover_list with random searches and changes, against a Python list."""

from __future__ import annotations

from random import Random
from typing import Any

import cocotb
from bench import Bench
from flat import Scope, wrapper
from simulate import KV_PACKAGES, simulate

SIZES = {"one": 1, "four": 4, "ten": 10}
NEXT, FREE, AT, SHOW = range(4)
BUNDLES = {
    "ask_i": ("list_ask_t", {f"{name}_i": name for name in ("find", "what", "from", "again", "keep", "drop")}),
    "answer_o": (
        "list_answer_t",
        {f"{name}_o": name for name in ("busy", "found", "at", "valid", "newer", "equal", "same")} | {"cell_o": "what"},
    ),
}
Cell = tuple[int, int, int, int, int]  # bucket, way, version, lane, request


def pack(cell: Cell) -> int:
    bucket, way, version, lane, request = cell
    return bucket << 79 | way << 77 | version << 45 | lane << 32 | request


def head(cell: Cell) -> int:
    """Returns the header of a frame about a cell."""
    _, way, version, lane, request = cell
    return (way << 6) << 160 | lane << 128 | request << 96 | version << 64


def newer(a: int, b: int) -> bool:
    """Compares serial numbers. 0 is older than all others."""
    return a != 0 and (b == 0 or 0 < (a - b) % 2**32 < 2**31)


def some(draw: Random) -> Cell:
    near = [0, 1, 2**31, 2**32 - 1]
    return (draw.randrange(6), draw.randrange(2), draw.choice(near), draw.randrange(2), draw.choice(near))


def fits(entry: Cell | None, what: int, came: Cell) -> bool:
    """Returns whether the search must find this entry."""
    if what == SHOW or (what == FREE and entry is None):
        return True
    return entry is not None and (what == NEXT or (what == AT and entry[:2] == came[:2]))


@cocotb.test()
async def against_a_list(dut: Any) -> None:
    for name, bits in SIZES.items():
        bench = Bench(dut, bits)
        draw = bench.random
        scope = Scope(getattr(dut, name))
        pins = {
            pin: bench.pin(scope, pin)
            for pin in (
                "clear_i", "find_i", "what_i", "from_i", "again_i", "bucket_i", "busy_o", "found_o", "at_o", "valid_o",
                "cell_o", "keep_i", "drop_i", "cell_i", "head_i", "newer_o", "equal_o", "same_o", "count_o",
            )
        }  # fmt: skip
        for pin in ("clear_i", "find_i", "keep_i", "drop_i"):
            pins[pin].set(0)
        await bench.reset()
        room = 2**bits
        held: list[Cell | None] = []  # None: emptied

        last = -1
        looked = set()
        for _ in range(1500):
            what = draw.choice([NEXT, FREE, FREE, AT, AT, SHOW])
            # Continues after the last found entry, or begins anywhere.
            again = last >= 0 and draw.random() < 0.4
            start = last + 1 if again else draw.randrange(min(len(held) + 2, room + 1))
            if what == FREE and not again:
                start = draw.randrange(min(len(held) + 1, room))
            came = some(draw)

            wanted = next((i for i in range(start, len(held)) if fits(held[i], what, came)), None)
            ended = wanted is None
            if ended and what == FREE and len(held) < room:
                wanted = len(held)
            pins["bucket_i"].set(came[0])
            pins["head_i"].set(head(came))
            pins["find_i"].set(1)
            pins["what_i"].set(what)
            pins["again_i"].set(again)
            pins["from_i"].set(draw.randrange(room) if again else start)
            await bench.cycle()
            for pin in ("find_i", "keep_i", "drop_i"):
                pins[pin].set(0)
            cycles = 1
            await bench.cycle()
            while pins["busy_o"].get():
                cycles += 1
                await bench.cycle()
            read = (len(held) if ended else wanted or 0) - start + 1
            assert cycles == 1 + max(read, 1), (cycles, read)
            assert pins["found_o"].get() == (wanted is not None), (what, start, wanted)
            assert pins["count_o"].get() == sum(entry is not None for entry in held)
            last = -1 if ended else wanted if wanted is not None else -1
            looked.add((what, wanted is not None))
            if wanted is None:
                continue
            assert pins["at_o"].get() == wanted
            await bench.cycle(draw.choice([1, 1, 3]))  # the result stays
            entry = held[wanted] if wanted < len(held) else None
            if entry is not None:
                assert pins["valid_o"].get() == 1
                assert pins["cell_o"].get() == pack(entry)
                assert pins["newer_o"].get() == newer(came[2], entry[2])
                assert pins["equal_o"].get() == (came[2] == entry[2])
                assert pins["same_o"].get() == (came[3:] == entry[3:])
            elif wanted < len(held):
                assert pins["valid_o"].get() == 0
            # The entry is changed at once, or with the next search.
            if what == FREE and draw.random() < 0.9:
                kept = some(draw)
                pins["keep_i"].set(1)
                pins["cell_i"].set(pack(kept))
                held[wanted:] = [kept, *held[wanted + 1 :]]
            elif entry is not None and draw.random() < 0.35:
                pins["drop_i"].set(1)
                held[wanted] = None
            if draw.random() < 0.5:
                await bench.cycle()
                for pin in ("keep_i", "drop_i"):
                    pins[pin].set(0)
            if draw.random() < 0.004:
                for pin in ("keep_i", "drop_i"):
                    pins[pin].set(0)
                if draw.random() < 0.5:
                    pins["clear_i"].set(1)
                    await bench.cycle()
                    pins["clear_i"].set(0)
                else:
                    await bench.reset()
                held, last = [], -1
        assert len(looked) == 7 + (bits < 10), looked  # only the small one ever fills up


def test_kv_recovery_leftover_list() -> None:
    text = "".join(
        wrapper(f"of_{name}", "kv_recovery_leftover_list", BUNDLES, parameters=f".Bits({bits})")
        for name, bits in SIZES.items()
    )
    cells = "".join(f"  of_{name} {name} (.clk_i, .rst_i);\n" for name in SIZES)
    text += f"module top (input wire clk_i, input wire rst_i);\n{cells}endmodule\n"
    simulate(__file__, text=text, sources=KV_PACKAGES)
