# SPDX-License-Identifier: Apache-2.0
"""probe's device paths in a Linux guest with QEMU's edu and ivshmem, and Soft-RoCE. docs/guide/probe-devices.md."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from wherry.system import paths

LACKING = 77  # exit status of tools/guest/probe.py
FLIPPED = 12345  # byte of the shared memory that tools/guest/probe.py changes


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one run. Its guest is built from packages that are cached in build/guest."""
    root = paths.repository()
    assert root is not None
    file = tmp_path_factory.mktemp("guest") / "report.json"
    line = [sys.executable, "tools/guest/probe.py", "--json", str(file)]
    done = subprocess.run(line, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == LACKING:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout
    read: dict[str, Any] = json.loads(file.read_text())
    return read


pytestmark = [
    pytest.mark.may_lack,  # needs a Debian mirror, and 72 MB of packages
    pytest.mark.timeout(1800),
]


def test_each_device_path_of_the_guest_expect_every_byte_verified(report: dict[str, Any]) -> None:
    assert report["wrong"] == []
    verified = {line.partition(":")[0] for line in report["right"]}
    sides = [f"verbs.{verb}{side}" for verb in ("read", "write") for side in ("", ".device")]
    assert verified >= {"pci.config", "mmio.bar.wc", "mmio.ivshmem.write", "edu.h2c", "edu.c2h", *sides}


def test_one_byte_flipped_from_outside_expect_the_guest_names_it(report: dict[str, Any]) -> None:
    assert report["results"]["host_compared"] == "0"
    assert report["wrong_lines"] == [f"compare: 1 bytes differ, the first at {FLIPPED}"]


def test_memory_switched_off_expect_the_path_is_absent_and_says_what_to_do(report: dict[str, Any]) -> None:
    assert report["results"]["switched_off"] == "2"
    assert "enable" in report["absent"]["mmio.bar.read"]


def test_the_report_expect_it_says_that_its_times_are_not_the_paths(report: dict[str, Any]) -> None:
    assert "TCG" in report["how"]["processor"]
