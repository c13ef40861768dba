# SPDX-License-Identifier: Apache-2.0
"""A kv_axi_port with its user and its memory, optionally shared with a host (kv_host_path)."""

from __future__ import annotations

import re

from axi_memory import Memory, memory_ports
from bench import Bench, Pin, Sink, Source
from bundles import Axi
from flat import PACKAGES, Bundles, Scope, nets

# The ports of kv_axi_port, by the names that Port drives.
PORT: Bundles = {
    "read": (
        "read_burst_t",
        {
            "read_address": "address",
            "read_words": "words",
            "read_first": "first",
            "read_line": "line",
            "read_tag": "tag",
        },
    ),
    "m_line": ("filled_line_t", {"line_data": "data", "line_tag": "tag"}),
    "write": ("write_burst_t", {"write_address": "address", "write_words": "words", "write_way": "way"}),
    "data": (
        "write_word_t",
        {
            "word": "data",
            "data_last": "last",
            "data_is_way": "is_way",
            "data_way": "way",
            "data_odd": "odd",
            "data_clear": "clear",
        },
    ),
}
HOST = Axi("s_axi", 34, 512, 4)


def port_text(name: str, parameters: str, host: bool = False) -> str:
    """Returns the module NAME_flat: a kv_axi_port with its pins. With `host` a kv_host_path is in front of the
    memory."""
    lines = [f"module {name}_flat (input wire clk_i, input wire rst_i);", f"  {PACKAGES}", memory_ports(1), nets(PORT)]
    lines += ["  memory_req_t core_req;", "  memory_resp_t core_resp;"]
    if host:
        lines += [re.sub(r"(input wire|output logic)", "  logic", one) + ";" for one in HOST.ports()]
        lines += HOST.body()
        lines += [
            "  kv_host_path #(.axi_req_t(s_axi_req_t), .axi_resp_t(s_axi_resp_t)) path (.clk_i, .rst_i, .s_axi_req,"
        ]
        lines += ["    .s_axi_resp, .core_i(core_req), .core_o(core_resp), .memory_o(m_axi_req[0]),"]
        lines += ["    .memory_i(m_axi_resp[0]));"]
    else:
        lines += ["  assign m_axi_req[0] = core_req;", "  assign core_resp = m_axi_resp[0];"]
    lines += [f"  kv_axi_port #({parameters}) dut (.clk_i, .rst_i, .read(read_bundle), .line(m_line_bundle),"]
    lines += ["    .write(write_bundle), .data(data_bundle), .m_axi_req(core_req), .m_axi_resp(core_resp));"]
    return "\n".join([*lines, "endmodule", ""])


class Port:
    """A channel with its user and its memory."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope = Scope(getattr(bench.dut, name))

        def pins(*names: str) -> list[Pin]:
            return [bench.pin(scope, pin) for pin in names]

        self.bench, self.name = bench, name
        self.memory = Memory(bench, scope, index=0)
        fields = pins("read_address", "read_words", "read_first", "read_line", "read_tag")
        self.reads = Source(bench, *pins("read_valid", "read_ready"), fields)
        self.lines = Sink(bench, *pins("line_valid", "line_ready"), pins("line_data", "line_tag"))
        self.words = Sink(bench, *pins("word_valid", "word_ready"), pins("word_data"))
        self.writes = Source(
            bench, *pins("write_valid", "write_ready"), pins("write_address", "write_words", "write_way")
        )
        data = pins("word", "data_last", "data_is_way", "data_way", "data_odd", "data_clear")
        self.data = Source(bench, *pins("data_valid", "data_ready"), data)
        self.done, self.error, self.begun = pins("write_done_o", "error_o", "begun_o")
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        """Forgets transfers in flight."""
        self.expected: list[int] = []
        self.expected_lines: list[tuple[int, int]] = []
        self.written = self.confirmed = self.firsts = self.begins = self.failures = 0

    def drive(self) -> None:
        """Does nothing, because its agents drive the signals."""

    def sample(self) -> None:
        """Counts confirmed writes, begun values and errors."""
        self.confirmed += self.done.get()
        assert self.confirmed <= self.written
        self.begins += self.begun.get()
        self.failures += self.error.get()

    def write(self, address: int, words: int) -> list[int]:
        """Queues a write of random words, and returns them."""
        draw = self.bench.random
        data = [draw.getrandbits(512) for _ in range(words)]
        self.writes.items.append((address, words - 1, 0))
        self.data.items += [(word, i == words - 1, 0, draw.getrandbits(128), 0, 0) for i, word in enumerate(data)]
        self.written += 1
        return data

    def write_way(self, address: int, word: int, way: int | None) -> int:
        """Writes a way of a present word, or clears the whole word. Returns the word's new content."""
        draw = self.bench.random
        self.written += 1
        if way is None:
            self.writes.items.append((address, 0, 0))
            self.data.items.append((draw.getrandbits(512), 1, 1, 0, draw.getrandbits(1), 1))
            return 0
        header = draw.getrandbits(128)
        self.writes.items.append((address + 32 * (way // 2), 0, 1))
        self.data.items.append((draw.getrandbits(512), 1, 1, header, way % 2, 0))
        return word & ~(((1 << 128) - 1) << 128 * way) | header << 128 * way

    def read(self, address: int, words: list[int]) -> None:
        """Queues a read that must return these words."""
        first = self.bench.random.getrandbits(1)
        self.reads.items.append((address, len(words) - 1, first, 0, self.bench.random.getrandbits(4)))
        self.expected += words
        self.firsts += first

    def read_line(self, address: int, word: int) -> None:
        """Queues a read of a line."""
        tag = self.bench.random.getrandbits(4)
        self.reads.items.append((address, self.bench.random.getrandbits(3), self.bench.random.getrandbits(1), 1, tag))
        self.expected_lines.append((word, tag))
