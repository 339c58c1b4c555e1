"""What the primitives ask of their arguments, and the call of an engine, in one place.

Works for NumPy and CuPy arrays alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from matchwood import engines

INDEX = ("int32", "int64")


def vector(function: str, name: str, value: Any, kinds: Iterable[str]) -> Any:
    """`value` as a one-dimensional array whose type is one of `kinds`, else a clear error."""
    array = value if hasattr(value, "dtype") and hasattr(value, "ndim") else np.asarray(value)
    kinds = tuple(kinds)
    if array.ndim != 1:
        raise ValueError(f"{function}: {name} must be one-dimensional, got shape {array.shape}")
    if array.dtype.name not in kinds or not array.dtype.isnative:
        raise TypeError(f"{function}: {name} must be {' or '.join(kinds)}, got {array.dtype}")
    return array


def same_size(function: str, name: str, array: Any, other_name: str, other: Any) -> None:
    """Raise unless the two arrays have the same number of elements."""
    if array.size != other.size:
        raise ValueError(
            f"{function}: {name} must have the size of {other_name}, "
            f"got {array.size} and {other.size}"
        )


def count(function: str, name: str, value: Any, least: int = 0) -> int:
    """`value` as a Python integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{function}: {name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{function}: {name} must be at least {least}, got {value}")
    return int(value)


def index_type(n: int) -> Any:
    """int32 where the numbers 0..n fit, else int64."""
    return np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)


def call(
    package: str, function: str, arguments: tuple[Any, ...], engine: str | None, **options: Any
) -> Any:
    """Call ``function(*arguments, **options)`` of the engine's file in `package`.

    The engine is the one where the arrays live, unless `engine` names another; then the arrays
    are moved there for the call, and the result (an array or a tuple of arrays) is moved back.
    """
    places = {engines.location(value) for value in arguments if hasattr(value, "__len__")}
    if len(places) > 1:
        raise TypeError(f"{function}: all arrays must live on one engine, got CPU and GPU arrays")
    where = places.pop()
    chosen = engines.resolve(where, engine)
    home = engines.home(chosen)
    moved = [
        engines.moved(value, home) if hasattr(value, "__len__") else value for value in arguments
    ]
    result = getattr(engines.load(package, chosen), function)(*moved, **options)
    if isinstance(result, tuple):
        return tuple(engines.moved(value, where) for value in result)
    return engines.moved(result, where)
