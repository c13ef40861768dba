# SPDX-License-Identifier: Apache-2.0
"""The first fields of every JSON object that `wherry bypass ... --json` prints, for objects that Python writes.

The host's program writes the other objects, with the same first fields (src/bypass/process/answer.hpp). The fields are
described in docs/guide/bypass-host.md, "For programs".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wherry.errors import Error

FAILED = 1
"""Exit status."""


def answer(command: str, status: int, error: str | None) -> dict[str, Any]:
    """The fields that say how a command ended."""
    return {
        "command": command, "exit_status": status, "cause": "none" if status == 0 else "failed", "error": error,
    }  # fmt: skip


@contextmanager
def failing_answer(command: str, as_json: bool) -> Iterator[None]:
    """Wraps a part of a command. If that part fails, a program that reads standard output still gets a JSON answer."""
    try:
        yield
    except Error as error:
        if as_json:
            print(json.dumps(answer(command, FAILED, str(error))))
        raise
