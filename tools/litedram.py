# SPDX-License-Identifier: Apache-2.0
"""Compares the DDR4 model (sim/memory) with litedram's real controller: `make ddr4`.

litedram, litex and migen (BSD, from PyPI, versions in requirements-card.in) generate the controller as Verilog, and
Verilator compiles it to a program. The same managers put load on both. These files are not committed.
docs/design/card-memory.md has the table.

    tools/litedram.py [--json FILE] [--build BUILD]
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from card_programs import PLACE, ROOT, SITE, build_program, install_packages, run

MOST_ERROR = 0.10

GENERATOR = r"""
import sys
import litedram.phy.model as model
from litedram.core import LiteDRAMCore
from litedram.core.controller import ControllerSettings
from litedram.frontend.axi import LiteDRAMAXI2Native, LiteDRAMAXIPort
from litedram.modules import MT40A1G8
from litex.gen.fhdl import verilog
from migen import ClockDomain, Module, Signal

# Its memory is rows x columns of each bank: 8 GiB. The table needs none of the data, so a bank keeps 4,096 words.
source = open(model.__file__).read()
whole = "bank_mem_len   = nrows*ncols//(burst_length*nphases)"
assert whole in source
exec(compile(source.replace(whole, "bank_mem_len   = 4096"), "phy_model", "exec"), model.__dict__)

CLOCK = 300e6
CHANNELS = {
    "aw": ["addr", "len", "size", "burst", "id"], "ar": ["addr", "len", "size", "burst", "id"],
    "w": ["data", "strb"], "r": ["data", "resp", "id"], "b": ["resp", "id"],
}


class Top(Module):
    def __init__(self):
        module = MT40A1G8(CLOCK, "1:4")
        phy = model.SDRAMPHYModel(module, data_width=64, clk_freq=CLOCK, we_granularity=8, verbosity=0)
        self.submodules.phy = phy
        self.submodules.core = core = LiteDRAMCore(
            phy=phy, geom_settings=module.geom_settings, timing_settings=module.timing_settings, clk_freq=CLOCK,
            controller_settings=ControllerSettings(cmd_buffer_depth=8, address_mapping="ROW_BANK_COL"))
        self.clock_domains.cd_sys = ClockDomain("sys")
        self.ios = {self.cd_sys.clk, self.cd_sys.rst}
        for i in range(2):
            port = core.crossbar.get_port()
            axi = LiteDRAMAXIPort(data_width=port.data_width, address_width=32, id_width=4)
            self.submodules += LiteDRAMAXI2Native(axi, port, w_buffer_depth=64, r_buffer_depth=64)
            for channel, fields in CHANNELS.items():
                end = getattr(axi, channel)
                signals = {"valid": end.valid, "ready": end.ready}
                signals |= {name: getattr(end, name) for name in fields if hasattr(end, name)}
                if channel in "wr":
                    signals["last"] = end.last
                for name, signal in signals.items():
                    io = Signal(len(signal), name_override=f"s{i}_axi_{channel}{name}")
                    inward = (name != "ready") ^ (channel in ("r", "b"))
                    self.comb += signal.eq(io) if inward else io.eq(signal)
                    self.ios.add(io)


top = Top()
verilog.convert(top, ios=top.ios, name="litedram").write(sys.argv[1])
"""


def build_reference() -> Path:
    """Builds the program that measures litedram's controller; returns its path."""
    install_packages()
    verilog = PLACE / "litedram.v"
    if not verilog.exists():
        run(sys.executable, "-c", GENERATOR, verilog, env=os.environ | {"PYTHONPATH": str(SITE)}, cwd=PLACE)
    sources = ["sim/memory/litedram_table_main.cpp", "sim/memory/traffic.cpp"]
    return build_program("litedram", "litedram", verilog, sources)


def compare(reference: dict[str, Any], model: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each rate above zero: its name, both rates, and the model's error."""
    rows = []
    for theirs, ours in zip(reference["cells"], model["cells"], strict=True):
        assert theirs["name"] == ours["name"]
        for key, what in (("read_gbs", "read"), ("write_gbs", "write"), ("second_read_gbs", "core's reads")):
            if theirs[key] > 0:
                error = ours[key] / theirs[key] - 1
                rows.append({"name": theirs["name"], "what": what, "litedram": theirs[key], "model": ours[key],
                             "error": error, "litedram_latency_cycles": theirs["latency_cycles"],
                             "latency_cycles": ours["latency_cycles"]})  # fmt: skip
    return rows


def main() -> None:
    """Prints the table. Exit status 1 if an error exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="where ddr4_table was built")
    arguments = parser.parse_args()
    program = arguments.build / "sim" / "memory" / "ddr4_table"
    if not program.exists():
        sys.exit(f"{program} is not there: cmake --build {arguments.build} --target ddr4_table")
    reference = json.loads(run(build_reference()))
    models = {which: json.loads(run(program, which)) for which in ("litedram", "jedec", "card")}
    tables = {which: compare(reference, model) for which, model in models.items()}
    print(f"{'GB/s':42} {'litedram':>8} {'model':>8} {'error':>7}   {'JEDEC':>7} {'card':>7}   cycles: litedram, model")
    for row, jedec, card in zip(tables["litedram"], tables["jedec"], tables["card"], strict=True):
        name = f"{row['name']}: {row['what']}"
        print(f"{name:42} {row['litedram']:8.2f} {row['model']:8.2f} {row['error']:+7.1%}   {jedec['model']:7.2f} "
              f"{card['model']:7.2f}   {row['litedram_latency_cycles']:6}, {row['latency_cycles']}")  # fmt: skip
    worst = max(tables["litedram"], key=lambda row: abs(row["error"]))
    speed = {which: model["cycles"] / model["cpu_seconds"] for which, model in models.items()}
    print(f"largest error: {worst['error']:+.1%} ({worst['name']}: {worst['what']})")
    print("million cycles a second of CPU: " + ", ".join(f"{which} {rate / 1e6:.1f}" for which, rate in speed.items()))
    print(f"litedram itself: {reference['cycles'] / reference['cpu_seconds'] / 1e6:.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "ddr4_vs_litedram_max_error": abs(worst["error"]), "tables": tables, "cycles_per_cpu_s": speed,
        }, indent=1))  # fmt: skip
    if abs(worst["error"]) > MOST_ERROR:
        sys.exit(f"an error above {MOST_ERROR:.0%}")


if __name__ == "__main__":
    main()
