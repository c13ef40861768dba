# SPDX-License-Identifier: Apache-2.0
"""Selects an agent: by path, by a loaded session file, by an open session, or by the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from wherry.errors import Unavailable
from wherry.session.sessionfile import SessionFile, load_session


class Located(Protocol):
    """A wherry.Session, which knows the session file of its agent."""

    @property
    def info(self) -> Any:
        """A wherry.SessionInfo. Only its `session_file` is used."""


Agent = str | os.PathLike[str] | SessionFile | Located | None
"""An agent: the path of its session file, the loaded session file, or a wherry.Session. None: $WHERRY_AGENT, or the
default agent."""


def locate(agent: Agent = None) -> SessionFile:
    """Loads and checks the session file of `agent`. Raises NotFound, Unavailable, sessionfile.BadSessionFile,
    VersionMismatch."""
    if isinstance(agent, SessionFile):
        return agent
    if agent is None:
        named = os.environ.get("WHERRY_AGENT", "")
        if named in ("", "auto", "embedded"):
            return load_session()
        agent = named
    if isinstance(agent, str | os.PathLike):
        text = os.fspath(agent)
        host, _, port = text.rpartition(":")
        if host and port.isdigit() and not Path(text).exists():
            raise Unavailable(f"{text} is an address: readers need the path of the agent's session file")
        return load_session(text)
    path = str(getattr(agent.info, "session_file", ""))
    if not path:
        raise Unavailable("the session was opened by address: readers need the path of its agent's session file")
    return load_session(path)
