# SPDX-License-Identifier: Apache-2.0
"""What commands that talk to an agent share; and, for the modules here, what they use of the room `session`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from wherry.session import SessionFile as SessionFile
from wherry.session import SessionStatus as SessionStatus
from wherry.session import locate as locate
from wherry.session import read_metrics as read_metrics
from wherry.session import replace_process as replace_process
from wherry.session import session_path as session_path
from wherry.session import sessions as sessions
from wherry.session import start_agent as start_agent
from wherry.session import stop_agent as stop_agent

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
