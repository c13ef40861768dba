# SPDX-License-Identifier: Apache-2.0
"""The file of `wherry probe run --json FILE`, as types (docs/guide/probe.md, The file of a run)."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from wherry.errors import AlreadyExists, BenchError
from wherry.probe.lines import Failed, Figures, Initiator, Provenance, Shape

SCHEMA = 1
_MOST = 1 << 26
"""The most bytes of a file. The file of a full run has about 1 MiB."""


class Row(Figures, frozen=True, kw_only=True):
    """A row, with the figures of a line of wherry-probe."""


class Trouble(Shape, frozen=True, kw_only=True):
    """A cell without a row: its data was wrong, or it could not be measured."""

    why: str
    wrong: bool


class MeasuredPath(msgspec.Struct, frozen=True, kw_only=True):
    """A path and its rows."""

    id: str
    group: str
    from_: str = msgspec.field(name="from")
    to: str
    initiator: Initiator
    provenance: Provenance
    absent: str
    """Why the path cannot run on this machine; it then has no rows. Empty: it can run."""
    note: str
    rows: list[Row] = []
    troubles: list[Trouble] = []


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the run."""

    quick: bool
    twice: bool
    rounds: int
    seed: int
    only: list[str]


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of wherry-probe."""

    schema: int
    name: Literal["probe_run"]
    when: str
    wherry: str
    machine_key: str
    """Processor, cores, kernel and UCX. Figures with different keys are not comparable."""
    environment: dict[str, str]
    clock_ghz: float
    clock_resolution_ns: float
    harness_batched_ns: float
    """The runner's overhead on a transfer if transfers are timed together."""
    harness_timed_ns: float
    """The runner's overhead on a transfer if each transfer is timed."""
    settings: Settings
    seconds: float
    stopped: bool
    paths: list[MeasuredPath]

    @property
    def rows(self) -> list[tuple[MeasuredPath, Row]]:
        """All rows, with their paths."""
        return [(path, row) for path in self.paths for row in path.rows]

    @property
    def wrong(self) -> int:
        """The number of cells whose data was wrong."""
        return sum(trouble.wrong for path in self.paths for trouble in path.troubles)

    @property
    def measured(self) -> int:
        """The number of rows that were not refused."""
        return sum(not row.refused for _, row in self.rows)


def trouble_of(line: Shape, why: str) -> Trouble:
    """The trouble that a line without a row reports."""
    shape = {name: getattr(line, name) for name in Shape.__struct_fields__}
    return Trouble(**shape, why=why, wrong=not isinstance(line, Failed))


def now() -> str:
    """The current time in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def load(file: str | os.PathLike[str]) -> ProbeRun:
    """Reads and checks the file of a run. Unknown keys are ignored. Raises BenchError."""
    name = os.fspath(file)
    try:
        with Path(file).open("rb") as source:
            text = source.read(_MOST + 1)
    except OSError as error:
        raise BenchError(f"cannot read {name}: {error.strerror}") from None
    if len(text) > _MOST:
        raise BenchError(f"cannot read {name}: it has more than {_MOST} bytes")
    try:
        run = msgspec.json.decode(text, type=ProbeRun)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BenchError(f"{name} is not what `wherry probe run --json` writes: {error}") from None
    if run.schema != SCHEMA:
        raise BenchError(f"{name}: schema is {run.schema}; this Wherry reads schema {SCHEMA}")
    for path, row in run.rows:
        if not row.rounds or min(row.rounds) <= 0:
            raise BenchError(f"{name}: a row of {path.id} has rounds {row.rounds}; positive times are expected")
    return run


def refuse_if_there(file: Path) -> None:
    """Raises AlreadyExists if the file exists, because a run never overwrites another one."""
    if os.path.lexists(file):
        raise AlreadyExists(f"{file} is there already, and a run overwrites nothing: name another file")


def write(run: ProbeRun, file: Path) -> None:
    """Writes the file atomically. Raises AlreadyExists, OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    refuse_if_there(file)
    # `system.replacing` would overwrite a file that another process has written meanwhile.
    partial = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with partial.open("xb") as whole:
            whole.write(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
        os.link(partial, file)
    except FileExistsError:
        refuse_if_there(file)
        raise
    finally:
        partial.unlink(missing_ok=True)
