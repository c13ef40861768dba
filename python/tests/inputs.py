# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of Stream.offload: a session, both ways to read the delivered frames, and numpy arrays."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from agents import Agent

import wherry

STRATEGIES = ["arrays", "record_batch", "ipc", "ipc_page_aligned", "c_abi"]
WAIT = 120.0  # seconds: far longer than any step of these tests


class Bench:
    """One session with one agent, and both ways to read its delivered frames."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.file = agent.session_file
        self.session = wherry.Session(str(self.file))
        self.client, self.options = wherry.flight_client(self.file)
        self._names = (f"s{i}" for i in itertools.count())

    def name(self) -> str:
        return next(self._names)

    def read(self, name: str) -> list[wherry.move.Frame]:
        """All frames, as a process on the same machine reads them. Checks that a Flight client reads the same."""
        with wherry.open(name, self.file, follow=False, timeout=WAIT) as reader:
            frames = list(reader)
        far = list(wherry.flight_frames(self.client, self.options, name, follow=False))
        assert [about["tag"] for about, _ in far] == [frame.tag for frame in frames]
        for frame, (_, batch) in zip(frames, far, strict=True):
            frame.batch.validate(full=True)
            batch.validate(full=True)
            assert batch.schema.equals(frame.batch.schema, check_metadata=True)
            assert_same(batch, frame.batch)
        return frames

    def deliver(self, data: Any, schema: Any = None, **options: Any) -> pa.RecordBatch:
        """Posts `data`, and returns the batch that a reader gets."""
        name = self.name()
        with self.session.stream(name, data if schema is None else schema, **options) as stream:
            stream.offload(data, tag=7).wait(WAIT)
        (frame,) = self.read(name)
        assert (frame.tag, frame.sequence, frame.skipped) == (7, 0, 0)
        return frame.batch


def assert_same(got: pa.RecordBatch, wanted: pa.RecordBatch) -> None:
    """Checks that both batches are equal. NaN equals NaN."""
    if got.equals(wanted):
        return
    assert got.schema == wanted.schema
    for name in wanted.schema.names:
        assert str(got[name].to_pylist()) == str(wanted[name].to_pylist()), name


@contextlib.contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stops the process (SIGSTOP) inside the `with` block."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # waits until the process has stopped
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def numbers(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        values = rng.standard_normal(shape).astype(dtype)
        if values.size > 2:
            values.reshape(-1)[:2] = [np.nan, np.inf]
        return values
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def back(column: pa.Array, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A column as a numpy array, in the shape of `like`."""
    if pa.types.is_fixed_size_list(column.type):
        column = column.flatten()
    values: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False).reshape(like.shape)
    return values
