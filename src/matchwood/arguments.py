"""Checks of arguments: one rule for each kind, used by every part of the library.

Every check returns the argument in the form that its caller expects, or raises TypeError (wrong
kind) or ValueError (wrong value) with a message that names function, argument, what was expected
and what was given.  All work for NumPy and CuPy arrays alike.
"""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

INDEX = ("int32", "int64")
LARGEST = sys.float_info.max  # a Python integer may be larger, and is then no float
MOST = 2**63 - 1  # the largest number that a kernel can count to
SHOWN = 80  # characters of a value in a message
PREFIXES = ("", "K", "M", "G", "T")  # of bytes: powers of 1000, or of 1024 where an "i" follows
SIZE = re.compile(
    r"\s*(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})\s*(?:([KMGT]?)(?:(?<=[KMGT])(I))?B?)\s*",
    re.IGNORECASE | re.ASCII,
)


def shown(value: Any) -> str:
    """`value` as text for messages: one line of at most `SHOWN` characters."""
    if isinstance(value, int) and value.bit_length() > 300:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 4]} ..."


def is_integer(value: Any) -> bool:
    """Whether it is Python's or NumPy's integer; truth values and durations are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def plain(function: str, name: str, value: Any) -> Any:
    """`value` as a NumPy array, or as it is on a GPU; the memory is that of `value` if it has some.

    Of a subclass the plain array is taken.  A masked array is refused: what its mask hides would
    count again.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{function}: {name} must be an array without a mask; fill it first")
    if hasattr(value, "__cuda_array_interface__"):
        return value
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths, for one
        kind = type(value).__name__
        raise TypeError(f"{function}: {name} must be an array, got {kind}") from None


def vector(function: str, name: str, value: Any, kinds: Iterable[str]) -> Any:
    """`value` as a one-dimensional array whose type is one of `kinds`, else a clear error."""
    array = plain(function, name, value)
    kinds = tuple(kinds)
    if array.ndim != 1:
        raise ValueError(f"{function}: {name} must be one-dimensional, got shape {array.shape}")
    if array.dtype not in kinds:  # compares the order of bytes, too
        raise TypeError(f"{function}: {name} must be {' or '.join(kinds)}, got {array.dtype}")
    return array


def integers(
    function: str,
    name: str,
    value: Any,
    *,
    size: int | None = None,
    low: int | None = None,
    high: int | None = None,
) -> Any:
    """`value` as a one-dimensional array of integers, of that size and within low..high.

    Floats are refused, also whole ones: what is no integer must not be rounded to a vertex.
    Nothing is copied that already is an array; the type of the integers is left as it is.
    """
    array = plain(function, name, value)
    if array.ndim != 1:
        raise ValueError(f"{function}: {name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0 and not hasattr(value, "dtype"):
        array = array.astype(np.int64)  # an empty list has no type of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"{function}: {name} must hold integers, got dtype {array.dtype}")
    if size is not None and array.size != size:
        raise ValueError(f"{function}: {name} must have {size} elements, got {array.size}")
    if array.size and (low is not None or high is not None):
        least, most = int(array.min()), int(array.max())
        if (low is not None and least < low) or (high is not None and most > high):
            worst = least if low is not None and least < low else most
            at = int((array == worst).argmax())
            bounds = f"lie within {low}..{high}" if high is not None else f"be at least {low}"
            raise ValueError(f"{function}: {name} must {bounds}, got {worst} at {at}")
    return array


def numbers(function: str, name: str, value: Any, *, size: int | None = None) -> Any:
    """`value` as a one-dimensional array of finite real numbers, of that size."""
    array = plain(function, name, value)
    if array.ndim != 1:
        raise ValueError(f"{function}: {name} must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{function}: {name} must hold real numbers, got dtype {array.dtype}")
    if size is not None and array.size != size:
        raise ValueError(f"{function}: {name} must have {size} elements, got {array.size}")
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # of long doubles what float64 holds
            array = array.astype(np.float64) if array.dtype.itemsize > 8 else array
        good = np.isfinite(array)
        if not bool(good.all()):
            at = int(good.argmin())
            raise ValueError(f"{function}: {name} must be finite, got {array[at]} at {at}")
    return array


def same_size(function: str, name: str, array: Any, other_name: str, other: Any) -> None:
    """Raise unless the two arrays have the same number of elements."""
    if array.size != other.size:
        sizes = f"{array.size} and {other.size}"
        raise ValueError(f"{function}: {name} must have the size of {other_name}, got {sizes}")


def integer(function: str, name: str, value: Any) -> int:
    """`value` as a Python integer; truth values are none."""
    if not is_integer(value):
        raise TypeError(f"{function}: {name} must be an integer, got {type(value).__name__}")
    return int(value)


def count(function: str, name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """`value` as a Python integer between `least` and `most`, by default what 64 bits hold."""
    if not is_integer(value):
        raise TypeError(f"{function}: {name} must be an integer, got {shown(value)}")
    if value < least:
        raise ValueError(f"{function}: {name} must be at least {least}, got {shown(int(value))}")
    if value > most:
        raise ValueError(f"{function}: {name} must be at most {most}, got {shown(int(value))}")
    return int(value)


def byte_size(function: str, name: str, value: Any, least: int = 1) -> int:
    """Bytes from a number or from text with a unit: "8 GiB", "500MB", "1.5G"."""
    if not isinstance(value, str):
        return count(function, name, value, least)
    found = SIZE.fullmatch(value)
    if found is None:
        raise ValueError(
            f"{function}: {name} must be bytes or text such as '8 GiB' or '500 MB', "
            f"got {shown(value)}"
        )
    unit = (1024 if found[3] else 1000) ** PREFIXES.index(found[2].upper())
    size = int(Fraction(found[1]) * unit)
    if not least <= size <= MOST:
        low = "1 byte" if least == 1 else f"{least} bytes"
        raise ValueError(f"{function}: {name} must be {low} to {MOST} bytes, got {shown(value)}")
    return size


def seed(function: str, rng: Any) -> int:
    """The 64-bit seed that `rng` stands for; None is 0, from a Generator one number is drawn."""
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**64, dtype=np.uint64))
    if not is_integer(rng):
        raise TypeError(
            f"{function}: rng must be an integer, a Generator or None, got {shown(rng)}"
        )
    if not 0 <= rng < 2**64:
        raise ValueError(f"{function}: rng must lie in 0 .. 2**64 - 1, got {shown(int(rng))}")
    return int(rng)


