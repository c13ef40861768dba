# SPDX-License-Identifier: Apache-2.0
"""axi_monitor reports each kind of broken rule. axi_pkg's arithmetic equals the specification's."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import pytest
from axi_agents import INCR, WRAP, Burst
from bench import Bench, Pin
from bundles import PACKAGE, Axi
from simulate import simulate

# The functions of axi_pkg as outputs.
ARITHMETIC = """
module arithmetic import axi_pkg::*; (
    input wire [11:0] address, input wire [7:0] len, input wire [2:0] size, input wire [15:0] bytes,
    input wire [7:0] first, input wire [7:0] end_, input wire [63:0] far, input wire [63:0] base, input wire [5:0] bits,
    output logic [11:0] next, output logic [15:0] total, output logic [7:0] beats, output logic crosses,
    output logic [127:0] mask, output logic inside_, output logic valid_
);
  region_t region;
  assign region = '{base: base, size: 64'd1 << bits};
  assign next = next_beat(address, size);
  assign total = burst_bytes(address[6:0], len, size);
  assign beats = burst_len(address[6:0], bytes, size);
  assign crosses = crosses_boundary(address, len, size);
  assign mask = lanes(first, end_);
  assign inside_ = in_region(far, region);
  assign valid_ = region_is_valid(region);
