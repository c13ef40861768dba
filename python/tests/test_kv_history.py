# SPDX-License-Identifier: Apache-2.0
"""The judge of kv histories accepts the history of a correct store, and detects those of incorrect stores:
docs/project/kv-testing.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "build" / "release" / "src" / "kv_sim_reference"
JUDGE = ROOT / "build" / "linearizable"
SEEDS = 50


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    if not REFERENCE.exists():
        pytest.fail(f"{REFERENCE} was not built: `make build`")
    subprocess.run([ROOT / "tools" / "linearizable" / "build"], check=True, timeout=200)


def histories(flaw: str, folder: Path, *options: str, last: int = SEEDS) -> list[Path]:
    command: list[str | Path] = [REFERENCE, flaw, "1", str(last), folder, *options]
    subprocess.run(command, check=True, timeout=200, stdout=subprocess.DEVNULL)
    return [folder / f"{flaw}-{seed}.jsonl" for seed in range(1, last + 1)]


def judge(*files: Path, timeout: str = "30s") -> tuple[int, str]:
    done = subprocess.run([JUDGE, "--timeout", timeout, *files], capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout + done.stderr


def test_a_right_store_is_accepted(tmp_path: Path) -> None:
    code, output = judge(*histories("none", tmp_path))
    assert code == 0, output
    assert output.count(": linearizable; 600 operations, 7 keys") == SEEDS


@pytest.mark.parametrize("flaw", ["stale", "lost", "duplicate"])
def test_a_wrong_store_is_found_out(tmp_path: Path, flaw: str) -> None:
    files = histories(flaw, tmp_path)
    code, output = judge(*files)
    assert code == 1
    assert output.count("NOT linearizable") > SEEDS // 2
    assert output.count("out of time") == 0
    assert "!! client" in output
    assert "<html" in next(iter(tmp_path.glob("*.html"))).read_text()


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        (file,) = histories("none", folder, "pcap", last=1)
        written.append((file.read_bytes(), file.with_suffix(".pcap").read_bytes()))
    assert written[0] == written[1]
    assert written[0][1][:4] == b"\x4d\x3c\xb2\xa1"


def test_no_time_is_no_verdict(tmp_path: Path) -> None:
    code, output = judge(*histories("none", tmp_path, last=1), timeout="1ns")
    assert code == 2
    assert "unknown, out of time" in output


def test_a_file_that_is_no_history_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"client": 1}\n')
    code, output = judge(broken)
    assert code == 3
    assert f"{broken}: line 1: " in output
