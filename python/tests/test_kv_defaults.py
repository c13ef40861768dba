# SPDX-License-Identifier: Apache-2.0
"""The defaults of a cluster file, the example of docs/guide/kv.md, and the file of `wherry kv up` are equal."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from wherry.kv.options import Options, cluster_text

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "src" / "kv" / "control" / "cluster_file.hpp"


def numbers(document: dict[str, Any]) -> dict[str, int]:
    """Of [cluster] and [timing]."""
    both = document["cluster"] | document["timing"]
    return {key: value for key, value in both.items() if isinstance(value, int)}


def in_code() -> dict[str, int]:
    struct = HEADER.read_text().partition("struct ClusterFile {")[2].partition("};")[0]
    found = re.findall(r"std::uint32_t (\w+) = ([\d']+);", struct)
    return {name: int(value.replace("'", "")) for name, value in found}


def test_defaults_are_those_of_the_docs() -> None:
    text = (ROOT / "docs" / "guide" / "kv.md").read_text()
    block = text.partition("## The cluster file")[2].partition("```toml\n")[2].partition("```")[0]
    defaults = in_code()
    assert defaults.keys() == {
        "bucket_bits", "lanes", "static_lanes", "ping_ms", "misses", "lease_ms", "retry_cycles", "lane_ttl_ms",
    }  # fmt: skip
    assert numbers(tomllib.loads(block)) == defaults


def test_defaults_are_those_of_the_comment_beside_them() -> None:
    comment = HEADER.read_text().partition("#pragma once")[0]
    shown = {name: int(value) for name, value in re.findall(r"\b(\w+) = (\d+)\b", comment)}
    del shown["number"]  # of a node
    assert shown == in_code()


def test_up_writes_the_defaults_but_for_a_smaller_table() -> None:
    written = numbers(tomllib.loads(cluster_text(Options())))
    assert written.pop("bucket_bits") == 16
    assert written == {name: in_code()[name] for name in written}
    assert written.keys() == {"lanes", "ping_ms", "misses", "lease_ms", "retry_cycles"}