endmodule
"""

# Each entry has the message that a broken rule must cause, and the values to drive at the port, one per cycle. All
# signals start at 0, and keep their value until the next one.
WRITE = {"awvalid": 1, "awlen": 0, "awsize": 2, "awburst": INCR}
DATA = {"wvalid": 1, "wlast": 1}
READ = {"arvalid": 1, "arlen": 1, "arsize": 2, "arburst": INCR}
TAKE = {"awready": 1, "wready": 1, "arready": 1, "bready": 1, "rready": 1}
IDLE = {"awvalid": 0, "wvalid": 0, "arvalid": 0, "bvalid": 0, "rvalid": 0}
FAULTS: dict[str, list[dict[str, int]]] = {
    "AW was withdrawn or changed": [WRITE, {"awaddr": 4}],
    "W was withdrawn or changed": [DATA, IDLE],
    "AR was withdrawn or changed": [READ, {"arlen": 2}],
    "B was withdrawn or changed": [WRITE | DATA | TAKE, IDLE | {"bready": 0}, {"bvalid": 1}, {"bresp": 2}],
    "R was withdrawn or changed": [READ | TAKE, IDLE | {"rready": 0}, {"rvalid": 1}, {"rdata": 2}],
    "an illegal burst on AW": [WRITE | {"awaddr": 4092, "awlen": 1}],
    "an illegal burst on AR": [READ | {"arburst": WRAP, "arlen": 2}],
    "WLAST is not where AWLEN says": [WRITE | TAKE | {"awlen": 1}, IDLE | DATA],
    "AWLEN does not say how much data came ahead of it": [DATA | TAKE, IDLE | WRITE | {"awlen": 1}],
    "more writes are under way than it can follow": [WRITE | TAKE, *([{}] * 4)],
    "more write data is under way than it can follow": [DATA | TAKE, *([{}] * 4)],
    "more reads are under way than it can follow": [READ | TAKE, *([{}] * 4)],
    "a response to a write that nobody asked for": [WRITE | DATA | TAKE, IDLE | {"bvalid": 1, "bid": 1}],
    "a response to a write before its address or its data": [WRITE | TAKE, IDLE | {"bvalid": 1}],
    "read data that nobody asked for": [READ | TAKE, IDLE | {"rvalid": 1, "rid": 1}],
    "RLAST is not where ARLEN says": [READ | TAKE, IDLE | {"rvalid": 1, "rlast": 1}],
}


@cocotb.test(skip=os.environ.get("FAULT", "") not in FAULTS)
async def break_a_rule(dut: Any) -> None:
    bench = Bench(dut)
    pins = {name: bench.pin(dut, name) for step in FAULTS.values() for cycle in step for name in cycle}
    await bench.reset()
    for cycle in FAULTS[os.environ["FAULT"]]:
        for name, value in cycle.items():
            pins[name].set(value)
        await bench.cycle()
    await bench.cycle(2)


@cocotb.test(skip="FAULT" in os.environ)
async def arithmetic_of_bursts_is_that_of_the_specification(dut: Any) -> None:
    bench = Bench(dut)
    scope = dut.arithmetic
    names = ["address", "len", "size", "bytes", "first", "end_", "far", "base", "bits"]
    names += ["next", "total", "beats", "crosses", "mask", "inside_", "valid_"]
    pins: dict[str, Pin] = {name: bench.pin(scope, name) for name in names}
    draw = bench.random
    for _ in range(3000):
        size = draw.randrange(8)
        burst = Burst(0, draw.randrange(4096), draw.choice([1, 2, draw.randint(1, 256)]), size)
        first, end = draw.randint(0, 128), draw.randint(0, 128)
        bits, base, far = draw.randrange(64), draw.getrandbits(64), draw.getrandbits(64)
        if draw.random() < 0.5:
            base = base >> bits << bits
        if draw.random() < 0.5:
            far = (base & -(1 << bits)) | (far & ((1 << bits) - 1))
        step = 1 << size
        ends = [(address & -step) + step for address in burst.addresses()]
        bytes_ = draw.randint(1, 256 * step - burst.address % step)
        values = {"address": burst.address, "len": burst.beats - 1, "size": size, "first": first, "end_": end}
        for name, value in (values | {"far": far, "base": base, "bits": bits, "bytes": bytes_}).items():
            pins[name].set(value)
        await bench.settle()
        assert pins["next"].get() == ends[0] % 4096
        assert pins["total"].get() == ends[-1] - burst.address
        assert pins["crosses"].get() == ((ends[-1] - 1) // 4096 != 0)
        touched = {(burst.address + i) // step for i in range(bytes_)}
        assert pins["beats"].get() == len(touched) - 1
        assert pins["mask"].get() == sum(1 << i for i in range(128) if first <= i < end)
        aligned = base % (1 << bits) == 0
        assert pins["valid_"].get() == aligned
        if aligned:
            assert pins["inside_"].get() == (base <= far < base + (1 << bits))


def top() -> str:
    """Returns a top with a monitor whose signals the bench drives, and with the functions of axi_pkg."""
    port = Axi("axi", 16, 32, 2)
    signals, lines = [], []
    for channel, fields in port.channels.items():
        half, other = ("req", "resp") if channel in ("aw", "w", "ar") else ("resp", "req")
        for name, width in fields:
            bits = width if isinstance(width, int) else getattr(port, width)
            cast = f"axi_pkg::{name}_e'" if name in ("burst", "resp") else ""
            signals.append(f"  logic [{bits - 1}:0] {channel}{name};")
            lines.append(f"  assign axi_{half}.{channel}.{name} = {cast}({channel}{name});")
        signals.append(f"  logic {channel}valid, {channel}ready;")
        lines.append(f"  assign axi_{half}.{channel}_valid = {channel}valid;")
        lines.append(f"  assign axi_{other}.{channel}_ready = {channel}ready;")
    text = ['`include "axi.svh"', ARITHMETIC, "module top (input wire clk_i, input wire rst_i);"]
    text += [*signals, "  `AXI_TYPES(axi, 16, 32, 2)", "  axi_req_t axi_req;", "  axi_resp_t axi_resp;", *lines]
    text += ["  axi_monitor #(.axi_req_t(axi_req_t), .axi_resp_t(axi_resp_t), .Outstanding(4)) monitor (.*);"]
    return "\n".join([*text, "  arithmetic arithmetic ();", "endmodule", ""])


def run() -> None:
    simulate(__file__, text=top(), sources=(PACKAGE,))


def test_arithmetic() -> None:
    run()


@pytest.mark.parametrize("sentence", FAULTS)
def test_a_broken_rule_is_told(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", sentence)
    with pytest.raises(pytest.fail.Exception, match=sentence):
        run()
