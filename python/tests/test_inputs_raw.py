# SPDX-License-Identifier: Apache-2.0
"""Raw streams through a real agent."""

from __future__ import annotations

import ctypes

import numpy as np
import pyarrow as pa
import pytest
from inputs import WAIT, Bench

import wherry

pytestmark = pytest.mark.agent


def test_raw_buffers_of_every_kind(bench: Bench) -> None:
    name = bench.name()
    numbers_ = np.arange(12, dtype="i4").reshape(3, 4)
    buffers = [
        b"bytes", bytearray(b"more"), memoryview(b"a view")[2:], pa.py_buffer(b"arrow"), b"", numbers_, numbers_.T,
        numbers_[::2, 1], np.array(["2026-01-01"], "M8[D]"), np.float64(1.5), (ctypes.c_int16 * 2)(1, 2),
    ]  # fmt: skip
    with bench.session.stream(name, strategy="raw") as stream:
        assert stream.schema is None
        stream.offload(buffers, tag=1).wait(WAIT)
        stream.offload([], tag=2).wait(WAIT)
        stream.offload(iter([b"x"]), tag=3).wait(WAIT)
    first, second, third = bench.read(name)
    wanted = [b.tobytes() if isinstance(b, np.ndarray | np.generic) else bytes(b) for b in buffers]
    assert first.batch["buffer"].to_pylist() == wanted
    assert first.source_bytes == sum(map(len, wanted))
    assert second.batch.num_rows == 0
    assert third.batch["buffer"].to_pylist() == [b"x"]


def test_what_a_raw_stream_refuses(bench: Bench) -> None:
    with bench.session.stream(bench.name(), strategy="raw") as stream:
        for one in (b"bytes", bytearray(3), np.zeros(3), "text", {"x": np.zeros(3)}):
            with pytest.raises(wherry.InvalidArgument, match="want a list of buffers"):
                stream.offload(one)
        for bad in ("text", 3, None, np.array([object()], dtype=object)):
            with pytest.raises(wherry.InvalidArgument, match=r"buffer 1, a .* has no bytes to move"):
                stream.offload([b"fine", bad])
