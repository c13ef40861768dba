# SPDX-License-Identifier: Apache-2.0
"""Our files for the OpenNIC shell's build. The Tcl runs with tb/vivado.tcl in place of Vivado's commands. The Verilog
fits a module with the ports of the shell's 250 MHz box. Vivado itself has not run these files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from simulate import ROOT, VERILATOR

SHELL = ROOT / "hdl" / "opennic" / "shell"
HERE = Path(__file__).parent

# The faulty condition in the shell's packet buffer, which loses count, and the corrected one.
FLAWED, MENDED = (
    f"else if (s_axis_tvalid && s_axis_tlast && s_axis_tready && {drop})" for drop in ("drop_in_prog", "drop_busy")
)

AXIL = {"awaddr": 32, "awvalid": 1, "wdata": 32, "wvalid": 1, "bready": 1, "araddr": 32, "arvalid": 1, "rready": 1}
AXIL_BACK = {"awready": 1, "wready": 1, "bresp": 2, "bvalid": 1, "arready": 1, "rdata": 32, "rresp": 2, "rvalid": 1}
STREAM = {"tvalid": 1, "tdata": 512, "tkeep": 64, "tlast": 1, "tuser_size": 16, "tuser_src": 16, "tuser_dst": 16}
STREAMS = {  # name: (into the box, count)
    "s_axis_qdma_h2c": (True, "NUM_PHYS_FUNC*NUM_QDMA"),
    "m_axis_qdma_c2h": (False, "NUM_PHYS_FUNC*NUM_QDMA"),
    "m_axis_adap_tx_250mhz": (False, "NUM_CMAC_PORT"),
    "s_axis_adap_rx_250mhz": (True, "NUM_CMAC_PORT"),
}


def box(ports: int) -> str:
    """A module with the parameters and ports of the shell's box_250mhz for a U55C, and the plugin inside."""
    lines = [f"input [{width}-1:0] s_axil_{name}" for name, width in AXIL.items()]
    lines += [f"output [{width}-1:0] s_axil_{name}" for name, width in AXIL_BACK.items()]
    for stream, (into, count) in STREAMS.items():
        there, back = ("input", "output") if into else ("output", "input")
        lines += [f"{there} [{width}*{count}-1:0] {stream}_{name}" for name, width in STREAM.items()]
        lines.append(f"{back} [{count}-1:0] {stream}_tready")
    lines += ["input [15:0] mod_rstn", "output [15:0] mod_rst_done", "input box_rstn", "output box_rst_done"]
    lines += ["input axil_aclk", "input ref_clk_100mhz", "input axis_aclk"]
    parameters = {"MIN_PKT_LEN": 64, "MAX_PKT_LEN": 1518, "USE_PHYS_FUNC": 1}
    parameters |= {"NUM_PHYS_FUNC": ports, "NUM_QDMA": 1, "NUM_CMAC_PORT": ports}
    head = ", ".join(f"parameter int {name} = {value}" for name, value in parameters.items())
    return (
        f"module box_250mhz #({head}) (\n  " + ",\n  ".join(lines) + "\n);\n"
        "  wire internal_box_rstn = box_rstn;\n  assign box_rst_done = 1'b1;\n"
        '  `include "box_250mhz_address_map_inst.vh"\n  `include "user_plugin_250mhz_inst.vh"\nendmodule\n'
    )


