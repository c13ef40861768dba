# SPDX-License-Identifier: Apache-2.0
"""Reads the agent's metrics over HTTP, and the figures of its clients in them."""

from __future__ import annotations

import dataclasses
import http.client
import re
import urllib.error
import urllib.request
from dataclasses import dataclass

from wherry.errors import Error, Unavailable
from wherry.session.sessionfile import SessionFile


def read_metrics(session: SessionFile) -> dict[str, float]:
    """The agent's metrics by name, with labels as in Prometheus' text format. Empty if it serves none.

    Raises Error when it does not answer.
    """
    if session.metrics is None:
        return {}
    if not session.metrics.startswith("http://"):
        raise Error(f"{session.path}: metrics are at {session.metrics!r}, which is not http://")
    request = urllib.request.Request(session.metrics, headers={"Authorization": f"Bearer {session.token}"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the token is for the agent, not for a proxy
    try:
        with direct.open(request, timeout=5) as answer:
            text = answer.read().decode(errors="replace")
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:  # HTTPException: cut short, no HTTP
        reason = getattr(error, "reason", error)
        raise Unavailable(f"no metrics from {session.metrics}: {reason}") from None
    return parse_metrics(text)


_SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})?)\s+([^\s]+)(?:\s+-?\d+)?$")


def parse_metrics(text: str) -> dict[str, float]:
    """Prometheus' text format (version 0.0.4) as {"name{labels}": value}, in order. Lines of another form are left out.

    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    samples: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.match(line.strip())
        if match is None:
            continue
        try:
            samples[match[1]] = float(match[2])
        except ValueError:
            continue
    return samples


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """One client of the agent, from the agent's view."""

    session: int
    """Counts the sessions that the agent has opened."""
    name: str
    pid: int
    transports: str
    """UCX's names: "cma/memory posix/memory"; and, in parentheses, why others were not available."""
    heap: str
    """Whether gets from ordinary memory were proved one-sided: "one_sided", else "emulated"."""
    allocated: str
    """The same for memory that Wherry allocated."""
    mapped: bool
    bytes: int
    """Moved from the client's memory."""


_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def sessions(metrics: dict[str, float]) -> list[SessionStatus]:
    """The clients that the agent's metrics tell of, in the order in which they came."""
    found: list[SessionStatus] = []
    moved: dict[str, float] = {}
    for sample, value in metrics.items():
        name, _, labels = sample.partition("{")
        fields = {key: re.sub(r"\\(.)", r"\1", text) for key, text in _LABEL.findall(labels)}
        if name == "wherry_session_bytes_total":
            moved[fields["session"]] = value
        elif name == "wherry_session_info":
            found.append(
                SessionStatus(
                    session=int(fields["session"]),
                    name=fields["name"],
                    pid=int(fields["pid"]),
                    transports=fields["transports"],
                    heap=fields["heap"],
                    allocated=fields["allocated"],
                    mapped=fields["mapped"] == "true",
                    bytes=0,
                )
            )
    return [dataclasses.replace(one, bytes=int(moved.get(str(one.session), 0))) for one in found]
