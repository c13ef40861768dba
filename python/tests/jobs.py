# SPDX-License-Identifier: Apache-2.0
"""Jobs of `wherry run` for tests, and their remains."""

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
    """A program of the release build, or a failure: nothing is skipped silently."""
    root = paths.repository()
    assert root is not None
    program = root / "build" / "release" / "src" / name
    if not program.is_file():
        pytest.fail(f"{program} was not built: `make build`")
    return str(program)


def built_rtl(name: str) -> Path:
    """A program of the release build with the Verilated core in it. Skips where that was left out on purpose."""
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
    """Whether it came to hold. `seconds` limits only waits for things that never happen, and is far more than a busy
    machine needs."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Jobs:
    """Runs `wherry run` in private surroundings. Every process of the job has a mark in its environment."""

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
        self.environment["PYTHONPATH"] = str(paths.PACKAGE.parent)  # this checkout, whatever is installed
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.waits: dict[str, float] = {}
        """The launcher's waiting times in seconds, by its constants: for tests of events meanwhile."""

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
        """In a session of its own."""
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
        """Command lines by pid of marked running processes whose command line contains `program`."""
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
            # Those of killed ranks lie in this user's directory until its next process clears up (test_soak.py).
            # And these are of tests that run beside.
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
