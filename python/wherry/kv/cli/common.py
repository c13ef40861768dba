# SPDX-License-Identifier: Apache-2.0
"""The common part of the commands of `wherry kv`: options, exit statuses, the console."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.cli import Meter as Meter
from wherry.cli import TopPart as TopPart
from wherry.cli import after as after
from wherry.cli import into as into
from wherry.cli import note as note
from wherry.cli import out as out
from wherry.cli import plain_table as plain_table
from wherry.cli import progress as progress
from wherry.cli import rate_text as rate_text
from wherry.cli import whole_number as whole_number
from wherry.kv.generated.frame import MAX_LANES

NO, UNKNOWN, UNAVAILABLE = 1, 3, 4
"""Exit statuses of get, put and delete. NO: no such key, or another version; UNKNOWN: unknown outcome; UNAVAILABLE: no
answer."""


ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="The cluster file. Default: $WHERRY_KV_CLUSTER, or that of your newest `wherry kv up`.",
    ),
]
KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="Decimal, 0x and hexadecimal, or up to 8 bytes of text.")
]
TextOption = Annotated[bool, typer.Option("--text", help="KEY is a text, even if it looks like a number.")]
IfVersionOption = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", min=0, max=2**32 - 1, help="Only if the key has this version."),
]
TimeoutOption = Annotated[float, typer.Option(min=0.001, help="Seconds.")]
LaneOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MAX_LANES - 1,
        help="Static lane to write with, which no other client uses. Default: one that the keeper grants; in mode "
        "static, one of the cluster's last 64, which your commands on this machine share out among themselves.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
