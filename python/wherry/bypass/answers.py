# SPDX-License-Identifier: Apache-2.0
"""The common first fields of every object of `wherry bypass ... --json`, for objects that the host's program does not
write.

That program has the same fields in src/bypass/process/answer.hpp; docs/guide/bypass-host.md, "For programs".
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
    """How a command ended."""
    return {
        "command": command, "exit_status": status, "cause": "none" if status == 0 else "failed", "error": error,
    }  # fmt: skip


@contextmanager
def failing_answer(command: str, as_json: bool) -> Iterator[None]:
    """Wraps a part of a command. If it fails, programs that read standard output get an answer, too."""
    try:
        yield
    except Error as error:
        if as_json:
            print(json.dumps(answer(command, FAILED, str(error))))
        raise
