# SPDX-License-Identifier: Apache-2.0
"""Encodes the operators of `Session.stream(operators=...)` for the agent (docs/guide/move-operators.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wherry.errors import InvalidArgument, Unsupported
from wherry.move import predicate


def to_wire(operators: Sequence[Mapping[str, Any]], schema: pa.Schema) -> str:
    """Encodes the declarations for the agent as JSON, with pyarrow expressions as Substrait.

    This function checks only the form; the agent checks names and types. Raises InvalidArgument; Unsupported for an
    expression that cannot be sent.
    """
    if isinstance(operators, str | bytes | Mapping) or not isinstance(operators, Sequence):
        raise InvalidArgument(f"operators is a {type(operators).__name__}: want a list of dicts")
    wire = [_derived(one, schema) for one in operators]
    try:
        return json.dumps(wire, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"operators: not numbers, texts, lists and dicts alone: {error}") from None


def _derived(one: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    if not isinstance(one, Mapping):
        raise InvalidArgument(f"operators: want {{'name': ..., 'steps': [...]}}, not {one!r}")
    wire = dict(one)
    steps = wire.get("steps", [])
    if not isinstance(steps, list | tuple):
        raise InvalidArgument(f"operators: 'steps' is a {type(steps).__name__}: want a list")
    known: pa.Schema | None = schema
    wire["steps"] = []
    for step in steps:
        if isinstance(step, Mapping) and isinstance(step.get("filter"), pc.Expression):
            if known is None:
                raise Unsupported(
                    "operators: after an aggregate, a filter is a list such as ['>', 'x_mean', 3]: an expression "
                    "needs the types of the columns"
                )
            step = {**step, "filter": predicate.to_wire(step["filter"], known)}
        elif isinstance(step, Mapping) and "aggregate" in step:
            known = None
        wire["steps"].append(step)
    return wire
