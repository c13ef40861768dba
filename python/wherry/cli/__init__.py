# SPDX-License-Identifier: Apache-2.0
"""The command line `wherry`, and building blocks for services' commands: groups, output, common options."""

from typing import TYPE_CHECKING

from wherry import lazy
from wherry.cli.bench import JsonFileOption as JsonFileOption
from wherry.cli.bench import OnlyOption as OnlyOption
from wherry.cli.bench import check_experiments as check_experiments
from wherry.cli.bench import show_bench as show_bench
from wherry.cli.help import App as App
from wherry.cli.help import whole_number as whole_number
from wherry.cli.meter import AgentReading as AgentReading
from wherry.cli.meter import Meter as Meter
from wherry.cli.meter import TopPart as TopPart
from wherry.cli.meter import bound_of_share as bound_of_share
from wherry.cli.meter import plain_table as plain_table
from wherry.cli.meter import rate_text as rate_text
from wherry.cli.output import OUTPUT_LOST as OUTPUT_LOST
from wherry.cli.output import OutputLost as OutputLost
from wherry.cli.output import after as after
from wherry.cli.output import into as into
from wherry.cli.output import note as note
from wherry.cli.output import out as out
from wherry.cli.output import progress as progress
from wherry.cli.session import AgentOption as AgentOption
from wherry.cli.session import AgentPart as AgentPart

if TYPE_CHECKING:
    from wherry.cli.root import app as app
    from wherry.cli.root import main as main

# Loaded at first use, because the root imports the commands of all services, which import this package.
if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(__name__, {"wherry.cli.root": ("app", "main")})
