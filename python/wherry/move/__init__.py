# SPDX-License-Identifier: Apache-2.0
"""move: an agent copies columns from the application's memory, and readers get them as Arrow data."""

from typing import TYPE_CHECKING

from wherry import lazy

if TYPE_CHECKING:
    from wherry.move.agents import Dataset as Dataset
    from wherry.move.agents import dataset as dataset
    from wherry.move.columns import schema_of as schema_of
    from wherry.move.flight import flight_client as flight_client
    from wherry.move.flight import flight_frames as flight_frames
    from wherry.move.reader import Frame as Frame
    from wherry.move.reader import StreamReader as StreamReader
    from wherry.move.reader import StreamStatus as StreamStatus
    from wherry.move.reader import open as open
    from wherry.move.reader import streams as streams
    from wherry.move.session import Session as Session
    from wherry.move.stream import Step as Step
    from wherry.move.stream import Stream as Stream
    from wherry.move.ticket import Ticket as Ticket

if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(
        __name__,
        {
            "wherry.move.columns": ("schema_of",),
            "wherry.move.agents": ("Dataset", "dataset"),
            "wherry.move.flight": ("flight_client", "flight_frames"),
            "wherry.move.reader": ("Frame", "StreamReader", "StreamStatus", "open", "streams"),
            "wherry.move.session": ("Session",),
            "wherry.move.stream": ("Step", "Stream"),
            "wherry.move.ticket": ("Ticket",),
        },
    )
