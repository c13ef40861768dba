# SPDX-License-Identifier: Apache-2.0
"""What the programs of the simulation do with their results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from jobs import built_rtl

PROGRAMS = {
    "shell/shell_bench": [],
    "card/dma_card_bench": ["--no-rates"],
    "dma/dma_data_bench": ["--only", "none"],
    "host_bypassing/host_bypassing_bench": ["--quick", "--only", "batching"],
}
"""Those that end soon, with the words of a short run."""


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
