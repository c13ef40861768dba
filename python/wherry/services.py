# SPDX-License-Identifier: Apache-2.0
"""The list of services. A new service is a folder, and its name in this list.

Besides its library, a service's folder may contain these modules or packages, which other packages use. Each may be
missing.

cli     add_to(app, bench): its commands, and its `wherry bench NAME`; agent_status(session): its part of `agent
        status`; agent_top(reading, meter) and cluster_top(cluster, meter): its parts of `wherry top`
bench   BENCHMARK: a wherry.bench.Benchmark, with the types of its JSON
tour    show(console): its part of `wherry demo`; raises Error if a result is wrong
report  CHAPTERS: for each "name" of a JSON document, the function that makes a wherry.report.Chapter of it

These modules are imported only when they are needed. Every start of the command line imports `cli`, so `cli` must not
import large packages.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

SERVICES = ("move", "route", "kv", "bypass", "probe", "dma")


def parts(part: str) -> Iterator[Any]:
    """Yields the module wherry.<service>.<part> of each service that has this part, in the order of the list."""
    for service in SERVICES:
        name = f"wherry.{service}.{part}"
        if importlib.util.find_spec(name) is not None:
            yield importlib.import_module(name)
