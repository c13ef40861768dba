from wherry._kv_frame import MAX_LANES
# SPDX-License-Identifier: Apache-2.0
from wherry._kv_frame import MAX_LANES
"""What the commands of `wherry kv` share: options, exit statuses, the console."""
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
from __future__ import annotations
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
import sys
from wherry._kv_frame import MAX_LANES
from pathlib import Path
from wherry._kv_frame import MAX_LANES
from typing import Annotated
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
import typer
from wherry._kv_frame import MAX_LANES
from rich.console import Console
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
NO, UNKNOWN, UNAVAILABLE = 1, 3, 4
from wherry._kv_frame import MAX_LANES
"""Exit statuses of get, put and delete: no such key or another version; may have happened; nobody answered."""
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
def out() -> Console:
from wherry._kv_frame import MAX_LANES
    """The console for results."""
from wherry._kv_frame import MAX_LANES
    terminal = sys.stdout.isatty()
from wherry._kv_frame import MAX_LANES
    return Console(file=sys.stdout, width=None if terminal else 160, soft_wrap=not terminal, highlight=False)
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
def note(text: str) -> None:
from wherry._kv_frame import MAX_LANES
    """A line for people, on standard error."""
from wherry._kv_frame import MAX_LANES
    print(text, file=sys.stderr, flush=True)
from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES

from wherry._kv_frame import MAX_LANES
ClusterOption = Annotated[
from wherry._kv_frame import MAX_LANES
    Path | None,
from wherry._kv_frame import MAX_LANES
    typer.Option(
from wherry._kv_frame import MAX_LANES
        "--cluster",
from wherry._kv_frame import MAX_LANES
        metavar="FILE",
from wherry._kv_frame import MAX_LANES
        help="The cluster file. Default: $WHERRY_KV_CLUSTER, or that of your newest `wherry kv up`.",
from wherry._kv_frame import MAX_LANES
    ),
from wherry._kv_frame import MAX_LANES
]
from wherry._kv_frame import MAX_LANES
KeyArgument = Annotated[
from wherry._kv_frame import MAX_LANES
    str, typer.Argument(metavar="KEY", help="Decimal, 0x and hexadecimal, or up to 8 bytes of text.")
from wherry._kv_frame import MAX_LANES
]
from wherry._kv_frame import MAX_LANES
TextOption = Annotated[bool, typer.Option("--text", help="KEY is a text, even if it looks like a number.")]
from wherry._kv_frame import MAX_LANES
IfVersionOption = Annotated[
from wherry._kv_frame import MAX_LANES
    int | None,
from wherry._kv_frame import MAX_LANES
    typer.Option("--if-version", metavar="N", min=0, max=2**32 - 1, help="Only if the key has this version."),
from wherry._kv_frame import MAX_LANES
]
from wherry._kv_frame import MAX_LANES
TimeoutOption = Annotated[float, typer.Option(min=0.001, help="Seconds.")]
from wherry._kv_frame import MAX_LANES
LaneOption = Annotated[
from wherry._kv_frame import MAX_LANES
    int | None,
from wherry._kv_frame import MAX_LANES
    typer.Option(
from wherry._kv_frame import MAX_LANES
        min=0,
from wherry._kv_frame import MAX_LANES
        max=MAX_LANES - 1,
from wherry._kv_frame import MAX_LANES
        help="Static lane to write with, which no other client uses. Default: one that the keeper grants; in mode "
from wherry._kv_frame import MAX_LANES
        "static, one of the cluster's last 64, which your commands on this machine share out among themselves.",
from wherry._kv_frame import MAX_LANES
    ),
from wherry._kv_frame import MAX_LANES
]
from wherry._kv_frame import MAX_LANES
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
