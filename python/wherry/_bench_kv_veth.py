# SPDX-License-Identifier: Apache-2.0
"""Nodes past the kernel (AF_XDP) beside Redis on sockets, both over the same veth pairs of network namespaces."""

from __future__ import annotations

from typing import Any

from wherry._bench_kv_software import Effort, Say
from wherry.errors import Unsupported


def run(document: dict[str, Any], effort: Effort, say: Say) -> None:
    """Rows of the results' `software`, and their bars. Raises PermissionDenied, Unsupported: not here."""
    raise Unsupported("nodes on AF_XDP cannot be started by the command line yet")
