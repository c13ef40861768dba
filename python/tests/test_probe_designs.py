# SPDX-License-Identifier: Apache-2.0
"""The experiment `designs`: how it uses the JSON of designs_bench, and that this program reproduces the recorded
figures."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_report import parsed

from wherry import report
from wherry.errors import BenchError, NotFound
from wherry.probe.bench import designs
from wherry.probe.bench.run import run
from wherry.probe.model import simulated
from wherry.probe.model.memory_access import QUANTITIES
from wherry.system import built, repository


def rate(flow: str, channels: int) -> float:
    return {"h2c": 10.0, "c2h": 12.0}[flow] + channels / 10


def document() -> dict[str, Any]:
    """A document in the program's format, with round numbers."""
    figures = [
        {"design": design, "flow": flow, "channels": channels, "bytes": size, "notice": "interrupt", "preset": preset,
         "controller": "card", "gbytes_per_s": rate(flow, channels) * size / (8 << 20), "transfer_ns": 5e4, "error": ""}
        for design in ("bram", "ddr4", "softcore", "linux") for flow in ("h2c", "c2h") for channels in (1, 2, 3, 4)
        for size in (64, 1 << 20, 8 << 20) for preset in ("xdma", "wherry")
    ]  # fmt: skip
    turns = [{"controller": "litedram", "flow": flow, "turn": turn, "streams": streams, "error": "",
              "memory_gbytes_per_s": 16.0 if streams == 1 else turn / 256, "engine_gbytes_per_s": 1.0}
             for flow in ("h2c", "c2h") for turn in (512, 1024, 4096) for streams in (1, 4)]  # fmt: skip
    ways = [{"flow": flow, "slices": slices, "cycles": 2 * slices + 2, "gbytes_per_s": 11 - slices / 20, "error": ""}
            for flow in ("h2c", "c2h") for slices in range(0, 61, 10)]  # fmt: skip
    linux = [{"controller": "card", "core_mhz": 100 if window else 0, "window": window, "flow": flow,
              "channels": channels, "error": "", "gbytes_per_s": rate(flow, channels) - (0.05 if window == 6 else 0)}
             for window in (None, 6, 7) for flow in ("h2c", "c2h") for channels in (1, 2, 3, 4)]  # fmt: skip
    firmwares = [{"firmware": "idle", "flow": "h2c", "channels": 1, "gbytes_per_s": 9.0, "error": ""}]
    return {"schema": designs.SCHEMA, "simulated": True, "traffic": "recorded", "figures": figures, "turns": turns,
            "interconnect": ways, "linux": linux, "firmwares": firmwares, "figures_cpu_s": 90.0}  # fmt: skip


def test_bars_say_what_was_simulated() -> None:
    values = designs.values_of(designs.read(document()))
    assert values == pytest.approx({
        "sim_linux_c2h_gbs": 12.25, "sim_linux_c2h_most_gbs": 12.4, "sim_xdma_preset_bram_1m": 10.1 / 8,
        "sim_xdma_preset_bram_1m_most": 12.1 / 8, "sim_turns_1k_of_one": 0.25, "sim_turns_4k_over_512": 8.0,
        "sim_turns_4k_of_one": 1.0, "sim_designs_cpu_minutes": 1.5,
    })  # fmt: skip
    bars = designs.bars_of(designs.read(document()))
    assert not bars["sim_xdma_preset_bram_1m"]["pass"]
    assert all(bars[name]["pass"] for name in ("sim_linux_c2h_gbs", "sim_linux_c2h_most_gbs", "sim_turns_4k_of_one"))


def test_cycles_lie_between_two_points_of_the_sweep() -> None:
    found = designs.read(document())
    assert designs.cap_cycles(found.ways, "h2c") == pytest.approx(2 * 31 + 2)
    with pytest.raises(BenchError, match="no length"):
        designs.cap_cycles(found.ways, "h2c", 7.0)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda found: found.update(schema="x"), "is expected"),
        (lambda found: found.update(simulated=False), "is expected"),
        (lambda found: found["figures"][0].update(error="3 bytes are wrong"), "3 bytes are wrong"),
        (lambda found: found["linux"][0].pop("channels"), "does not describe"),
        (lambda found: found.pop("turns"), "does not describe"),
    ],
)
def test_what_is_no_result_is_refused(spoil: Any, message: str) -> None:
    found = document()
    spoil(found)
    with pytest.raises(BenchError, match=message):
        designs.read(found)


def test_a_run_with_a_stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "said.json").write_text(json.dumps(document()))
    program = tmp_path / "designs_bench"
    program.write_text(f'#!/bin/sh\necho "half" >&2\ncp "{tmp_path}/said.json" "$2"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr("wherry.bench.program.built", lambda folder, name: program)
    said: list[str] = []
    bench = run(tmp_path / "b.json", only=["designs"], say=said.append)
    assert set(bench.bars) == set(designs.TARGETS)
    assert said == ["four FPGA designs of paper 000, simulated: a minute or two"]
    page = report.build([tmp_path / "b.json"])
    words = " ".join(parsed(page).text)
    assert "9.45 GB/s come with 64 cycles of 300 MHz to the card" in words
    assert page.count('<svg class="wide" ') == 5
    results = json.loads((tmp_path / "b.json").read_text())["results"]
    figures = simulated.from_designs(results)
    assert list(figures) == [quantity.name for quantity in QUANTITIES]
    assert (figures["ma_pl_c2h_3_4ch"].low, figures["ma_pl_c2h_3_4ch"].high) == pytest.approx((12.3, 12.4))
    assert simulated.from_designs({}) == {}
    program.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    with pytest.raises(BenchError, match="failed \\(exit status 1\\)"):
        run(tmp_path / "c.json", only=["designs"], say=said.append)


def test_recorded_figures_are_of_the_thirteen() -> None:
    assert list(simulated.recorded(simulated.DESIGNS_RECORDED)) == [quantity.name for quantity in QUANTITIES]
    for name, figure in simulated.recorded(simulated.DESIGNS_RECORDED).items():
        assert (figure.mark == "fitted") == (name in simulated.DESIGNS_FITTED)
        assert figure.provenance == "simulated"


def test_recorded_figures_are_what_the_simulation_says(tmp_path: Path) -> None:
    """Repeats complete runs with one channel, and with four channels to the host beside Linux."""
    try:
        program = built("sim/designs", "designs_bench")
    except NotFound as why:
        pytest.skip(str(why))
    file = tmp_path / "designs.json"
    line = [str(program), "--quick", "--part", "figures", "--json", str(file)]
    subprocess.run(line, check=True, capture_output=True, timeout=600)
    rates = {(row["design"], row["flow"], row["channels"]): row["gbytes_per_s"]
             for row in json.loads(file.read_text())["figures"]
             if row["preset"] == "xdma" and row["bytes"] == 64 << 20}  # fmt: skip
    recorded = simulated.recorded(simulated.DESIGNS_RECORDED)
    for name, (design, flow, channels) in simulated.DESIGNS.items():
        if design != "bram" and channels == (1,):
            assert recorded[name].low == pytest.approx(rates[design, flow, 1], rel=0.01), name
    ends = (recorded["ma_pl_c2h_3_4ch"].low * 0.99, recorded["ma_pl_c2h_3_4ch"].high * 1.01)
    assert ends[0] <= rates["linux", "c2h", 4] <= ends[1]


def test_documentation_names_every_bar() -> None:
    root = repository()
    assert root is not None
    text = (root / "docs" / "design" / "designs.md").read_text()
    for name in designs.TARGETS:
        assert f"`{name}`" in text
