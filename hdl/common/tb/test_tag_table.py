# SPDX-License-Identifier: Apache-2.0
"""Tests tag_table against a model of its transactions, including completions of tags that are not in flight."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from bench import Bench
from simulate import Instances, elaborate, simulate

INSTANCES: Instances = {
    f"table_{tags}_{order}": (
        "tag_table",
        {"Tags": tags, "Width": width, "ResultWidth": result, "InOrder": order, "Lookup": lookup},
    )
    for order in (0, 1)
    for tags, width, result, lookup in [(2, 1, 1, 1), (8, 12, 3, 1), (64, 80, 2, 0), (128, 8, 1, 1)]
}


class Lane:
    """An instance and its model: the allocations in order, and the result of each."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name, self.parameters = bench, name, INSTANCES[name][1]
        scope: Any = getattr(bench.dut, name)
        self.source, self.sink = bench.source(scope), bench.sink(scope, fields=("tag", "payload", "result"))
        self.tag = bench.pin(scope, "s_tag")
        self.complete, self.result = bench.pin(scope, "complete_i"), bench.pin(scope, "complete_result_i")
        self.complete_tag, self.unexpected = bench.pin(scope, "complete_tag_i"), bench.pin(scope, "unexpected_o")
        self.lookup, self.found = bench.pin(scope, "lookup_tag_i"), bench.pin(scope, "lookup_found_o")
        self.looked, self.count = bench.pin(scope, "lookup_payload_o"), bench.pin(scope, "count_o")
        self.eager, self.wrong = 0.3, 0.1
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        self.payload: dict[int, int] = {}  # payloads of the tags in flight
        self.order: list[int] = []  # tags that are not retired, in the expected order
        self.ended: dict[int, int] = {}  # result of each completed tag
        self.queue: deque[int] = deque()  # tags in the order of their completions
        self.taken, self.told, self.peak = 0, 0, 0
        self.ending: tuple[int, int] | None = None

    def drive(self) -> None:
        draw, tags = self.bench.random, self.parameters["Tags"]
        self.ending = None
        flying = list(self.payload)
        if flying and draw.random() < self.eager:
            self.ending = draw.choice(flying), draw.getrandbits(self.parameters["ResultWidth"])
        elif draw.random() < self.wrong:
            tag = draw.randrange(tags)
            self.ending = (tag, 0)
        self.complete.set(self.ending is not None)
        self.complete_tag.set(self.ending[0] if self.ending else draw.randrange(tags))
        self.result.set(self.ending[1] if self.ending else 0)
        self.lookup.set(draw.randrange(tags))

    def sample(self) -> None:
        held = len(self.payload) + len(self.ended)
        self.peak = max(self.peak, held)
        assert self.count.get() == held, self.name
        assert self.source.ready.get() == (held < self.parameters["Tags"]), self.name
        known = self.lookup.get()
        assert self.found.get() == (known in self.payload), self.name
        if self.parameters["Lookup"] and known in self.payload:
            assert self.looked.get() == self.payload[known], self.name
        # The sink has already received this cycle's item, if any, and the source has noted the sent one.
        while len(self.sink.items) > self.taken:
            tag, payload, result = self.sink.items[self.taken]
            self.taken += 1
            due = self.order[0] if self.parameters["InOrder"] else self.queue[0]
            assert tag == due, self.name
            assert (payload, result) == (self.kept[tag], self.ended.pop(tag)), self.name
            self.order.remove(tag)
            self.queue.remove(tag)
        unexpected = self.ending is not None and self.ending[0] not in self.payload
        assert self.unexpected.get() == unexpected, self.name
        self.told += unexpected
        if self.ending is not None and not unexpected:
            tag, result = self.ending
            self.kept = getattr(self, "kept", {}) | {tag: self.payload.pop(tag)}
            self.ended[tag] = result
            self.queue.append(tag)
        if self.source.cycles_of and self.source.cycles_of[-1] == self.bench.cycles:
            tag = self.tag.get()
            assert tag not in self.payload, f"{self.name}: {tag} has an owner"
            assert tag not in self.ended, f"{self.name}: {tag} has an owner"
            if self.parameters["InOrder"] and self.order:
                assert tag == (self.order[-1] + 1) % self.parameters["Tags"], self.name
            sent = self.source.sent[-1]
            assert isinstance(sent, int)
            self.payload[tag] = sent
            self.order.append(tag)


def lanes_of(bench: Bench) -> list[Lane]:
    return [Lane(bench, name) for name in INSTANCES]


@cocotb.test()
async def every_transaction_comes_back_once_as_it_went_in(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for idle, stall, eager in [(0, 0, 1), (0, 0, 0.3), (0.5, 0, 0.3), (0, 0.6, 0.9), (0.3, 0.3, 0.3), (0.1, 0.9, 0.5)]:
        for lane in lanes:
            lane.source.idle, lane.sink.stall, lane.eager = idle, stall, eager
            lane.source.random_items(300)
        await bench.until(lambda: all(not lane.source.items and not lane.order for lane in lanes))
    for lane in lanes:
        assert lane.taken == 6 * 300, lane.name
        assert lane.peak == lane.parameters["Tags"], lane.name
        assert lane.told > 10, lane.name


@cocotb.test()
async def a_table_that_nobody_completes_or_empties_is_full_and_stays_so(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        lane.eager, lane.wrong = 0.0, 0.0
        lane.source.random_items(200)
    await bench.cycle(200)
    for lane in lanes:
        assert len(lane.source.sent) == lane.parameters["Tags"], lane.name
        assert not lane.sink.items, lane.name
        lane.eager, lane.sink.stall = 1.0, 1.0
    await bench.cycle(200)
    for lane in lanes:
        assert len(lane.ended) == lane.parameters["Tags"], lane.name
        lane.sink.stall = 0.0
    await bench.until(lambda: all(lane.taken == 200 for lane in lanes))


@cocotb.test()
async def one_allocation_completion_and_retirement_a_cycle(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [lane for lane in lanes_of(bench) if lane.parameters["Tags"] > 2]
    await bench.reset()
    for lane in lanes:
        lane.eager, lane.wrong = 1.0, 0.0
        lane.source.random_items(100)
    await bench.cycle(104)
    for lane in lanes:
        first = lane.source.cycles_of[0]
        assert lane.source.cycles_of == list(range(first, first + 100)), lane.name
        assert lane.sink.cycles_of == list(range(first + 2, first + 102)), lane.name


@cocotb.test()
async def reset_in_mid_flight_leaves_an_empty_table(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for busy in (1, 5, 40, 300):
        for lane in lanes:
            lane.source.idle, lane.sink.stall, lane.eager = 0.2, 0.5, 0.4
            lane.source.random_items(400)
        await bench.cycle(busy)
        for lane in lanes:
            lane.complete.set(0)
        await bench.reset(1)
        for lane in lanes:
            lane.source.random_items(50)
        await bench.until(lambda: all(not lane.source.items and not lane.order for lane in lanes))
        for lane in lanes:
            assert lane.taken == 50, lane.name


def test_tag_table() -> None:
    simulate(__file__, INSTANCES)
    elaborate(INSTANCES)
