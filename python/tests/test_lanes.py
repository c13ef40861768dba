# SPDX-License-Identifier: Apache-2.0
"""tools/lanes.sh, with which `make test` runs its parts."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from wherry.system import paths

LANES = paths.PACKAGE.parent.parent / "tools" / "lanes.sh"
MAKEFILE = """
one: ; @echo one && until [ -e two.there ]; do sleep 0.05; done
two: ; @echo two && touch two.there
three: ; @echo three
broken: ; @exit 3
bad: ; @echo bad && until [ -e long.pid ]; do sleep 0.05; done && exit 3
long: ; @echo $$$$ >long.new && mv long.new long.pid && sleep 600
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    return tmp_path


def lanes(*targets: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LANES, "logs", *targets], capture_output=True, text=True, timeout=60, check=False)


def test_lanes_run_at_the_same_time_and_a_lane_in_order() -> None:
    done = lanes("one", "two three")  # command "one" waits for "two"
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["lane 2:", "two", "three"]
    assert done.stdout.count("one\n") == 1


@pytest.mark.parametrize("targets", [("long", "bad"), ("bad", "long"), ("three", "long", "two bad three")])
def test_a_lane_that_fails_ends_the_others(place: Path, targets: tuple[str, ...]) -> None:
    done = lanes(*targets)
    assert done.returncode == 2
    assert "bad\n" in done.stdout
    assert f"lane {1 + [('bad' in lane) for lane in targets].index(True)} failed" in done.stderr
    assert "two\nbad\n" in done.stdout or len(targets) == 2
    shell = int((place / "long.pid").read_text())
    deadline = time.monotonic() + 60
    while Path(f"/proc/{shell}").exists():
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.05)


def test_an_end_from_outside_ends_all(place: Path) -> None:
    with subprocess.Popen([LANES, "logs", "long", "three"], stdout=subprocess.DEVNULL) as one:
        while not (place / "long.pid").exists():
            assert one.poll() is None
            time.sleep(0.05)
        one.terminate()
        assert one.wait(timeout=60) == 130
    shell = int((place / "long.pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(shell, 0)


@pytest.mark.parametrize("flags", ["k", "ks -- X=1"])
def test_within_make_k_all_lanes_go_on(monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    monkeypatch.setenv("MAKEFLAGS", flags)
    done = lanes("broken three", "two")
    assert done.returncode == 2
    assert "three\n" in done.stdout, "what follows in the failed lane"
    assert done.stdout.endswith("lane 2:\ntwo\n"), "what another lane prints"
    assert "lane 1 failed; the others go on" in done.stderr
