# SPDX-License-Identifier: Apache-2.0
"""The outputs of the command line. A result that cannot be written is a separate error, with its own exit status."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT_LOST = os.EX_IOERR
"""Exit status 74: the command succeeded, but its result could not be written."""


def out() -> Console:
    """The console for results. Each call makes a new one, because tests and pipes replace sys.stdout."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if terminal else 160, soft_wrap=not terminal, highlight=False)


def note(text: str) -> None:
    """Writes a line for people to standard error."""
    print(text, file=sys.stderr, flush=True)


def progress() -> Console:
    """The console for progress messages."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


class OutputLost(OSError):
    """Raised if a result could not be written. `code`: the errno."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def closed_pipe(self) -> bool:
        """Whether the reader of a pipe has closed it, as in `wherry cat x | head`. That is not an error."""
        return self.code == errno.EPIPE


class _Raw(io.FileIO):
    """A standard stream. After its first error it discards all data, because Python flushes the stream again at
    exit."""

    def __init__(self, number: int, reported: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._reported, self._lost = reported, False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._lost:
            return memoryview(data).nbytes
        try:
            while (taken := super().write(data)) is None:  # a full pipe that another process made non-blocking
                select.select([], [self], [])
            return taken
        except OSError as error:
            self._lost = True
            if self._reported:
                why = "it is closed" if error.errno == errno.EBADF else error.strerror
                raise OutputLost(error.errno or errno.EIO, f"standard output: {why}") from None
            return memoryview(data).nbytes


def _stream(now: TextIO | None, number: int, reported: bool) -> TextIO:
    raw = _Raw(number, reported)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=now.encoding if now is not None else "utf-8",
        errors=now.errors if now is not None else "backslashreplace",
        line_buffering=not reported or raw.isatty(),
    )


@contextmanager
def standard_streams() -> Iterator[None]:
    """In this context, printing raises OutputLost if standard output fails. Failures of standard error are ignored.

    Reopens standard streams that the caller closed, because otherwise a file or socket would get their descriptors. A
    write to a closed standard output still fails. Streams that a program has replaced are not changed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Standard output is opened read-only, so that writes still fail. open() returns the lowest free descriptor,
            # which is `number`.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            os.set_inheritable(number, True)
    before = sys.stdout, sys.stderr
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(sys.__stdout__, 1, True)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(sys.__stderr__, 2, False)
    try:
        yield
    finally:
        with suppress(OutputLost, BrokenPipeError):  # the error was already reported
            sys.stdout.flush()
        sys.stdout, sys.stderr = before


@contextmanager
def after(effect: str) -> Iterator[None]:
    """Wraps the printing of a result. If that fails, the error says that `effect` has happened."""
    try:
        yield
        sys.stdout.flush()
    except OutputLost as error:
        if error.closed_pipe:
            raise
        raise OutputLost(error.code, f"{effect}: {error}") from None


@contextmanager
def into(file: Path | None) -> Iterator[None]:
    """Wraps the writing of a result to a file; an error names the file. None: the result goes to standard output.

    Creates missing directories in the file's path, so that a long measurement is not lost.
    """
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except OutputLost:
        raise
    except OSError as error:
        if file is None or error.errno not in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EROFS):
            raise
        raise OutputLost(error.errno, f"{file}: {os.strerror(error.errno)}") from None
