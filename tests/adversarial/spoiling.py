"""Ways to spoil a right answer: one element or one field at a time, by value, shape or kind.

`spoils(value)` gives the ways for an array or a number as (name, function of (value, rng, n)).  A
function returns the spoiled value, or None where it cannot spoil that one.  `KINDS` are the ways
after which the value is of a kind or shape that no answer has: those are wrong in any case.  After
the others the caller decides whether the answer is wrong: another value may be right as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Way = Callable[[Any, np.random.Generator, int], Any]

OUTSIDE = (-1, -2, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**62), 2**32)


def _place(a: Array, rng: np.random.Generator) -> Any:
    return np.unravel_index(int(rng.integers(a.size)), a.shape)


def _set(choose: Callable[[Any, np.random.Generator, int], Any]) -> Way:
    """One element of an array becomes what `choose` says."""

    def way(a: Array, rng: np.random.Generator, n: int) -> Any:
        if a.size == 0:
            return None
        b = a.astype(np.int64) if a.dtype.kind in "iu" else a.copy()
        at = _place(a, rng)
        b[at] = choose(b[at], rng, n)
        return b

    return way


def _swap(a: Array, rng: np.random.Generator, n: int) -> Any:
    if a.size < 2:
        return None
    b, i, j = a.copy(), _place(a, rng), _place(a, rng)
    b[i], b[j] = a[j], a[i]
    return b


def _copy(a: Array, rng: np.random.Generator, n: int) -> Any:
    if a.size < 2:
        return None
    b = a.copy()
    b[_place(a, rng)] = a[_place(a, rng)]
    return b


def _wrapped(a: Array, rng: np.random.Generator, n: int) -> Any:
    """A number that is the right one modulo 2^32."""
    if a.size == 0:
        return None
    b, at = a.astype(np.int64), _place(a, rng)
    b[at] += int(rng.choice([1, -1, 2])) << 32
    return b


def _unsigned(a: Array, rng: np.random.Generator, n: int) -> Any:
    """The right number modulo 2^64, where it is negative; else more than any."""
    if a.size == 0:
        return None
    b = a.astype(np.int64).view(np.uint64).copy()
    if not (a < 0).any():
        b[_place(a, rng)] += np.uint64(2**63)
    return b


def _half(a: Array, rng: np.random.Generator, n: int) -> Any:
    if a.size == 0:
        return None
    b, at = a.astype(np.float64), _place(a, rng)
    b[at] += rng.choice([0.25, 0.5, -0.25])
    return None if b[at] == a[at] else b  # large numbers have no half


def _nan(a: Array, rng: np.random.Generator, n: int) -> Any:
    if a.size == 0:
        return None
    b = a.astype(a.dtype if a.dtype.kind == "f" else np.float64)
    b[_place(a, rng)] = rng.choice([np.nan, np.inf, -np.inf])
    return b


def _cast(kind: Any) -> Way:
    return lambda a, rng, n: a.astype(kind) if a.size else None


def _one(a: Array) -> Array:
    return np.zeros((1, *a.shape[1:]), a.dtype)


SHAPES: dict[str, Way] = {
    "short": lambda a, rng, n: a[:-1] if len(a) else None,
    "long": lambda a, rng, n: np.concatenate([a, a[-1:] if len(a) else _one(a)]),
    "column": lambda a, rng, n: a[..., None] if a.size else None,
    "row": lambda a, rng, n: a[None] if a.size else None,
    "none": lambda a, rng, n: None if a.size == 0 else a[:0],
}  # fmt: skip
INTEGERS: dict[str, Way] = {
    "other": _set(lambda x, rng, n: rng.integers(0, max(n, 1))),
    "step": _set(lambda x, rng, n: x + rng.choice([-1, 1])),
    "outside": _set(lambda x, rng, n: rng.choice([*OUTSIDE, n, n + 1, -n])),
    "wrapped": _wrapped,
    "unsigned": _unsigned,
    "swap": _swap,
    "copy": _copy,
    "all": lambda a, rng, n: a + 1 if a.size else None,
    "merged": lambda a, rng, n: (
        np.where(a == rng.choice(a.ravel()), rng.choice(a.ravel()), a) if a.size else None
    ),
    "renamed": lambda a, rng, n: (
        rng.permutation(int(a.max()) + 1)[a]
        if a.size and 0 <= a.min() and a.max() < 10**6
        else None
    ),
    "one": lambda a, rng, n: np.zeros_like(a) if a.size else None,
    "each alone": lambda a, rng, n: np.arange(a.size).reshape(a.shape) if a.size else None,
}
FLOATS: dict[str, Way] = {
    "nan": _nan,
    "next": _set(lambda x, rng, n: np.nextafter(x, x.dtype.type(np.inf))),
    "zero": _set(lambda x, rng, n: 0),
    "negative": _set(lambda x, rng, n: -x),
    "double": _set(lambda x, rng, n: 2 * x),
    "more": _set(lambda x, rng, n: x + 1),
    "swap": _swap,
    "copy": _copy,
}
FLAGS: dict[str, Way] = {
    "flip": _set(lambda x, rng, n: not x),
    "swap": _swap,
    "two": lambda a, rng, n: _set(lambda x, *_: 2)(a.astype(np.int64), rng, n),
    "minus": lambda a, rng, n: _set(lambda x, *_: -1)(a.astype(np.int64), rng, n),
}
NO_INTEGERS: dict[str, Way] = {
    "float": _cast(np.float64),
    "half": _half,
    "no number": _nan,
    "complex": _cast(np.complex128),
    "text": _cast(str),
    "object": _cast(object),
    "truth": _cast(bool),
}
NO_FLOATS: dict[str, Way] = {name: NO_INTEGERS[name] for name in ("complex", "text", "object")}
NO_FLAGS: dict[str, Way] = {
    name: NO_INTEGERS[name] for name in ("float", "complex", "text", "object")
}
WHOLE: dict[str, Way] = {
    "step": lambda x, rng, n: x + int(rng.choice([-1, 1])),
    "large": lambda x, rng, n: x + (1 << int(rng.choice([32, 64, 70]))),
    "float": lambda x, rng, n: float(x),
    "half": lambda x, rng, n: x + 0.5,
    "nan": lambda x, rng, n: math.nan,
    "text": lambda x, rng, n: str(x),
    "truth": lambda x, rng, n: x > 0,
}
REAL: dict[str, Way] = {
    "nan": lambda x, rng, n: math.nan,
    "infinite": lambda x, rng, n: float(rng.choice([math.inf, -math.inf])),
    "more": lambda x, rng, n: x + 1,
    "little": lambda x, rng, n: x * (1 + 1e-7),
    "negative": lambda x, rng, n: -x,
    "text": lambda x, rng, n: str(x),
}
KINDS = {*SHAPES, *NO_INTEGERS, "two", "minus", "unsigned"}


def spoils(value: Any) -> dict[str, Way]:
    if isinstance(value, np.ndarray):
        kind = value.dtype.kind
        if kind == "b":
            return {**FLAGS, **SHAPES, **NO_FLAGS}
        return {**INTEGERS, **SHAPES, **NO_INTEGERS} if kind in "iu" else {
            **FLOATS, **SHAPES, **NO_FLOATS
        }  # fmt: skip
    return WHOLE if isinstance(value, (int, np.integer)) else REAL


def equal(one: Any, other: Any) -> bool:
    """The same numbers in the same shape."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and bool((one == other).all())
    return type(one) is type(other) and bool(one == other)


FORMS: dict[str, Callable[[Array], Any]] = {
    "int64": lambda a: a.astype(np.int64),
    "int32": lambda a: a.astype(np.int32),
    "int16": lambda a: a.astype(np.int16),
    "unsigned": lambda a: a.astype(np.uint32) if a.size and a.min() >= 0 else a,
    "big-endian": lambda a: a.astype(">i8"),
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "read-only": lambda a: _frozen(a.copy()),
    "list": lambda a: a.tolist(),
}
"""Forms in which the same integers are the same answer."""


def _frozen(a: Array) -> Array:
    a.flags.writeable = False
    return a


def refused(check: Any, *arguments: Any, **options: Any) -> bool:
    """Whether a check refuses this answer."""
    try:
        check(*arguments, **options)
    except (ValueError, TypeError):
        return True
    return False
