# SPDX-License-Identifier: Apache-2.0
"""`wherry-bypass` in a Linux guest with an IOMMU, QEMU's NIC and the Verilated core. docs/guide/bypass-host.md."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from wherry.system import paths

FRAMES = 100
LACKING = 77  # exit status of tools/guest/run.py


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The figures of one run. Its guest is built from packages that are cached in build/guest."""
    root = paths.repository()
    assert root is not None
    file = tmp_path_factory.mktemp("guest") / "figures.json"
    line = [sys.executable, "tools/guest/run.py", "--frames", str(FRAMES), "--json", str(file)]
    done = subprocess.run(line, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == LACKING:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
    read: dict[str, Any] = json.loads(file.read_text())
    return read


pytestmark = [
    pytest.mark.may_lack,  # needs a Debian mirror, and 71 MB of packages
    pytest.mark.timeout(1800),
]


def test_a_stopped_program_expect_the_card_answers_and_no_time_is_used(figures: dict[str, Any]) -> None:
    turns = {turn["name"]: turn for turn in figures["turns"]}
    assert figures["guest_frames_while_stopped"] == turns["echo_stopped"]["sent"] == FRAMES
    assert (figures["results"]["stopped_state"], figures["results"]["stopped_ticks"]) == ("T", "0")
    assert figures["guest_frames_wrong"] == 0


def test_set_up_expect_less_than_a_minute(figures: dict[str, Any]) -> None:
    # The threshold is 30 times the usual time, so that a busy machine meets it, too.
    assert figures["guest_setup_s"] <= 60


def test_after_each_end_expect_the_kernels_driver_passes_traffic(figures: dict[str, Any]) -> None:
    assert figures["wrong"] == []
    assert figures["pings"] >= 4 * 3  # four times three, plus ARP requests
    # The card is reset when its program is killed, so no frame inside it may be sent.
    assert {turn["uninvited"] for turn in figures["turns"]} == {0}
    assert not figures["mapped_after_down"]
