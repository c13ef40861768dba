# SPDX-License-Identifier: Apache-2.0
"""The common part of commands that talk to an agent, and the names of wherry.session that modules of this package
use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from wherry.session import Place as Place
from wherry.session import SessionFile as SessionFile
from wherry.session import SessionStatus as SessionStatus
from wherry.session import announce as announce
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
    """A service's part of `wherry agent status`."""

    document: Mapping[str, object]
    """The content for --json."""
    table: Table | str
    """The content for people."""
