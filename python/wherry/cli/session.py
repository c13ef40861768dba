# SPDX-License-Identifier: Apache-2.0
"""What commands that talk to an agent share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

AgentOption = Annotated[
    Path | None,
    typer.Option(
        "--agent", metavar="FILE", help="The agent's session file. Default: $WHERRY_AGENT, or the running agent."
    ),
]


@dataclass(frozen=True, slots=True)
class AgentPart:
    """What a service tells in `wherry agent status`."""

    document: Mapping[str, object]
    """For --json."""
    table: Table | str
    """For people."""
