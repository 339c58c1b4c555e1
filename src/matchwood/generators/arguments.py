"""What the generators ask of their arguments, and the matrix that they hand out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import engines
from matchwood.primitives.arguments import count

Array = Any  # of NumPy, or of CuPy with engine="gpu"
Matrix = Any  # scipy.sparse.csr_array, or cupyx.scipy.sparse.csr_matrix with engine="gpu"


def seed(caller: str, rng: Any) -> int:
    """The 64-bit seed that `rng` stands for; None is 0, a Generator is asked for one number."""
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**64, dtype=np.uint64))
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)):
        raise TypeError(f"{caller}: rng must be an integer, a Generator or None, got {rng!r}")
    if not 0 <= rng < 2**64:
        raise ValueError(f"{caller}: rng must lie in 0 .. 2**64 - 1, got {rng}")
    return int(rng)


def real(caller: str, name: str, value: Any, least: float, most: float = math.inf) -> float:
    """`value` as a finite float between `least` and `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"{caller}: {name} must be a number, got {value!r}")
    if not (least <= value <= most and math.isfinite(value)):
        bounds = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise ValueError(f"{caller}: {name} must be finite and {bounds}, got {value}")
    return float(value)


def at_most(caller: str, name: str, value: int, most: int, why: str) -> int:
    if value > most:
        raise ValueError(f"{caller}: {name} must be at most {most} ({why}), got {value}")
    return value


def flag(caller: str, name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{caller}: {name} must be True or False, got {value!r}")
    return bool(value)


def one_of(caller: str, name: str, value: Any, choices: Sequence[Any]) -> Any:
    if not any(value is choice or (type(value) is type(choice) and value == choice)
               for choice in choices):  # fmt: skip
        expected = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{caller}: {name} must be one of {expected}, got {value!r}")
    return value


def value_type(caller: str, dtype: Any) -> np.dtype[Any]:
    """float32 or float64."""
    try:
        chosen = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{caller}: dtype must be float32 or float64, got {dtype!r}") from None
    if dtype is None or chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"{caller}: dtype must be float32 or float64, got {dtype!r}")
    return chosen


def grid_shape(caller: str, shape: Any, dimensions: Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple of integers, one for each dimension."""
    expected = " or ".join(str(d) for d in dimensions)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"{caller}: shape must be a tuple of {expected} integers, got {shape!r}")
    if len(shape) not in dimensions:
        raise ValueError(f"{caller}: shape must have {expected} entries, got {tuple(shape)}")
    return tuple(count(caller, "shape", length) for length in shape)


def matrix(n: int, indptr: Array, indices: Array, data: Array, *, canonical: bool = True) -> Matrix:
    """The finished graph, on the engine of its arrays.

    canonical: rows are sorted and free of duplicates, and SciPy need not look.
    """
    if engines.location(indices) == "cpu":
        A = sp.csr_array((data, indices, indptr), shape=(n, n))
    else:
        from cupyx.scipy.sparse import csr_matrix

        A = csr_matrix((data, indices, indptr), shape=(n, n))
    if canonical:
        A.has_canonical_format = True
    return A


def ones(like: Array, dtype: np.dtype[Any]) -> Array:
    """As many ones as `like` has elements, where `like` lives."""
    if engines.location(like) == "gpu":
        return engines.cupy().ones(like.size, dtype)
    return np.ones(like.size, dtype)
