# SPDX-License-Identifier: Apache-2.0
"""The files of hdl/cards for Vivado. The Tcl runs with vivado_card.tcl in place of Vivado's commands, and names agree
with the RTL. Vivado itself has not run these files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import hdl_tools
import pytest
from simulate import ROOT

SHELL = ROOT / "hdl" / "cards" / "shell"
HERE = Path(__file__).parent
CARDS = {"au50": "xcu50-fsvh2104-2-e", "au55c": "xcu55c-fsvh2892-2L-e"}
PACKAGES = ["axi_pkg", "bypass_registers_pkg", "bypass_pkg", "bypass_functions_registers_pkg", "bypass_functions_pkg"]
PACKAGES += ["dma_registers_pkg", "dma_control_pkg", "dma_data_pkg", "dma_pkg"]
PACKAGES += ["kv_frame_pkg", "kv_registers_pkg", "kv_core_pkg", "kv_engine_pkg", "kv_recovery_pkg", "kv_memory_pkg"]
PACKAGES += ["kv_tx_pkg"]
TOPS = {"functions": ("bypass_functions_card", list(CARDS)), "kv": ("bypass_kv_card", ["au55c"])}


def tcl(script: str, *arguments: str) -> list[str]:
    """Returns the commands that a script gives to Vivado."""
    command = ["tclsh", str(HERE / "vivado_card.tcl"), str(SHELL / script), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def ports_of(module: str) -> dict[str, str]:
    """Returns each port of a module of hdl/cards and its direction, with macros expanded."""
    path = next((ROOT / "hdl" / "cards").rglob(f"{module}.sv"))
    command = [str(hdl_tools.VERILATOR), "-E", "-P", *(f"-I{folder}" for folder in hdl_tools.folders()), str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    header = text[text.index(f"module {module}") :].partition(");")[0]
    return {name: way for way, name in re.findall(r"(input|output)\s+(?:wire|logic)\s+(?:\[[^\]]*\]\s*)?(\w+)", header)}


def region_of(name: str) -> tuple[int, int]:
    """Returns the address and the size of a BAR in bypass_bridge.sv."""
    bridge = (ROOT / "hdl" / "cards" / "bypass_bridge.sv").read_text()
    match = re.search(rf"{name} = '\{{base: 64'h(\w+), size: 64'h(\w+)\}}", bridge)
    assert match
    base, size = (int(text.replace("_", ""), 16) for text in match.groups())
    return base, size


def find(said: list[str], start: str) -> str:
    """Returns the only line with this start."""
    lines = [line for line in said if line.startswith(start)]
    assert len(lines) == 1, said
    return lines[0]


def config(said: list[str]) -> dict[str, str]:
    """Returns the properties of the IP."""
    lines = [line for line in said if line.startswith("set_property -dict") and line.endswith("get_ips/bypass_pcie_ip")]
    return dict(re.findall(r"CONFIG\.(\w+) (\S+?)\}?(?= |$)", " ".join(lines)))


@pytest.mark.parametrize("board", CARDS)
def test_tcl_reads_what_the_card_is_made_of(board: str) -> None:
    said = tcl("build_card.tcl", board)
    assert find(said, "create_project") == f"create_project -in_memory -part {CARDS[board]}"
    files = [Path(word) for word in find(said, "read_verilog").replace("{", "").replace("}", "").split()[2:]]
    assert all(path.is_file() for path in files)
    assert len(set(files)) == len(files)
    assert [path.stem for path in files[: len(PACKAGES)]] == PACKAGES
    assert not [path for path in files[len(PACKAGES) :] if path.stem.endswith("_pkg")]
    there = {ROOT / path for path in hdl_tools.files("*.sv")}
    folders = {"bypass", "kv", "cards", "common", "dma"}
    used = {path for path in there if folders & set(path.parts) and "ip" not in path.parts}
    box = {ROOT / "hdl" / "opennic" / f"kv_box_{name}.sv" for name in ("hbm", "reset", "watch")}
    assert set(files) == used | box
    assert not {"tb", "formal", "ip"} & {part for path in files for part in path.relative_to(ROOT).parts}
    assert "-mode out_of_context" in find(said, "synth_design -top bypass_card")
    assert not any(line.startswith("write_bitstream") for line in said)
    read = [line.split()[-1] for line in said if line.startswith("read_xdc")]
    assert read == [str(path) for path in sorted((ROOT / "hdl" / "common").glob("*.xdc"))]


@pytest.mark.parametrize("board", CARDS)
def test_tcl_builds_a_users_top(board: str, tmp_path: Path) -> None:
    said = tcl("build_card.tcl", board, "my_top", str(tmp_path / "my_top.sv"))
    assert str(tmp_path / "my_top.sv") in find(said, "read_verilog")
    assert find(said, "synth_design").startswith(f"synth_design -top my_top -part {CARDS[board]}")
    assert f"read_xdc {SHELL}/{board}.xdc" in said
    assert find(said, "write_bitstream").endswith(f"my_top_{board}.bit")


@pytest.mark.parametrize("kind", TOPS)
def test_tcl_builds_the_tops_that_are_whole(kind: str) -> None:
    """A top's ports are the pins in the constraints, plus those that the IP places. The script creates its IPs."""
    top, boards = TOPS[kind]
    pins = set(ports_of(top))
    lanes = {"pcie_rx_p_i", "pcie_rx_n_i", "pcie_tx_p_o", "pcie_tx_n_o"}
    assert lanes < pins
    for board in boards:
        said = tcl("build_card.tcl", board, kind)
        assert find(said, "synth_design").startswith(f"synth_design -top {top} -part {CARDS[board]}")
        assert find(said, "write_bitstream").endswith(f"{top}_{board}.bit")
        shell = [Path(line.split()[-1]) for line in said if line.startswith("read_xdc") and str(SHELL) in line]
        placed = [line for path in shell for line in tcl(path.name) if "PACKAGE_PIN" in line]
        assert sorted(re.findall(r"get_ports/(\w+)", " ".join(placed))) == sorted(pins - lanes)
        made = [line.split()[-1] for line in said if line.startswith("create_ip")]
        assert made == ["bypass_pcie_ip"] + (["kv_hbm_ip"] if kind == "kv" else [])


