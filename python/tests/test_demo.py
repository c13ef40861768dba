# SPDX-License-Identifier: Apache-2.0
"""`wherry demo`: the results that it reports as right are right. test_wheel.py runs the whole demo from a wheel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wherry.errors import Error
from wherry.move.tour import frames


def posted(count: int, wrong: int | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The frames of a round, computed in another way than frames.compute(): x = sqrt(first + step)."""
    base = np.random.default_rng(1).random((len(frames.NAMES), frames.ROWS))
    for step in range(count):
        columns = {name: np.zeros(frames.ROWS) for name in frames.NAMES}
        frames.compute(columns, base, step)
        for column, first in zip(columns.values(), base, strict=True):
            assert np.allclose(column, np.sqrt(first + step))
        if step == wrong:
            columns["y"][frames.ROWS // 2] = np.nextafter(columns["y"][frames.ROWS // 2], 9)
        yield step, pa.RecordBatch.from_pydict(columns)


@pytest.fixture
def base() -> np.ndarray:
    return np.random.default_rng(1).random((len(frames.NAMES), frames.ROWS))


def test_frames_that_were_posted_are_right(base: np.ndarray) -> None:
    assert frames._check("Wherry", posted(frames.FRAMES), base) == frames.FRAMES * frames.FRAME_BYTES


def test_one_bit_that_differs_is_an_error(base: np.ndarray) -> None:
    with pytest.raises(Error, match="column y of frame 5 is not what was posted"):
        frames._check("Wherry", posted(frames.FRAMES, wrong=5), base)


def test_a_frame_that_is_missing_is_an_error(base: np.ndarray) -> None:
    with pytest.raises(Error, match="23 frames came back"):
        frames._check("Wherry", posted(frames.FRAMES - 1), base)


@pytest.mark.parametrize(
    ("wherry", "put", "said"),
    [
        (1e-4, 2.5e-3, "Flight's DoPut takes 25 times as much"),
        (3e-3, 1e-3, "here Wherry takes 3 times as much"),
        (1e-3, 1e-3, "the same time"),
    ],
)
def test_the_sentence_says_which_way_took_less(wherry: float, put: float, said: str) -> None:
    assert said in frames.sentence(wherry, put)


def test_an_unknown_part_is_an_error_that_names_the_parts() -> None:
    line = [sys.executable, "-m", "wherry", "demo", "moove"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": "python"})
    assert done.returncode == 1
    assert "'moove' is not a part of the demonstration: there are move, route, kv" in done.stderr


def test_ctrl_c_ends_it_and_what_it_has_started(tmp_path: Path, wherryd: Path) -> None:
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)}
    line = [sys.executable, "-m", "wherry", "demo", "kv"]
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("*/cluster/up.json")):  # all nodes serve
            assert demo.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        demo.send_signal(signal.SIGINT)
        said = demo.communicate(timeout=60)
    # The demo may have ended before the signal; then it has passed.
    assert demo.returncode in (0, 130), said
    assert "Traceback" not in said[1]
    deadline = time.monotonic() + 30
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not list(tmp_path.iterdir()), "its files are still there"