def tcl(
    directory: Path, *, board: str = "au55c", ports: int = 1, functions: int | None = None, line: str = MENDED
) -> list[str]:
    """Returns the commands that build_box_250mhz.tcl gives to Vivado."""
    (directory / "utility").mkdir(exist_ok=True)
    (directory / "utility" / "axi_stream_packet_buffer.sv").write_text(f"    {line} begin\n")
    arguments = ["build_box_250mhz.tcl", board, str(ports), str(functions or ports), str(directory)]
    result = subprocess.run(
        ["tclsh", str(HERE / "vivado.tcl"), *arguments], cwd=SHELL, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def find(said: list[str], start: str) -> str:
    """Returns the only line with this start."""
    lines = [line for line in said if line.startswith(start)]
    assert len(lines) == 1, said
    return lines[0]


def defines(said: list[str]) -> list[str]:
    """Returns the macros with which the plugin is compiled."""
    words = find(said, "set_property verilog_define").replace("{", "").replace("}", "").split()
    assert words[2] == "verilog_define-before"  # the shell's own macros are kept
    return words[3:-1]


def sources(said: list[str]) -> list[Path]:
    """Returns the files that Vivado reads, in that order."""
    words = find(said, "read_verilog").replace("{", "").replace("}", "").split()
    assert words[1] == "-sv"
    return [Path(word) for word in words[2:]]


def test_tcl_reads_the_plugin(tmp_path: Path) -> None:
    said = tcl(tmp_path)
    files = sources(said)
    assert all(path.is_file() for path in files)
    assert len(set(files)) == len(files)
    packages = ["axi_pkg", "kv_frame_pkg", "kv_registers_pkg", "kv_core_pkg", "kv_engine_pkg", "kv_recovery_pkg",
                "kv_memory_pkg", "kv_tx_pkg"]  # fmt: skip
    assert [path.stem for path in files[: len(packages)]] == packages
    assert not [path for path in files[len(packages) :] if path.stem.endswith("_pkg")]
    assert {path.stem for path in files} >= {"kv_core", "kv_box_250mhz", "kv_box_hbm", "stream_fifo"}
    folders = {path.parent.relative_to(ROOT / "hdl") for path in files}
    assert {folder.parts[0] for folder in folders} == {"common", "kv", "opennic"}
    assert not {"tb", "formal", "ip"} & {part for folder in folders for part in folder.parts}
    assert find(said, "include_dirs") == f"include_dirs {ROOT}/hdl/common"
    constraints = [line.split()[-1] for line in said if line.startswith("read_xdc")]
    assert constraints == [str(path) for path in sorted((ROOT / "hdl" / "common").glob("*.xdc"))]
    assert [line for line in said if "used_in_synthesis" in line] == [
        f"set_property used_in_synthesis false file/{path}" for path in constraints
    ]


def test_tcl_minds_the_shells_sizes(tmp_path: Path) -> None:
    assert defines(tcl(tmp_path, line=MENDED)) == ["SYNTHESIS", "KV_BOX_CHANNELS=2", "KV_BOX_WHOLE_FRAMES"]
    said = tcl(tmp_path, line=FLAWED)
    assert defines(said) == ["SYNTHESIS", "KV_BOX_CHANNELS=2"]
    assert any(line.startswith("WARNING") for line in said)


def test_tcl_refuses_what_it_cannot_build(tmp_path: Path) -> None:
    for options in ({"board": "au280"}, {"ports": 2, "functions": 1}):
        with pytest.raises(AssertionError, match="The kv plugin"):
            tcl(tmp_path, **options)  # type: ignore[arg-type]


def test_tcl_makes_the_ip_that_is_instantiated(tmp_path: Path) -> None:
    said = tcl(tmp_path)
    assert find(said, "create_ip").endswith("-module_name kv_hbm_ip")
    config = find(said, "set_property -dict")
    on = set(re.findall(r"CONFIG\.USER_SAXI_(\d\d) true", config))
    assert len(re.findall(r"CONFIG\.USER_SAXI_\d\d (?:true|false)", config)) == 32
    stand_in = (ROOT / "hdl" / "opennic" / "ip" / "kv_hbm_ip.sv").read_text()
    assert on == set(re.findall(r"KV_HBM_IP_PORT\((\d\d)\)", stand_in))
    assert on == set(
        re.findall(r"KV_BOX_HBM_PORT\((\d\d), \d\)", (ROOT / "hdl" / "opennic" / "kv_box_hbm.sv").read_text())
    )


# For each cell: its constraints, and the registers that they name.
CONSTRAINTS = {
    "sync": ["set_false_path"],
    "reset_sync": ["set_false_path"],
    "cdc_bus": ["set_max_delay"],
    "cdc_fifo": ["set_bus_skew", "set_bus_skew", "set_max_delay"],
}


def test_every_cell_between_clocks_has_its_constraints() -> None:
    assert set(CONSTRAINTS) == {path.stem for path in (ROOT / "hdl" / "common").glob("*.xdc")}


@pytest.mark.parametrize("cell", CONSTRAINTS)
def test_constraints_are_tcl_and_name_registers_of_the_cell(cell: str) -> None:
    path = ROOT / "hdl" / "common" / f"{cell}.xdc"
    result = subprocess.run(["tclsh", str(HERE / "vivado.tcl"), str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()][:-1] == CONSTRAINTS[cell]
    text = path.with_suffix(".sv").read_text()
    for instance, register in re.findall(r"/(?:(i_\w+)/)?(\w+)_reg", path.read_text()):
        holder = text
        if instance:
            module = re.search(rf"(\w+) #\([^;]*?\) {instance} \(", text)
            assert module, instance
            holder = path.with_name(f"{module[1]}.sv").read_text()
        assert re.search(rf"\b{register}\b", holder), register


@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize("line", [FLAWED, MENDED], ids=["flawed", "mended"])
def test_the_plugin_fits_the_box(tmp_path: Path, ports: int, line: str) -> None:
    said = tcl(tmp_path, ports=ports, line=line)
    top = tmp_path / "box_250mhz.sv"
    top.write_text(box(ports))
    command = [
        str(VERILATOR / "verilator"),
        "--lint-only",
        "-Wall",
        f"-I{SHELL / 'box_250mhz'}",
        "--top-module",
        "box_250mhz",
    ]
    # Verilator takes signals of the module around an instance for an outer scope of that instance's functions.
    command += [
        "-Wno-VARHIDDEN",
        "-Wno-UNUSEDSIGNAL",
        "-Wno-UNUSEDPARAM",
        f"-I{ROOT / 'hdl' / 'common'}",
        "-D__au55c__",
    ]
    command += [f"-D{define}" for define in defines(said)]
    files = [str(path) for path in sources(said)]
    stand_in = str(ROOT / "hdl" / "opennic" / "ip" / "kv_hbm_ip.sv")
    result = subprocess.run([*command, str(top), *files, stand_in], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
