# SPDX-License-Identifier: Apache-2.0
"""Tests kv_recovery_fetch with lost, late and repeated answers: it asks for every item, and accepts each once."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from flat import Scope, config, wrapper
from simulate import KV_PACKAGES, simulate

SIZES = {"few": 3, "many": 12}
LANE_RECORD, ENTRY = 22, 27
OK, BAD_LANE, BUSY, NOT_SERVING = 0, 6, 10, 12
PINS = (
    "count_write_i", "lanes_write_i", "data_i", "from_i", "count_o", "lanes_o", "bucket_mask_i", "here_i",
    "serving_others_i", "tick_i", "restart_i", "clear_i", "ask_valid_o", "ask_lanes_o", "ask_again_o",
    "ask_request_o", "ask_way_o", "ask_lane_o", "ask_node_o", "taken_i", "own_i", "answer_i", "bucket_o", "head_i",
    "mine_o", "came_i",
)  # fmt: skip
BUNDLES = {
    "order_i": (
        "fetch_order_t",
        {"count_write_i": "count_write", "lanes_write_i": "lanes_write", "data_i": "data", "from_i": "from"},
    ),
    "left_o": ("fetch_left_t", {"count_o": "count", "lanes_o": "lanes"}),
    "epoch_i": (
        "epoch_t",
        {"bucket_mask_i": "bucket_mask", "here_i": "here", "serving_others_i": "serving_others"},
    ),
    "step_i": ("fetch_step_t", {"taken_i": "taken", "own_i": "own", "came_i": "came"}),
    "question_o": (
        "question_t",
        {f"ask_{name}_o": name for name in ("valid", "lanes", "again", "request", "way", "lane", "node")},
    ),
}


class Fetcher:
    """An instance, with the blocks that ask and answer for it."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope: Any = Scope(getattr(bench.dut, name))
        self.bench, self.bits = bench, SIZES[name]
        self.pins = {pin: bench.pin(scope, pin) for pin in PINS}
        for pin in ("count_write_i", "lanes_write_i", "tick_i", "restart_i", "clear_i", "taken_i", "own_i", "came_i"):
            self.pins[pin].set(0)
        self.pins["answer_i"].set(0)
        self.bucket_bits = 9
        self.pins["bucket_mask_i"].set((2**22 - 1) & ~(2**self.bucket_bits - 1))
        self.pins["here_i"].set(1)
        self.serving = {1, 4, 6}
        self.pins["serving_others_i"].set(sum(1 << node for node in self.serving))

    def get(self, pin: str) -> int:
        return self.pins[pin].get()

    async def pulse(self, pin: str, **values: int) -> None:
        for other, value in values.items():
            self.pins[other].set(value)
        self.pins[pin].set(1)
        await self.bench.cycle()
        self.pins[pin].set(0)

    async def asked(self, *, own: bool = False) -> tuple[Any, int, bool] | None:
        """Returns its next question, the number, and whether it is marked as a repetition. None: no question for some
        time."""
        for _ in range(80):
            await self.bench.cycle()
            if self.get("ask_valid_o"):
                break
        else:
            return None
        await self.bench.cycle(self.bench.random.choice([1, 1, 4]))
        if self.get("ask_lanes_o"):
            what: Any = ("lane", self.get("ask_lane_o"), self.get("ask_node_o"))
        else:
            assert self.get("ask_lane_o") == 0
            what = ("way", self.get("bucket_o"), self.get("ask_way_o"))
        found = what, self.get("ask_request_o"), bool(self.get("ask_again_o"))
        await self.pulse("own_i" if own and what[0] == "way" else "taken_i")  # only other nodes are asked for a lane
        return found

    async def answer(self, what: Any, request: int, status: int = OK, **wrong: int) -> bool:
        """Sends a frame that answers, or nearly does. Returns whether it was accepted as an answer."""
        kind, a, b = what
        node = wrong.get("node", b if kind == "lane" else 1)
        detail = status if kind == "lane" else wrong.get("way", b) << 6 | status
        tells = wrong.get("kind", LANE_RECORD if kind == "lane" else ENTRY)
        self.pins["head_i"].set((tells << 3 | node) << 168 | detail << 160 | request << 96)
        self.pins["answer_i"].set(1)
        await self.bench.cycle(2)
        mine = bool(self.get("mine_o"))
        if mine and kind == "way":
            assert self.get("bucket_o") == a
        if not mine or "look" not in wrong:
            await self.pulse("came_i")
        self.pins["answer_i"].set(0)
        await self.bench.cycle()
        return mine


async def all_of(fetcher: Fetcher, wanted: set[Any], *, lost: float) -> None:
    """Answers questions until no item is missing."""
    draw = fetcher.bench.random
    done: set[Any] = set()
    before: list[tuple[Any, int]] = []
    seen: set[int] = set()
    ticks = 0
    while done != wanted:
        own = draw.random() < 0.05
        asked = await fetcher.asked(own=own)
        if asked is None:
            assert lost > 0, wanted - done
            await fetcher.pulse("tick_i")
            ticks += 1
            assert ticks < 300, wanted - done
            continue
        what, request, again = asked
        assert what in wanted - done, what
        assert again == ((what, request) in before), what
        if what[0] == "way":
            assert request & 3 == what[2]
        seen.add(request >> 5)
        before.append((what, request))
        if own and what[0] == "way":
            done.add(what)
            continue
        if draw.random() < lost:
            continue
        # Sends a frame that is not the answer.
        wrong = draw.choice(
            [{"status": BUSY if what[0] == "way" else NOT_SERVING}, {"kind": 24}, {"way": what[2] ^ 1}, {"node": 0}]
        )
        if (what[0] == "lane" and "way" in wrong) or (what[0] == "way" and "node" in wrong):
            wrong = {"kind": ENTRY if what[0] == "lane" else LANE_RECORD}
        assert not await fetcher.answer(what, request, **wrong)
        assert not await fetcher.answer(what, request ^ 1 << draw.randrange(5, 32))
        # Sends the answer now or later, and twice.
        late = draw.choice([b for b in before[-6:] if b[0] not in done and b[1] >> 5 == request >> 5])
        assert await fetcher.answer(*late, status=OK)
        done.add(late[0])
        assert not await fetcher.answer(*late)
    await fetcher.bench.cycle(40)
    assert 2 * len(seen) <= len(wanted) + 2


