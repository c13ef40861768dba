# SPDX-License-Identifier: Apache-2.0
"""The agent of this machine: its session file, its process, its metrics. Knows no service."""

from wherry.session.locate import Agent as Agent
from wherry.session.locate import locate as locate
from wherry.session.sessionfile import BadSessionFile as BadSessionFile
from wherry.session.sessionfile import SessionFile as SessionFile
