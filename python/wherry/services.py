# SPDX-License-Identifier: Apache-2.0
"""The list of services: a new one is a folder, and its name here.

Beside its library, a service's folder has its contributions to the other rooms. Each is a module or a package, and may
be missing.

cli     add_to(app, bench): its commands, and its `wherry bench NAME`; agent_status(session), its part of `agent
        status`; agent_top(reading, meter) and cluster_top(cluster, meter), its parts of `wherry top`
bench   BENCHMARK: a wherry.bench.Benchmark, with the types of its JSON
tour    show(console): what `wherry demo` shows of it; raises Error if something is not right
report  CHAPTERS: by the "name" of a JSON document, what makes a wherry.report.Chapter of it

They are imported only when they are needed. Every start of the command line imports `cli`, so it must import nothing
heavy.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

SERVICES = ("move", "route", "kv", "bypass", "probe", "dma")


def parts(part: str) -> Iterator[Any]:
    """The module wherry.<service>.<part> of each service that has one, in the order of the list."""
    for service in SERVICES:
        name = f"wherry.{service}.{part}"
        if importlib.util.find_spec(name) is not None:
            yield importlib.import_module(name)