@cocotb.test()
async def buckets_and_lanes(dut: Any) -> None:
    for name in SIZES:
        fetcher = Fetcher(Bench(dut, 7), name)
        await fetcher.bench.reset()
        cases = [(0, 19), (37, 8), (500, 1000), (511, 1), (510, 2**32 - 1), (512, 5), (2**22 + 1, 5), (5, 1), (3, 0)]
        for start, count in cases:
            fetcher.pins["from_i"].set(start)
            await fetcher.bench.cycle()
            await fetcher.pulse("count_write_i", data_i=count)
            await fetcher.bench.cycle()
            buckets = range(start, min(start + count, 512))
            assert fetcher.get("count_o") == len(buckets)
            lost = fetcher.bench.random.choice([0.0, 0.2])
            await all_of(fetcher, {("way", bucket, way) for bucket in buckets for way in range(4)}, lost=lost)
            assert fetcher.get("count_o") == 0
            assert await fetcher.asked() is None
        for count in (1, 6, 8, 2**32 - 1 if name == "few" else 18):
            await fetcher.pulse("lanes_write_i", data_i=count)
            await fetcher.bench.cycle()
            lanes = min(count, 2**fetcher.bits)
            assert fetcher.get("lanes_o") == lanes
            await all_of(fetcher, {("lane", i, node) for i in range(lanes) for node in fetcher.serving}, lost=0.1)
            assert fetcher.get("lanes_o") == 0


@cocotb.test()
async def after_a_reset_everything_is_as_after_the_first(dut: Any) -> None:
    fetcher = Fetcher(Bench(dut, 5), "many")
    first: list[tuple[Any, int, bool]] = []
    for _ in range(3):
        await fetcher.bench.reset()
        fetcher.pins["from_i"].set(0)
        await fetcher.bench.cycle()
        await fetcher.pulse("count_write_i", data_i=9)
        asked = [question for question in [await fetcher.asked() for _ in range(3)] if question]
        assert len(asked) == 3
        first = first or asked
        assert asked == first


@cocotb.test()
async def what_interrupts(dut: Any) -> None:
    """Covers a new epoch, a new count, a cleared table, and a node in no epoch."""
    fetcher = Fetcher(Bench(dut, 3), "many")
    bench = fetcher.bench
    await bench.reset()
    fetcher.pins["from_i"].set(0)
    await bench.cycle()
    fetcher.pins["here_i"].set(0)
    await fetcher.pulse("count_write_i", data_i=12)
    assert await fetcher.asked() is None
    fetcher.pins["here_i"].set(1)
    before = [await fetcher.asked() for _ in range(5)]
    assert await fetcher.answer(*before[0][:2])
    fetcher.pins["here_i"].set(0)
    await bench.cycle(2)
    assert await fetcher.asked() is None
    fetcher.pins["here_i"].set(1)
    await fetcher.pulse("restart_i")
    again = [await fetcher.asked() for _ in range(5)]
    assert [a[0] for a in again] == [b[0] for b in before]
    assert not [1 for a in again if a[2]]
    assert not await fetcher.answer(*before[1][:2])  # of the previous epoch
    assert await fetcher.answer(*again[1][:2])
    # Lanes are fetched after the buckets, and only from serving nodes.
    await fetcher.pulse("lanes_write_i", data_i=3)
    fetcher.pins["serving_others_i"].set(0)
    await fetcher.pulse("count_write_i", data_i=1)
    assert not await fetcher.answer(*again[2][:2])
    await all_of(fetcher, {("way", 0, way) for way in range(4)}, lost=0.0)
    assert await fetcher.asked() is None
    assert fetcher.get("lanes_o") == 3
    fetcher.pins["serving_others_i"].set(1 << 5)
    await all_of(fetcher, {("lane", lane, 5) for lane in range(3)}, lost=0.0)
    for pin in ("clear_i", "rst"):
        await fetcher.pulse("count_write_i", data_i=9)
        await fetcher.pulse("lanes_write_i", data_i=9)
        assert await fetcher.asked() is not None
        if pin == "rst":
            await bench.reset()
        else:
            await fetcher.pulse(pin)
        await bench.cycle()
        assert (fetcher.get("count_o"), fetcher.get("lanes_o")) == (0, 0)
        assert await fetcher.asked() is None


def test_kv_recovery_fetch() -> None:
    text = "".join(
        wrapper(f"of_{name}", "kv_recovery_fetch", BUNDLES, parameters=f".Config({config(lane_bits=bits)})")
        for name, bits in SIZES.items()
    )
    cells = "".join(f"  of_{name} {name} (.clk_i, .rst_i);\n" for name in SIZES)
    text += f"module top (input wire clk_i, input wire rst_i);\n{cells}endmodule\n"
    simulate(__file__, text=text, sources=KV_PACKAGES)
