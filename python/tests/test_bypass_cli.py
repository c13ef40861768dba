# SPDX-License-Identifier: Apache-2.0
"""`wherry bypass` on simulated sysfs trees: its findings, output and exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs import built, eventually

from wherry.bypass import programs
from wherry.system import paths

WINDOW = 0x38_0000_0000


@dataclass
class Machine:
    """The sysfs tree of a machine with an 82599 NIC and a card behind a switch."""

    root: Path
    acs: int = 0
    card_bytes: int = 16 << 20
    groups: tuple[int | None, int | None] = (10, 11)
    card: str = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0"
    drivers: dict[str, str] = field(default_factory=dict)

    def build(self) -> Path:
        """The tree."""
        (self.root / "bus/pci/devices").mkdir(parents=True)
        for port, kind in (
            ("pci0000:00/0000:00:01.0", 4),
            ("pci0000:00/0000:00:02.0", 4),
            ("pci0000:00/0000:00:01.0/0000:01:00.0", 5),
            ("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0", 6),
            ("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0", 6),
        ):
            config = self._config(kind)
            config[0x0E] = 1
            struct.pack_into("<HHHHII", config, 0x20, 0xE000, 0xE0F0, 0x0001, 0x0FF1, 0x38, 0x38)
            if kind == 6:
                struct.pack_into("<IHH", config, 0x100, 0x0001000D, 0x5F, self.acs)
            self._function(port, 0x10B5, 0x8747, 0x060400, config, "", None)
        nic = self._config(0)
        struct.pack_into("<I", nic, 0x10, 0xE0000000)
        line = "0x{:016x} 0x{:016x} 0x{:016x}\n".format
        path = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0"
        self._function(path, 0x8086, 0x10FB, 0x020000, nic, line(0xE0000000, 0xE007FFFF, 0x40200), self.groups[0])
        card = self._config(0)
        struct.pack_into("<IIII", card, 0x10, 0xE0100000, 0, WINDOW & 0xFFFFFFFF | 0xC, WINDOW >> 32)
        bars = line(0xE0100000, 0xE010FFFF, 0x40200) + line(0, 0, 0)
        bars += line(WINDOW, WINDOW + self.card_bytes - 1, 0x14220C)
        self._function(self.card, 0x10EE, 0x903F, 0x058000, card, bars, self.groups[1])
        return self.root

    @staticmethod
    def _config(kind: int) -> bytearray:
        config = bytearray(4096)
        struct.pack_into("<H", config, 0x06, 0x10)
        config[0x34] = 0x40
        struct.pack_into("<HH", config, 0x40, 0x0010, 2 | kind << 4)
        return config

    def _function(
        self, path: str, vendor: int, device: int, kind: int, config: bytearray, bars: str, group: int | None
    ) -> None:
        place = self.root / "devices" / path
        place.mkdir(parents=True, exist_ok=True)
        for name, text in (("vendor", f"0x{vendor:04x}"), ("device", f"0x{device:04x}"), ("class", f"0x{kind:06x}")):
            (place / name).write_text(text + "\n")
        (place / "config").write_bytes(config)
        (place / "resource").write_text(bars)
        (self.root / "bus/pci/devices" / place.name).symlink_to(place)
        if group is not None:
            group_place = self.root / "kernel/iommu_groups" / str(group)
            group_place.mkdir(parents=True, exist_ok=True)
            (group_place / "reserved_regions").write_text("0xfee00000 0xfeefffff msi\n")
            (place / "iommu_group").symlink_to(group_place)


def program(name: str, sysfs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the program directly, because `wherry bypass` has no option for another /sys."""
    command = [built("wherry-bypass"), name, "--sysfs", str(sysfs), "--directory", str(sysfs / "run"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def probe(sysfs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `probe`, the only command that does not change anything."""
    return program("probe", sysfs, *words)


def answer(done: subprocess.CompletedProcess[str], command: str, status: int, cause: str) -> dict[str, Any]:
    """Checks the first fields of a --json output, which are the same for every outcome (docs/guide/bypass-host.md, "For
    programs"); returns the output."""
    document: dict[str, Any] = json.loads(done.stdout)
    assert list(document)[:4] == ["command", "exit_status", "cause", "error"], document
    assert done.returncode == status, done.stderr
    assert [document[key] for key in ("command", "exit_status", "cause")] == [command, status, cause]
    assert (document["error"] is None) == (status == 0)
    return document


def verdict(sysfs: Path) -> tuple[int, dict[str, Any]]:
    """The exit status and the JSON output of `probe`."""
    done = probe(sysfs, "--json")
    return done.returncode, json.loads(done.stdout)


def test_a_direct_way_is_found(tmp_path: Path) -> None:
    sysfs = Machine(tmp_path / "sys").build()
    status, document = verdict(sysfs)
    assert status == 0
    assert document["path"]["route"] == "direct"
    assert document["path"]["common_port"] == "0000:01:00.0"
    assert document["nics"][0]["model"] == "82599 SFP+"
    assert document["nics"][0]["driven"]
    assert document["verdict"]["cause"] == "none"
    said = probe(sysfs).stdout
    assert "direct, below port 0000:01:00.0" in said
    assert "No data was moved" in said


def test_causes_are_told_apart(tmp_path: Path) -> None:
    machines = {
        11: Machine(tmp_path / "acs", acs=0x1D),
        10: Machine(tmp_path / "root", card="pci0000:00/0000:00:02.0/0000:04:00.0"),
        15: Machine(tmp_path / "iommu", groups=(None, None)),
    }
    for status, machine in machines.items():
        said = probe(machine.build())
        assert said.returncode == status, said.stdout + said.stderr
    document = verdict(tmp_path / "acs")[1]
    assert document["verdict"]["status"] == 11
    assert "pci=disable_acs_redir=0000:00:01.0/00.0/00.0;0000:00:01.0/00.0/01.0" in document["verdict"]["remedy"]


def test_a_machine_without_hardware_says_so_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/devices").mkdir(parents=True)
    done = probe(tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "no NIC" in done.stderr
    assert probe(tmp_path / "nothing").returncode == 3


def test_a_small_card_is_none(tmp_path: Path) -> None:
    done = probe(Machine(tmp_path, card_bytes=1 << 20).build())
    assert done.returncode == 3
    assert "82599" in done.stdout, "the NIC is there"
    named = probe(tmp_path, "--card", "0000:04:00.0")
    assert named.returncode == 12


def test_wrong_words_end_with_2(tmp_path: Path) -> None:
    sysfs = Machine(tmp_path).build()
    for words in (("--nic", "eth0"), ("--card", "0000:03:00.8")):
        assert probe(sysfs, *words).returncode == 2, words


NOT_THERE, KNOWN, OTHER = "0000:09:00.0", "0000:03:00.0", "0000:04:00.0"
"""PCI addresses in Machine: of no function, of the NIC, of the card."""


def test_what_is_not_there_ends_with_3_and_says_so_to_programs(tmp_path: Path) -> None:
    sysfs = Machine(tmp_path).build()
    for name in ("probe", "up", "status", "down"):
        document = answer(program(name, sysfs, "--nic", NOT_THERE, "--json"), name, 3, "no_hardware")
        assert NOT_THERE in document["error"]
    for name in ("probe", "up"):
        document = answer(program(name, sysfs, "--card", NOT_THERE, "--json"), name, 3, "no_hardware")
        assert document["nics"][0]["address"] == KNOWN, "what there is"
        document = answer(program(name, sysfs, "--nic", OTHER, "--json"), name, 3, "no_hardware")
        assert "is not a NIC that bypass knows" in document["error"]
        answer(program(name, tmp_path / "nothing", "--json"), name, 3, "no_hardware")


def test_programs_are_answered_alike_whatever_comes_of_a_command(tmp_path: Path) -> None:
    sysfs = Machine(tmp_path / "sys").build()
    assert answer(program("probe", sysfs, "--json"), "probe", 0, "none")["path"]["route"] == "direct"
    redirected = Machine(tmp_path / "acs", acs=0x1D).build()
    for name in ("probe", "up"):
        document = answer(program(name, redirected, "--json"), name, 11, "acs_redirect")
        assert document["error"] == document["verdict"]["what"]
    for name in ("probe", "up", "status", "down"):
        answer(program(name, sysfs, "--nic", "eth0", "--json"), name, 2, "wrong_command_line")
    assert answer(program("status", sysfs, "--json"), "status", 3, "no_hardware")["driven"] == []
    for words in ((), ("--nic", KNOWN)):
        assert answer(program("down", sysfs, "--json", *words), "down", 0, "none")["given_back"] == []
    record = sysfs / "run" / f"{KNOWN}.json"
    record.parent.mkdir()
    record.write_text("{}")
    for name in ("status", "down"):
        assert str(record) in answer(program(name, sysfs, "--nic", KNOWN, "--json"), name, 1, "failed")["error"]
    record.write_text(json.dumps({"pid": 1 << 22, "started": 1, "nic": KNOWN, "card": OTHER, "lent": []}))
    document = answer(program("status", sysfs, "--json"), "status", 1, "failed")
    assert [(one["nic"], one["error"]) for one in document["driven"]] == [(KNOWN, document["error"])]
    document = answer(program("down", sysfs, "--json"), "down", 0, "none")
    assert document["given_back"] == [{"nic": KNOWN, "card": OTHER, "driver": "", "error": None, "mended": []}]


def test_a_program_that_cannot_be_started_is_an_answer_too(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    for name in ("probe", "up", "status", "down"):
        for path in (broken, tmp_path / "nothing"):
            document = answer(command(name, "--json", of=str(path)), name, 1, "failed")
            assert str(path) in document["error"]


def command(*words: str, of: str = "") -> subprocess.CompletedProcess[str]:
    """Runs `wherry bypass` with the program of this build, or with the program `of`."""
    environment = os.environ | {"WHERRY_BYPASS": of or built("wherry-bypass")}
    whole = [sys.executable, "-m", "wherry", "bypass", *words]
    return subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_line_passes_words_and_status_on(tmp_path: Path) -> None:
    assert "Exit status" in command("--help").stdout
    assert command("up", "--frame-bytes", "12").returncode == 2
    assert command("up", "--pairs", "17").returncode == 2
    assert subprocess.run([programs.host(), "up", "--pairs", "0"], capture_output=True, check=False).returncode == 2
    for wrong in (
        ("--function", "kv"),
        ("--function", "echo"),
        ("--function", "filter", "--rule", "pass:arp:1"),
        ("--ip", "1.2.3.4"),
    ):
        refused = command("up", *wrong, "--directory", str(tmp_path))
        assert refused.returncode == 2, wrong
    assert "--function" in refused.stderr
    nothing = command("status", "--directory", str(tmp_path))
    assert nothing.returncode == 3
    assert "wherry bypass up" in nothing.stderr
    assert command("down", "--directory", str(tmp_path)).returncode == 0
    assert command("probe", "--nic", "eth0").returncode in (2, 3)  # 3: the machine has no card, which is checked first


def test_down_mends_what_a_killed_process_left(tmp_path: Path) -> None:
    """Here the functions no longer exist. The C++ tests, with a fake kernel, cover functions that are still bound."""
    record = {"pid": 1 << 22, "started": 1, "nic": "0000:03:00.0", "card": "0000:04:00.0", "lent": []}
    (tmp_path / "0000:03:00.0.json").write_text(json.dumps(record))
    ended = command("status", "--directory", str(tmp_path))
    assert ended.returncode == 1
    assert "wherry bypass down" in ended.stderr
    assert command("down", "--directory", str(tmp_path)).returncode == 0
    assert not list(tmp_path.glob("*.json"))


def test_ctrl_c_ends_the_program_and_the_command(tmp_path: Path) -> None:
    """On Ctrl-C the command waits for the program, which gives the functions back. This fake program never ends by
    itself."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\ntrap 'exit 0' INT\necho ready\nwhile :; do sleep 0.1; done\n")
    sleeper.chmod(0o755)
    whole = [sys.executable, "-m", "wherry", "bypass", "up"]
    environment = os.environ | {"WHERRY_BYPASS": str(sleeper)}
    with subprocess.Popen(whole, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 0


def test_ctrl_c_ends_a_program_that_was_stopped(tmp_path: Path) -> None:
    """If `up` was stopped (SIGSTOP), Ctrl-C still gives both functions back."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\ntrap 'exit 0' INT\necho $$\nwhile :; do sleep 0.1; done\n")
    sleeper.chmod(0o755)
    whole = [sys.executable, "-m", "wherry", "bypass", "up"]
    environment = os.environ | {"WHERRY_BYPASS": str(sleeper)}
    with subprocess.Popen(whole, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        assert eventually(lambda: " T " in Path(f"/proc/{pid}/stat").read_text())
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 0


def test_documentation_names_every_status_and_cause() -> None:
    root = paths.repository()
    assert root is not None
    page = (root / "docs" / "guide" / "bypass-host.md").read_text()
    causes = (root / "src" / "bypass" / "cause.hpp").read_text()
    names = re.findall(r'return "(\w+)"', causes)
    assert len(names) == len(re.findall(r"^  k\w+ = \d+,", causes, re.MULTILINE)) > 10
    assert not [name for name in [*names, "failed", "wrong_command_line"] if f"`{name}`" not in page]
    for status in (1, 2, *re.findall(r"^  k\w+ = (\d+),", causes, re.MULTILINE)):
        assert f"\n| {status} |" in page, status
