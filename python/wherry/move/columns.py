# SPDX-License-Identifier: Apache-2.0
"""Converts an application's columns to numpy arrays with Arrow's layout, or to Arrow arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from wherry.errors import InvalidArgument, Unsupported


def numpy_type(name: str, dtype: np.dtype[Any]) -> pa.DataType:
    """The Arrow type with the same bytes as `dtype`, or the type that the host converts to (see _converted())."""
    if dtype.kind == "S":
        return pa.binary()
    if dtype.kind in "UT":
        return pa.string()
    try:
        if dtype.kind in "biufmM":
            return pa.from_numpy_dtype(dtype)
    except pa.ArrowNotImplementedError:
        pass
    raise Unsupported(f"column '{name}': no Arrow type for numpy's {dtype}")


def _converted(value: np.ndarray[Any, Any]) -> bool:
    """Whether Arrow stores these values in another form, so that the host must convert them to an Arrow array.

    Arrow packs booleans into bits and strings into one buffer, stores days in 32 bits, and masks as bitmaps.
    """
    return value.dtype.kind in "bOSUT" or value.dtype == np.dtype("M8[D]") or isinstance(value, np.ma.MaskedArray)


def _check_shape(name: str, value: np.ndarray[Any, Any]) -> None:
    if value.ndim not in (1, 2):
        raise InvalidArgument(f"column '{name}': {value.ndim} dimensions; want (rows,) or (rows, values per row)")


def _from_numpy(name: str, value: np.ndarray[Any, Any], wanted: pa.DataType | None) -> pa.Array:
    """Converts values to an Arrow array. `wanted`: the column's type, which selects among the string types."""
    items = wanted.value_type if wanted is not None and pa.types.is_fixed_size_list(wanted) else wanted
    texts = value.dtype.kind in "OSUT"
    if not texts:
        numpy_type(name, value.dtype)
    try:
        # Convert fixed-width texts to objects first: pyarrow would cut each text at its first zero byte.
        flat = value.reshape(-1).astype(object) if value.dtype.kind in "SU" else value.reshape(-1)
        flat = pa.array(flat, type=items if texts else None)
        if value.ndim == 1:
            return flat
        if texts and wanted is not None and pa.types.is_fixed_size_list(wanted) and wanted.list_size == value.shape[1]:
            return pa.FixedSizeListArray.from_arrays(flat, type=wanted)
        return pa.FixedSizeListArray.from_arrays(flat, value.shape[1])
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"column '{name}': no Arrow array can be made of this {value.dtype} array: {error}"
        ) from None


def as_column(name: str, value: Any, wanted: pa.DataType | None = None) -> np.ndarray[Any, Any] | pa.Array:
    """Converts a column to a numpy or Arrow array for C++, without a copy if possible."""
    if isinstance(value, np.ndarray):
        _check_shape(name, value)
        if _converted(value):
            return _from_numpy(name, value, wanted)
        numpy_type(name, value.dtype)
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        return np.ascontiguousarray(value)
    if isinstance(value, pa.Array):
        return value
    try:
        if isinstance(value, pa.ChunkedArray):
            return _one_chunk(name, value)
        if hasattr(value, "__arrow_c_array__"):
            return pa.array(value)
        if hasattr(value, "__arrow_c_stream__"):
            return _one_chunk(name, pa.chunked_array(value))
        if isinstance(value, list | tuple):
            return pa.array(value, type=wanted)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"column '{name}': {error}") from None
    raise InvalidArgument(f"column '{name}': a {type(value).__name__} is neither a numpy array nor an Arrow array")


