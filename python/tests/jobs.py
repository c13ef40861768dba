# SPDX-License-Identifier: Apache-2.0
"""Runs jobs of `wherry run` for tests, and checks that no process or file of them remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from wherry.system import paths


def built(name: str) -> str:
    """A program of the release build. If it was not built, the test fails, so that no test is skipped silently."""
    root = paths.repository()
    assert root is not None
    program = root / "build" / "release" / "src" / name
    if not program.is_file():
        pytest.fail(f"{program} was not built: `make build`")
    return str(program)


def built_rtl(name: str) -> Path:
    """A program of the release build with the Verilated core. Skips if the build left the core out on purpose."""
    root = paths.repository()
    assert root is not None
    release = root / "build" / "release"
    program = release / "sim" / name
    if not program.is_file():
        if "WHERRY_RTL:BOOL=OFF" in (release / "CMakeCache.txt").read_text():
            pytest.skip("built with -DWHERRY_RTL=OFF: without the Verilated core")
        pytest.fail(f"{program} was not built: `make build`")
    return program


def eventually(condition: Callable[..., object], seconds: float = 80) -> bool:
    """Whether `condition` became true within `seconds`. The default is far longer than a busy machine needs, so it only
    ends waits that would never succeed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Jobs:
    """Runs `wherry run` in a private environment. Every process of the job has a mark in its environment variables."""

    def __init__(self) -> None:
        self.mark = f"MARK_OF_TEST={uuid.uuid4()}"
        self.temporary = Path(tempfile.mkdtemp(prefix="wrt-"))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("WHERRY_", "PMI_", "SLURM_"))}
        name, _, value = self.mark.partition("=")
        self.environment |= {
            name: value,
            "TMPDIR": str(self.temporary),
            "UCX_LOG_LEVEL": "fatal",
            "WHERRY_PROFILE": "off",
        }
        self.environment["PYTHONPATH"] = str(paths.PACKAGE.parent)  # this checkout, even if a package is installed
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.waits: dict[str, float] = {}
        """Replaces the launcher's waiting times (constant to seconds), for tests of events that occur during a wait."""

    def command(self, *words: str) -> list[str]:
        if not self.waits:
            return [sys.executable, "-m", "wherry", "run", *words]
        longer = "".join(f"launcher.{name} = {seconds}; " for name, seconds in self.waits.items())
        script = "import sys; from wherry import cli; from wherry.route import launcher; "
        script += f"{longer}sys.exit(cli.main(sys.argv[1:]))"
        return [sys.executable, "-c", script, "run", *words]

    def run(self, *words: str, timeout: float = 300, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.environment | more,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts `wherry run` in its own process session."""
        return subprocess.Popen(
            self.command(*words),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self, program: str = "") -> dict[int, str]:
        """The running processes with the mark whose command line contains `program`: pid to command line."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if self.mark.encode() in (entry / "environ").read_bytes() and program in line:
                    found[int(entry.name)] = line
            except OSError:
                continue  # it has just gone
        return found

    def expect_nothing_left(self) -> None:
        eventually(lambda: not self.processes() and not list(self.temporary.iterdir()))
        assert self.processes() == {}
        assert list(self.temporary.iterdir()) == []

        def mine() -> set[str]:
            # Memory of killed ranks stays in this user's directory until the user's next process removes it
            # (test_soak.py). The other names belong to tests that run in parallel.
            others = (f"wherry-{os.getuid()}", "wherry-bench-", "wherry-lammps-", "wherry-sink-test-")
            new = set(os.listdir("/dev/shm")) - self.shared_memory
            return {name for name in new if "wherry" in name and not name.startswith(others)}

        eventually(lambda: not mine())
        assert mine() == set()

    def clean_up(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        subprocess.run(["rm", "-rf", str(self.temporary)], check=True)
