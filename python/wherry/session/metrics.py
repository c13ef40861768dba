# SPDX-License-Identifier: Apache-2.0
"""Reads the agent's metrics over HTTP, and extracts the figures of its clients."""

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
    """The agent's metrics by name, with labels as in Prometheus' text format. Empty if the agent serves no metrics.

    Raises Error if the agent does not answer.
    """
    if session.metrics is None:
        return {}
    if not session.metrics.startswith("http://"):
        raise Error(f"{session.path}: metrics are at {session.metrics!r}, which is not http://")
    request = urllib.request.Request(session.metrics, headers={"Authorization": f"Bearer {session.token}"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy may see the token
    try:
        with direct.open(request, timeout=5) as answer:
            text = answer.read().decode(errors="replace")
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:  # HTTPException: truncated or not HTTP
        reason = getattr(error, "reason", error)
        raise Unavailable(f"no metrics from {session.metrics}: {reason}") from None
    return parse_metrics(text)


_SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})?)\s+([^\s]+)(?:\s+-?\d+)?$")


def parse_metrics(text: str) -> dict[str, float]:
    """Parses Prometheus' text format (version 0.0.4) into {"name{labels}": value}, in order. Skips lines of another
    form.

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
    """The status of one client, as the agent reports it."""

    session: int
    """The number of the session. The agent numbers its sessions in the order in which they were opened."""
    name: str
    pid: int
    transports: str
    """UCX's names of the transports, such as "cma/memory posix/memory", and in parentheses why others were not
    available."""
    heap: str
    """"one_sided" if a test proved that gets from ordinary memory are one-sided, else "emulated"."""
    allocated: str
    """The same as `heap`, for memory that Wherry allocated."""
    mapped: bool
    bytes: int
    """Bytes that were moved from the client's memory."""


_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def sessions(metrics: dict[str, float]) -> list[SessionStatus]:
    """The clients in the agent's metrics, in the order in which they connected."""
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
