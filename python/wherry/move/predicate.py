# SPDX-License-Identifier: Apache-2.0
"""A reader's conditions on rows: a pyarrow Expression, or a tree of lists (docs/guide/move-operators.md).

pc.field("x") > 3                               # pyarrow.compute
["and", [">", "x", 3], ["in", "kind", ["ion"]]]     # the same kind of thing for any language
"""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from wherry.errors import InvalidArgument, Unsupported

Filter: TypeAlias = "pc.Expression | Sequence[Any] | dict[str, str]"
"""A condition on the columns of a stream."""

_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def to_wire(condition: Filter, schema: pa.Schema) -> Any:
    """Encodes the condition for the agent as JSON.

    A pyarrow Expression is sent as Substrait. Raises Unsupported if Substrait cannot express it; InvalidArgument if
    `condition` is not a condition.
    """
    if isinstance(condition, pc.Expression):
        return {"substrait": base64.b64encode(_substrait(condition, schema)).decode()}
    if isinstance(condition, dict) and set(condition) == {"substrait"}:  # already encoded, for another agent
        return condition
    if not isinstance(condition, list | tuple):
        raise InvalidArgument(
            f"filter is a {type(condition).__name__}: want a pyarrow Expression (pyarrow.compute.field('x') > 3) or a "
            "list ['>', 'x', 3]"
        )
    try:
        return json.loads(json.dumps(condition, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"filter: not numbers, texts and lists alone: {error}") from None


def to_expression(condition: Filter, schema: pa.Schema) -> pc.Expression:
    """The condition as a pyarrow Expression. Raises InvalidArgument."""
    if isinstance(condition, pc.Expression):
        return condition
    return _tree(to_wire(condition, schema), schema)


def _substrait(condition: pc.Expression, schema: pa.Schema) -> bytes:
    """Encodes an Expression as a Substrait ExtendedExpression over the columns whose types Substrait supports.

    The agent finds the columns by name and uses their real types, so the types here only determine the types of
    literals. The types are widened, so that pyarrow does not insert casts of columns, which Substrait could not
    express.
    """
    import pyarrow.substrait as substrait

    fields = []
    for field in schema:
        widened = pa.field(field.name, _widened(field.type))
        try:
            substrait.serialize_schema(pa.schema([widened]))
        except pa.ArrowException:
            continue
        fields.append(widened)
    try:
        return bytes(condition.to_substrait(pa.schema(fields)))
    except pa.ArrowException as error:
        text = str(error).splitlines()[0]
        raise Unsupported(
            f"filter {condition}: {text}; what Substrait cannot say may go as a list, ['>', 'x', 3]"
        ) from None


def _widened(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _widened(kind.value_type)
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    return kind


def _tree(condition: Any, schema: pa.Schema) -> pc.Expression:
    """Converts a tree of lists to an Expression, like src/move/operate/predicate.cpp."""
    if not isinstance(condition, list) or not condition:
        raise InvalidArgument(f"filter: want ['and', ...], ['<', 'column', value] or the like, not {condition!r}")
    name, *rest = condition
    if name in ("and", "or") and rest:
        made = _tree(rest[0], schema)
        for one in rest[1:]:
            made = made & _tree(one, schema) if name == "and" else made | _tree(one, schema)
        return made
    if name == "not" and len(rest) == 1:
        return ~_tree(rest[0], schema)
    if name in ("is_null", "is_valid", "is_nan") and len(rest) == 1:
        column = pc.field(_column(rest[0], schema))
        return {"is_null": column.is_null, "is_valid": column.is_valid, "is_nan": column.is_nan}[name]()
    if name == "in" and len(rest) == 2 and isinstance(rest[1], list) and rest[1]:
        column = _column(rest[0], schema)
        values = pa.array([_value(one, schema.field(column)).as_py() for one in rest[1]])
        return pc.field(column).isin(values)
    if name in _COMPARE and len(rest) == 2:
        column = _column(rest[0], schema)
        other = rest[1]
        if isinstance(other, dict):
            right = pc.field(_column(other.get("column"), schema))
        else:
            right = pc.scalar(_value(other, schema.field(column)))
        return _COMPARE[name](pc.field(column), right)
    raise InvalidArgument(f"filter: unknown condition {condition!r}")


def _column(name: Any, schema: pa.Schema) -> str:
    if not isinstance(name, str) or len(schema.get_all_field_indices(name)) != 1:
        raise InvalidArgument(f"filter: there is no column {name!r}, or several; columns: {', '.join(schema.names)}")
    return name


def _value(value: Any, field: pa.Field) -> pa.Scalar[Any]:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
    try:
        if isinstance(value, str) and not textual:
            return pa.scalar(value).cast(kind)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63:
            return pa.scalar(value, pa.uint64())
        if isinstance(value, bool | int | float | str):
            return pa.scalar(value)
    except (pa.ArrowException, OverflowError):
        pass
    raise InvalidArgument(f"filter: {value!r} is not a value of type {kind}")


def chosen(columns: Sequence[str] | None, schema: pa.Schema) -> list[str] | None:
    """The columns that a reader requests. Raises InvalidArgument for a column that does not exist or is named twice."""
    if columns is None:
        return None
    if isinstance(columns, str) or not all(isinstance(one, str) for one in columns):
        raise InvalidArgument(f"columns is {columns!r}: want a list of names")
    for one in columns:
        if len(schema.get_all_field_indices(one)) != 1:
            raise InvalidArgument(f"columns: there is no {one!r}, or several; columns: {', '.join(schema.names)}")
    if len(set(columns)) != len(columns):
        raise InvalidArgument(f"columns is {columns!r}: one is named twice")
    return list(columns)
