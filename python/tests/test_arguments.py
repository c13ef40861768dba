# SPDX-License-Identifier: Apache-2.0
"""Arguments that C++ cannot accept: InvalidArgument names the argument and the allowed values. The binding layer's
TypeError, which names neither, never occurs."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inputs import WAIT, Bench

import wherry
from wherry.kv import Client

NOT_UTF8 = os.fsdecode(b"/tmp/\xff")
U64 = r"0 to 2\*\*64 - 1"


@pytest.mark.agent
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep_frames": -1}, f"keep_frames is -1: want {U64}"),
        ({"keep_frames": 1 << 64}, f"keep_frames is 18446744073709551616: want {U64}"),
        ({"keep_frames": 1.5}, f"keep_frames is 1.5: want a whole number, {U64}"),
        ({"keep_bytes": -5}, f"keep_bytes is -5: want {U64}"),
        ({"announce": [0, -1]}, rf"announce\[1\] is -1: want {U64}"),
        ({"announce": 7}, "announce is 7: want a list of numbers"),
        ({"announce": ["7"]}, rf"announce\[0\] is '7': want a whole number, {U64}"),
        ({"sink_dir": NOT_UTF8, "sink_format": "arrow"}, r"sink_dir is '/tmp/\\udcff', which is not UTF-8"),
        ({"sink_dir": b"/tmp/\xff", "sink_format": "arrow"}, "sink_dir is .* not UTF-8"),
        ({"sink_dir": 3, "sink_format": "arrow"}, "sink_dir is 3: want a path"),
        ({"sink_dir": "/tmp", "sink_format": 3}, "sink_format is 3: want text"),
        ({"name": "\udcff"}, "name is .* not UTF-8"),
        ({"name": 3}, "name is 3: want text"),
        ({"strategy": None}, "strategy is None: want text"),
        ({"when_full": None}, "when_full is None: want text"),
    ],
)
def test_of_a_stream(bench: Bench, options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"name": bench.name(), "schema": {"x": np.zeros(1)}} | options
    with pytest.raises(wherry.InvalidArgument, match=message):
        bench.session.stream(**arguments)


@pytest.mark.agent
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tag": "7"}, f"tag is '7': want a whole number, {U64}"),
        ({"tag": -1}, f"tag is -1: want {U64}"),
        ({"deadline": "soon"}, "deadline is 'soon': want seconds"),
        ({"timeout": "soon"}, "timeout is 'soon': want seconds"),
        ({"timeout": math.nan}, "timeout is nan: want seconds"),
    ],
)
def test_of_an_offload(bench: Bench, options: dict[str, Any], message: str) -> None:
    with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
        with pytest.raises(wherry.InvalidArgument, match=message):
            stream.offload({"x": np.zeros(1)}, **options)
        stream.offload({"x": np.zeros(1)}).wait(WAIT)


@pytest.mark.agent
def test_of_a_session_and_a_ticket(bench: Bench) -> None:
    session = bench.session
    for shape, message in [
        ((1 << 62,), r"shape is \(4611686018427387904,\): 36893488147419103232 bytes of float64, want at most 2\*\*63"),
        ((1 << 80,), r"shape\[0\] is 1208925819614629174706176: want 0 to 2\*\*63 - 1"),
        ((3, -1), r"shape\[1\] is -1: want 0"),
        ("3", r"shape\[0\] is '3': want a whole number"),
    ]:
        with pytest.raises(wherry.InvalidArgument, match=message):
            session.empty(shape)  # type: ignore[arg-type]
    with pytest.raises(wherry.InvalidArgument, match="dtype is 'nonsense'"):
        session.empty(3, "nonsense")
    with pytest.raises(wherry.InvalidArgument, match="array is a list: want a numpy array"):
        session.register([1, 2, 3])  # type: ignore[arg-type]
    with bench.session.stream(bench.name(), {"x": np.zeros(1)}) as stream:
        ticket = stream.offload({"x": np.zeros(1)})
        for call in (ticket.wait, session.drain, session.close):
            with pytest.raises(wherry.InvalidArgument, match="timeout is 'soon': want seconds"):
                call("soon")  # type: ignore[arg-type]
        ticket.wait(WAIT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": 3}, "agent is 3: want a path"),
        ({"agent": NOT_UTF8}, "agent is .* not UTF-8"),
        ({"token": 3}, "token is 3: want text"),
        ({"name": "\udcff"}, "name is .* not UTF-8"),
        ({"transport": None}, "transport is None: want text"),
        ({"connect_timeout": -1}, "connect_timeout is -1: want seconds, 0 or more"),
        ({"connect_timeout": "soon"}, "connect_timeout is 'soon': want seconds"),
        ({"max_tickets": -1}, "max_tickets is -1: want 1 to 4096"),
        ({"max_tickets": 1 << 40}, "max_tickets is 1099511627776: want 1 to 4096"),
        ({"embedded_budget": -1}, r"embedded_budget is -1: want 1 to 2\*\*64 - 1"),
        ({"embedded_core": -2}, r"embedded_core is -2: want -1 to 2\*\*31 - 1"),
        ({"embedded_core": 1 << 40}, "embedded_core is 1099511627776"),
        ({"embedded_args": "--flight"}, "embedded_args is '--flight': want a list of texts"),
        ({"embedded_args": ["--budget", 3]}, r"embedded_args\[1\] is 3: want text"),
    ],
)
def test_of_opening_a_session(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(wherry.InvalidArgument, match=message):
        wherry.Session(**({"agent": tmp_path / "none.json"} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": 3}, "name is 3: want text"),
        ({"name": "\udcff"}, "name is .* not UTF-8"),
        ({"from_sequence": 1 << 64}, f"from_sequence is 18446744073709551616: want {U64}"),
        ({"from_sequence": "1"}, "from_sequence is '1': want a whole number"),
        ({"timeout": "soon"}, "timeout is 'soon': want seconds, 0 or more"),
        ({"timeout": "5"}, "timeout is '5': want seconds, 0 or more"),
        ({"timeout": b"5"}, "timeout is b'5': want seconds, 0 or more"),
        ({"timeout": math.nan}, "timeout is nan: want seconds, 0 or more"),
    ],
)
def test_of_a_reader(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wherry.InvalidArgument, match=message):
        wherry.open(**({"name": "s"} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": [3]}, r"nodes\[0\] is 3: want text"),
        ({"nodes": ["\udcff"]}, r"nodes\[0\] is .* not UTF-8"),
        ({"nodes": 3}, "nodes is 3: want a list of texts"),
        ({"keepers": [None]}, r"keepers\[0\] is None: want text"),
        ({"cluster": NOT_UTF8}, "cluster is .* not UTF-8"),
        ({"first_lane": -1}, "first_lane is -1: want 0 to 8191"),
        ({"first_lane": "a"}, "first_lane is 'a': want a whole number, 0 to 8191"),
        ({"lanes": -1}, "lanes is -1: want 0 to 8192"),
        ({"lanes": 1 << 20}, "lanes is 1048576: want 0 to 8192"),
        ({"deadline": "soon"}, "deadline is 'soon': want seconds"),
        ({"deadline": math.nan}, "deadline is nan: want seconds"),
        ({"reads": None}, "reads is None: want text"),
        ({"first_timeout": "soon"}, "first_timeout is 'soon': want seconds, 0 or more"),
        ({"timeout_cap": -1}, "timeout_cap is -1: want seconds, 0 or more"),
        ({"connect_timeout": None}, "connect_timeout is None: want seconds, 0 or more"),
        ({"seed": -1}, f"seed is -1: want {U64}"),
    ],
)
def test_of_a_client_of_the_store(options: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"nodes": ["127.0.0.1:1"], "first_lane": 0, "connect_timeout": 0.1}
    with pytest.raises(wherry.InvalidArgument, match=message):
        Client(**(usual | options))