def check_in_place(name: str, given: Any, taken: np.ndarray[Any, Any] | pa.Array) -> None:
    """Raises InvalidArgument if `taken`, which was made from `given`, is a copy that would not see later changes of
    `given`."""
    if isinstance(given, np.ndarray):
        same = isinstance(taken, np.ndarray) and taken.ctypes.data == given.ctypes.data
        if same or (isinstance(taken, np.ndarray) and taken.nbytes == 0):
            return
        how = "converted" if isinstance(taken, pa.Array) else "copied"
        raise InvalidArgument(
            f"{name}: this {given.dtype} array would be {how} first, and later posts would not see its changes: bind a "
            "C-contiguous array of a type that Arrow has as it is, or offload() it each time"
        )
    if isinstance(given, list | tuple) or (isinstance(given, pa.ChunkedArray) and given.num_chunks != 1):
        raise InvalidArgument(f"{name}: a {type(given).__name__} would be copied: bind a numpy array or an Arrow array")


def _one_chunk(name: str, value: pa.ChunkedArray) -> pa.Array:
    if value.num_chunks == 1:
        return value.chunk(0)
    whole = value.combine_chunks()
    if not isinstance(whole, pa.Array):
        raise InvalidArgument(f"column '{name}': its chunks do not fit into one array: offload them one by one")
    return whole


def _field(name: str, value: Any) -> pa.Field:
    if isinstance(value, np.ndarray):
        _check_shape(name, value)
        if value.dtype.kind == "O":
            return pa.field(name, _from_numpy(name, value, None).type)
        kind = numpy_type(name, value.dtype)
        # Missing strings, NaT in days, and masked values become nulls.
        nullable = isinstance(value, np.ma.MaskedArray) or (_converted(value) and value.dtype.kind not in "bSU")
        if value.ndim == 2:
            kind = pa.list_(kind, value.shape[1])
        return pa.field(name, kind, nullable=nullable)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return pa.field(name, value.type)
    column: Any = as_column(name, value)
    return pa.field(name, column.type)


def schema_of(data: Any) -> pa.Schema:
    """The Arrow schema of `data`, which is a schema or anything that `Stream.offload` accepts.

    A numpy array (n,) becomes a plain column, (n, k) a fixed-size list of k. Raises InvalidArgument, Unsupported.
    """
    if isinstance(data, pa.Schema):
        return data
    if isinstance(data, Mapping):
        return pa.schema([_field(name, value) for name, value in data.items()])
    if isinstance(getattr(data, "schema", None), pa.Schema):
        return data.schema
    try:
        if hasattr(data, "__arrow_c_schema__"):
            return pa.schema(data)
        if hasattr(data, "__arrow_c_array__"):
            return batch_of_structs(pa.array(data)).schema
        if hasattr(data, "__arrow_c_stream__"):
            with pa.RecordBatchReader.from_stream(data) as reader:
                return reader.schema
    except (pa.ArrowException, TypeError) as error:
        raise InvalidArgument(f"a {type(data).__name__} has no schema of a batch: {error}") from None
    wanted = "want a pyarrow.Schema, a dict of arrays, a batch or a table"
    raise InvalidArgument(f"a {type(data).__name__} is not a schema: {wanted}")


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """An empty batch. Unlike from_pylist(), this supports all types."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def batch_of_structs(rows: pa.Array) -> pa.RecordBatch:
    """The members of a struct array as columns. The array may be a slice."""
    if not pa.types.is_struct(rows.type):
        raise InvalidArgument(f"cannot offload an array of {rows.type} as a batch: want one of structs")
    if rows.null_count != 0:
        raise InvalidArgument(f"the struct array has {rows.null_count} null rows, which a batch cannot have")
    return pa.RecordBatch.from_struct_array(rows)


def same_bytes(dtype: np.dtype[Any], wanted: pa.DataType) -> bool:
    """Whether numpy values of `dtype` have the same bytes as values of the Arrow type `wanted`.

    datetime64 fits timestamps of the same unit with any time zone. Integers fit Arrow's time types that numpy lacks.
    """
    if dtype.kind == "M":
        return bool(pa.types.is_timestamp(wanted) and wanted.unit == np.datetime_data(dtype)[0])
    if dtype.kind == "i" and pa.types.is_temporal(wanted) and not pa.types.is_interval(wanted):
        return bool(wanted.bit_width == dtype.itemsize * 8)
    return False
