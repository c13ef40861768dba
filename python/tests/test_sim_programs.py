# SPDX-License-Identifier: Apache-2.0
"""How the simulation programs handle their results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from jobs import built_rtl

PROGRAMS = {
    "shell/shell_bench": [],
    "card/dma_card_bench": ["--no-rates"],
    "dma/dma_data_bench": ["--only", "h2c_4k_depth2"],
    "host_bypassing/host_bypassing_bench": ["--quick", "--only", "batching"],
}
"""Programs that end soon, with the arguments of a short run."""


NAMES = {
    "kv_rtl_bench": (["--only", "nosuch"], "line_rate"),
    "kv_core_differential": (["--fault", "nosuch"], "forget_unsettled"),
    "kv_sim_mixed": (["--trouble", "nosuch"], "keeper_death"),
    "kv_sim_bypass": (["--fault", "nosuch"], "serve_incomplete"),
    "shell/shell_bench": (["--set", "nosuch=1"], "flight"),
    "designs/designs_bench": (["--part", "nosuch"], "firmwares"),
    "dma/dma_data_bench": (["--only", "nosuch"], "h2c_4k_depth1"),
    "bypass/bypass_rtl_bench": (["--only", "nosuch"], "overload_function_stream"),
    "bypass/bypass_rtl_bench_small": (["--only", "rates", "--only", "nosuch"], "cycles"),
    "host_bypassing/host_bypassing_bench": (["--only", "nosuch"], "batching"),
    "pcie/pcie_bench": (["nosuch"], "packets"),
    "qemu/bypass_qemu": (["--nic", "nosuch"], "e1000e"),
    "demo/bypass_demo": (["--core", "nosuch"], "twin"),
}
"""Programs that take names as arguments: arguments with an unknown name, and a known name that the error must list."""


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_name_is_a_wrong_command_line_that_tells_the_known_ones(name: str) -> None:
    words, known = NAMES[name]
    program = str(built_rtl(name))
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert known in done.stderr
    assert "nosuch" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_result_that_cannot_be_written_is_an_error(name: str, tmp_path: Path) -> None:
    program = str(built_rtl(name))
    lost = subprocess.run(
        [program, *PROGRAMS[name], "--json", "/dev/full"], capture_output=True, text=True, timeout=300, check=False
    )
    assert lost.returncode == 1
    assert lost.stderr.splitlines()[-1] == f"{Path(name).name}: cannot write /dev/full"
    file = tmp_path / "found.json"
    subprocess.run([program, *PROGRAMS[name], "--json", file], capture_output=True, timeout=300, check=True)
    assert isinstance(json.loads(file.read_text()), dict)
