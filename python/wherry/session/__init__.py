# SPDX-License-Identifier: Apache-2.0
"""The agent of this machine: its session file, its process, its metrics. This package does not depend on any
service."""

from wherry import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wherry.session.agent_process import START_TIMEOUT_S as START_TIMEOUT_S
    from wherry.session.agent_process import agent_command as agent_command
    from wherry.session.agent_process import replace_process as replace_process
    from wherry.session.agent_process import start_agent as start_agent
    from wherry.session.agent_process import stop_agent as stop_agent
    from wherry.session.discovery import Place as Place
    from wherry.session.discovery import announce as announce
    from wherry.session.discovery import find_agents as find_agents
    from wherry.session.metrics import SessionStatus as SessionStatus
    from wherry.session.metrics import read_metrics as read_metrics
    from wherry.session.metrics import sessions as sessions
    from wherry.session.sessionfile import SessionFile as SessionFile
    from wherry.session.sessionfile import load_session as load_session
    from wherry.session.sessionfile import session_path as session_path
    from wherry.session.which_agent import Agent as Agent
    from wherry.session.which_agent import locate as locate

if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(
        __name__,
        {
            "wherry.session.agent_process": (
                "START_TIMEOUT_S",
                "agent_command",
                "replace_process",
                "start_agent",
                "stop_agent",
            ),
            "wherry.session.discovery": ("Place", "announce", "find_agents"),
            "wherry.session.metrics": ("SessionStatus", "read_metrics", "sessions"),
            "wherry.session.sessionfile": ("SessionFile", "load_session", "session_path"),
            "wherry.session.which_agent": ("Agent", "locate"),
        },
    )