def real(function: str, name: str, value: Any, least: float, most: float = math.inf) -> float:
    """`value` as a finite float between `least` and `most`."""
    if not (is_integer(value) or isinstance(value, (float, np.floating))):
        raise TypeError(f"{function}: {name} must be a number, got {shown(value)}")
    found = float(value) if isinstance(value, np.floating) else value  # one type for all bounds
    if not (least <= found <= min(most, LARGEST) and math.isfinite(found)):
        bounds = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise ValueError(f"{function}: {name} must be finite and {bounds}, got {shown(value)}")
    return float(found)


def at_most(function: str, name: str, value: int, most: int, why: str) -> int:
    if value > most:
        got = shown(value)
        raise ValueError(f"{function}: {name} must be at most {most} ({why}), got {got}")
    return value


def flag(function: str, name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{function}: {name} must be True or False, got {shown(value)}")
    return bool(value)


def one_of(function: str, name: str, value: Any, choices: Sequence[Any]) -> Any:
    for choice in choices:
        if value is choice or (type(value) is type(choice) and value == choice):
            return value
    expected = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"{function}: {name} must be one of {expected}, got {shown(value)}")


def value_type(function: str, dtype: Any) -> np.dtype[Any]:
    """float32 or float64."""
    chosen = any_type(dtype)
    if chosen is None or chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"{function}: dtype must be float32 or float64, got {shown(dtype)}")
    return chosen


def any_type(dtype: Any) -> np.dtype[Any] | None:
    """NumPy's type of numbers for `dtype`; None where there is none."""
    if dtype is None:  # which NumPy takes for float64
        return None
    try:
        return np.dtype(dtype)
    except Exception:  # NumPy calls methods of the object, which may raise anything
        return None


def path(function: str, name: str, value: Any) -> str:
    """`value` as the name of a file.  The number of an open file is none."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise TypeError(f"{function}: {name} must be the name of a file, got {shown(value)}")
    if not value or "\0" in value:
        raise ValueError(f"{function}: {name} must be the name of a file, got {shown(value)}")
    return value


def without_ranks(function: str, grid: Any, order: Any) -> None:
    """Raise unless `grid` and `order` are left out: without ranks they would be ignored."""
    for name, value, default in (("grid", grid, None), ("order", order, "auto")):
        if value is not default and not (isinstance(value, str) and value == default):
            raise ValueError(
                f"{function}: {name} must be {default!r} without comm, got {shown(value)}"
            )


def callback(function: str, name: str, value: Any) -> Any:
    """`value`, which can be called, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{function}: {name} must be callable or None, got {shown(value)}")
    return value


def grid_shape(function: str, shape: Any, dimensions: Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple of integers, one for each dimension."""
    expected = " or ".join(str(d) for d in dimensions)
    if not isinstance(shape, (tuple, list)):
        got = shown(shape)
        raise TypeError(f"{function}: shape must be a tuple of {expected} integers, got {got}")
    if len(shape) not in dimensions:
        raise ValueError(f"{function}: shape must have {expected} entries, got {tuple(shape)}")
    return tuple(count(function, "shape", length) for length in shape)


def index_type(n: int) -> Any:
    """int32 where the numbers 0..n fit, else int64."""
    return np.dtype(np.int32 if n < 1 << 31 else np.int64)


def in_words(
    function: str,
    given: Mapping[str, Any],
    known: Mapping[str, Any],
    words: Mapping[str, str],
    stacklevel: int = 3,
) -> dict[str, Any]:
    """The arguments `known`, with what is `given` by an old name put in under its new one.

    `words` maps old names to new ones.  Each old name gives a DeprecationWarning; TypeError for a
    name that is neither old nor new.  A public function that calls this itself leaves `stacklevel`.
    """
    found = dict(known)
    for name, value in given.items():
        if name not in words:
            raise TypeError(f"{function}: unknown argument {name!r}")
        new = words[name]
        text = f"{function}: {name} is called {new} now, and {name} will go with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
        found[new] = value
    return found
