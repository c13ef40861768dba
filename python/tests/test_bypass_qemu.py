# SPDX-License-Identifier: Apache-2.0
"""The bypass card behind QEMU's NICs, which are DMA engines that were written independently.
docs/design/bypass-qemu.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import eventually

from wherry.system import paths

FRAMES = 1000
EVENTS = ("orderly reset", "reset in mid-traffic", "link off and on", "removal and a new NIC")
WAYS = ("in place", "by the stream")


def program() -> str:
    root = paths.repository()
    assert root is not None
    found = root / "build" / "release" / "sim" / "qemu" / "bypass_qemu"
    if not found.is_file():
        pytest.fail(f"{found} was not built: `make build`")
    return str(found)


def newer_qemu() -> str:
    """The path of QEMU 10, which tools/qemu-backports.sh unpacks."""
    root = paths.repository()
    assert root is not None
    qemu = root / ".venv" / "qemu-backports" / "usr" / "bin" / "qemu-system-x86_64"
    if not qemu.is_file():
        pytest.skip("no QEMU with igb: tools/qemu-backports.sh unpacks one")
    return str(qemu)


def run(figures: Path, *arguments: str) -> dict[str, Any]:
    """Runs the program and returns its figures. A failure shows the program's output."""
    line = [program(), "--json", str(figures), *arguments]
    done = subprocess.run(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    read: dict[str, Any] = json.loads(figures.read_text())
    return read


def check(figures: dict[str, Any], nic: str, core: str = "twin") -> None:
    assert (figures["nic"], figures["card"]) == (nic, core)
    assert figures["good"]
    assert (figures["frames_wrong"], figures["frames_lost"], figures["tx_writebacks"]) == (0, 0, 0)
    phases = {phase["name"]: phase for phase in figures["phases"]}
    for way in WAYS:
        assert phases[way]["sent"] == FRAMES / 2
        assert phases[way]["returned"] == phases[way]["replies"] > FRAMES / 2 * 0.9
        for event in EVENTS:
            assert phases[f"{event}, {way}"]["balanced"]
            after = phases[f"after {event}, {way}"]
            assert after["returned"] == after["replies"] > 0
    # The rings of 64 descriptors wrapped many times, and no frame arrived in a wrong place.
    assert figures["counters"]["rx_frames"] > FRAMES
    assert figures["counters"]["rx_damaged"] == figures["counters"]["rx_too_long"] == 0


@pytest.mark.timeout(300)
def test_e1000e_echoes_every_frame_and_survives_what_happens_to_it(tmp_path: Path) -> None:
    figures = run(tmp_path / "figures", "--frames", str(FRAMES))
    check(figures, "e1000e")
    assert figures["qemu"].startswith("QEMU emulator version")


@pytest.mark.timeout(600)
def test_e1000e_and_the_rtl_echo_every_frame_and_survive_what_happens(tmp_path: Path) -> None:
    check(run(tmp_path / "figures", "--core", "rtl", "--frames", str(FRAMES)), "e1000e", "rtl")


@pytest.mark.may_lack  # Debian 12's QEMU has no igb
@pytest.mark.timeout(600)
def test_igb_and_the_rtl_echo_every_frame_and_survive_what_happens(tmp_path: Path) -> None:
    line = ["--core", "rtl", "--frames", str(FRAMES), "--nic", "igb", "--qemu", newer_qemu()]
    check(run(tmp_path / "figures", *line), "igb", "rtl")


@pytest.mark.may_lack  # Debian 12's QEMU has no igb
@pytest.mark.timeout(300)
def test_igb_echoes_every_frame_and_survives_what_happens_to_it(tmp_path: Path) -> None:
    check(run(tmp_path / "figures", "--frames", str(FRAMES), "--nic", "igb", "--qemu", newer_qemu()), "igb")


@pytest.mark.may_lack  # Debian 12's QEMU cannot send a frame from several buffers
@pytest.mark.timeout(300)
def test_e1000e_of_a_newer_qemu_sends_long_frames_whole(tmp_path: Path) -> None:
    figures = run(tmp_path / "figures", "--frames", "200", "--no-events", "--qemu", newer_qemu())
    assert all(phase["returned"] == phase["sent"] == phase["replies"] for phase in figures["phases"])
    assert all(phase["refused"] == 0 for phase in figures["phases"])


def refused(*arguments: str) -> str:
    done = subprocess.run([program(), *arguments], text=True, capture_output=True, check=False)
    assert done.returncode != 0
    return done.stderr


def test_without_qemu_expect_what_to_install() -> None:
    said = refused("--qemu", "/no/such/qemu")
    assert "/no/such/qemu" in said
    assert "apt-get install --no-install-recommends qemu-system-x86" in said


def test_a_program_that_is_not_qemu_expect_its_words() -> None:
    assert "is no QEMU: it says" in refused("--qemu", "cat")


def test_qemu_without_the_nic_expect_where_to_get_one() -> None:
    version = subprocess.run(["qemu-system-x86_64", "--version"], text=True, capture_output=True, check=True).stdout
    if not version.startswith("QEMU emulator version 7."):
        pytest.skip("this machine's QEMU is not Debian 12's")
    said = refused("--nic", "igb")
    assert "has no NIC 'igb'" in said
    assert "tools/qemu-backports.sh" in said


def children(pid: int) -> list[int]:
    """Of all threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A run that would take hours, once its traffic has started, and the pid of its QEMU."""
    with subprocess.Popen(
        [program(), "--frames", "100000000"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert eventually(lambda: len(children(process.pid)) == 1 and busy(children(process.pid)[0]))
        yield process, children(process.pid)[0]
        process.kill()


def busy(qemu: int) -> bool:
    """Whether `qemu` is the QEMU of the run, not one that only prints its version."""
    try:
        return b"x-pci-proxy-dev" in Path(f"/proc/{qemu}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_in_the_middle_expect_no_qemu_and_no_file_left(
    running: tuple[subprocess.Popen[str], int], tmp_path: Path, number: signal.Signals
) -> None:
    process, qemu = running
    process.send_signal(number)
    process.wait(timeout=20)
    assert eventually(lambda: ended(qemu))
    assert list(tmp_path.iterdir()) == []


def test_qemu_is_killed_in_the_middle_expect_an_error(running: tuple[subprocess.Popen[str], int]) -> None:
    process, qemu = running
    os.kill(qemu, signal.SIGKILL)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "has ended with status 137" in said