@pytest.mark.parametrize("board", CARDS)
@pytest.mark.parametrize("top", [[], ["functions"], ["my_top", "my_top.sv"]])
def test_tcl_builds_a_card_with_the_dma_engine(board: str, top: list[str]) -> None:
    """The top gets its parameter. The bridge has BAR 4, where the RTL expects it, and no other difference."""
    said, without = tcl("build_card.tcl", board, "dma", *top), tcl("build_card.tcl", board, *top)
    assert find(said, "synth_design").endswith("-generic Dma=1'b1")
    found, plain = config(said), config(without)
    assert not [name for name in plain if "bar4" in name or name.endswith("_4")]
    assert {name: found[name] for name in plain} == plain
    more = {name: value for name, value in found.items() if name not in plain}
    assert more.pop("c_s_axi_num_read") == "32"
    assert more.pop("pciebar2axibar_4") == f"0x{region_of('Engine')[0]:016X}"
    assert more.pop("pf0_bar4_size") == str(region_of("Engine")[1] >> 10)
    assert more.pop("pf0_bar4_scale") == "Kilobytes"
    assert set(more.values()) == {"true"}
    assert set(more) == {f"pf0_bar4_{name}" for name in ("enabled", "64bit", "prefetchable")}
    assert [line for line in said if "create_ip" in line] == [line for line in without if "create_ip" in line]


def test_tcl_refuses_other_cards() -> None:
    with pytest.raises(AssertionError, match="no place for the DMA engine"):
        tcl("build_card.tcl", "au55c", "dma", "kv")
    with pytest.raises(AssertionError, match="HBM of an Alveo U55C"):
        tcl("build_card.tcl", "au50", "kv")
    with pytest.raises(AssertionError, match="The card must be one of"):
        tcl("build_card.tcl", "au280")


@pytest.mark.parametrize("board", CARDS)
def test_the_bridge_is_what_the_rtl_takes_it_for(board: str) -> None:
    said = tcl("build_card.tcl", board)
    assert find(said, "create_ip").endswith("-module_name bypass_pcie_ip")
    found = config(said)
    assert (found["functional_mode"], found["axi_data_width"], found["axi_addr_width"]) == (
        "AXI_Bridge",
        "512_bit",
        "64",
    )
    bridge = (ROOT / "hdl" / "cards" / "bypass_bridge.sv").read_text()
    scales = {"Kilobytes": 1 << 10, "Megabytes": 1 << 20}
    for bar, region in ((0, "Registers"), (2, "Window")):
        base, size = region_of(region)
        assert int(found[f"pciebar2axibar_{bar}"], 16) == base
        assert int(found[f"pf0_bar{bar}_size"]) * scales[found[f"pf0_bar{bar}_scale"]] == size
    # The demultiplexer can track as many transactions as the bridge may have outstanding.
    outstanding = re.search(r"Outstanding = (\d+);", bridge)
    assert outstanding
    assert int(found["c_m_axi_num_read"]) <= int(outstanding[1])
    # An address on AXI is the bus address.
    assert (found["axibar_0"], found["axibar2pciebar_0"]) == ("0x0000000000000000",) * 2
    assert int(found["axibar_highaddr_0"], 16) == (1 << 64) - 1


def test_the_stand_in_has_the_ports_of_the_product_guide() -> None:
    """Compares names (with the suffix b of this IP) and directions with PG194's AXI Master and AXI Slave Interface."""
    ports = ports_of("bypass_pcie_ip")
    master = {"aw": "id addr len size burst prot valid lock cache", "w": "data strb last valid", "b": "ready"}
    master |= {"ar": "id addr len size burst prot valid lock cache", "r": "ready"}
    back = {"aw": "ready", "w": "ready", "b": "id resp valid", "ar": "ready", "r": "id data resp last valid"}
    slave = {"aw": "id addr region len size burst valid", "w": "data strb last valid", "b": "ready"}
    slave |= {"ar": "id addr region len size burst valid", "r": "ready"}
    for prefix, driven, out, into in (("m_axib", master, "output", "input"), ("s_axib", slave, "input", "output")):
        for channels, way in ((driven, out), (back, into)):
            for channel, names in channels.items():
                for name in names.split():
                    assert ports.pop(f"{prefix}_{channel}{name}") == way
    assert not [name for name in ports if "axib" in name]
