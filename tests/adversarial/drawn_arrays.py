"""Calls whose arrays and numbers are spoilt at random, several at once, in several ways."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from adversarial.guard_pages import guarded
from adversarial.wrong_arrays import SPARSE, leaves, replaced, spoilt

crew = importlib.import_module("matchwood.engines.cpu.crew")  # the module, not its function

Array = np.ndarray[Any, Any]
Draw = Callable[[Array, np.random.Generator], Any]

KINDS = "?bBhHiIlLqQefdgFDGmMSUOV"
WHOLE = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 11, 12, 13, 2**31 - 1, 2**31, 2**32, 2**63 - 1)
REAL = (np.nan, np.inf, -np.inf, -1.0, -0.0, 0.5, 1e-320, 1e-45, 1e308, 1.7e308, 2.0**53 + 2, 1e20)
NUMBERS = (-1, 0, 1, 2, 5, 11, 13, 100, 2**40, 2**62, 2**64, -(2**63), True, 1.0, 1.5, np.nan, None,
           "3", 3j, np.int8(3), np.uint64(12), np.float32(12), np.array(12), (12,))  # fmt: skip
MOST_ELEMENTS = 1 << 12  # arrays that grow end here


def _numbers(a: Array, rng: np.random.Generator) -> Any:
    """One to three elements become another number, of those that are often misread."""
    if not a.size or a.dtype.kind not in "iufc":
        return a
    made = a.astype(rng.choice(["i8", "u8", a.dtype.str])) if a.dtype.kind in "iu" else a.copy()
    pool = WHOLE if made.dtype.kind in "iu" else REAL
    for _ in range(int(rng.integers(1, 4))):
        number = pool[int(rng.integers(len(pool)))]
        with contextlib.suppress(OverflowError):
            made.reshape(-1)[int(rng.integers(made.size))] = number
    return made


def _moved(a: Array, rng: np.random.Generator) -> Any:
    """The same elements in another order: valid one by one, wrong together."""
    made = a.copy()
    rng.shuffle(made.reshape(-1))
    return made


def _cast(a: Array, rng: np.random.Generator) -> Any:
    with np.errstate(all="ignore"):
        return a.astype(KINDS[int(rng.integers(len(KINDS)))], copy=True)


def _swapped_bytes(a: Array, rng: np.random.Generator) -> Any:
    return a.astype(a.dtype.newbyteorder())


def _length(a: Array, rng: np.random.Generator) -> Any:
    if a.ndim == 0:
        return a
    size = min(int(rng.integers(0, 2 * a.shape[0] + 2)), MOST_ELEMENTS)
    return np.resize(a, (size, *a.shape[1:])) if a.size else np.zeros((size, *a.shape[1:]), a.dtype)


def _shape(a: Array, rng: np.random.Generator) -> Any:
    shapes = [(1, *a.shape), (*a.shape, 1), (a.size,), (a.size, 0), (0, *a.shape), (0, 0), ()]
    return np.resize(a, shapes[int(rng.integers(len(shapes)))])


def _strides(a: Array, rng: np.random.Generator) -> Any:
    if not (a.ndim and a.size):
        return a
    same = np.broadcast_to(a[:1], a.shape)
    ways = (np.asfortranarray(a), a[::-1], np.repeat(a, 2, axis=0)[::2], same)
    return ways[int(rng.integers(len(ways)))]


def _class(a: Array, rng: np.random.Generator) -> Any:
    if a.dtype.kind in "OV":
        return a
    mask = rng.random(a.shape) < 0.3
    ways = [
        lambda: np.ma.masked_array(a, mask),
        lambda: a.view(np.recarray),
        lambda: np.matrix(a) if a.ndim <= 2 else a,
        lambda: a.tolist(),
        lambda: tuple(a.tolist()) if a.ndim else a,
        lambda: memoryview(np.ascontiguousarray(a)) if a.dtype.isnative and a.size else a,
    ]
    return ways[int(rng.integers(len(ways)))]()


def _one_of_many(a: Array, rng: np.random.Generator) -> Any:
    """One of those that wrong_arrays.py makes in turn."""
    made = [found for _, found, _ in spoilt(a)] if a.dtype.kind in "?iuf" else []
    return made[int(rng.integers(len(made)))] if made else a


WAYS: dict[str, Draw] = {
    "numbers": _numbers, "moved": _moved, "cast": _cast, "bytes": _swapped_bytes,
    "length": _length, "shape": _shape, "strides": _strides, "class": _class,
    "one of many": _one_of_many,
}  # fmt: skip
LIKELY = ("numbers", "numbers", "moved", "length", *WAYS)


def spoilt_array(a: Array, rng: np.random.Generator) -> tuple[str, Any]:
    """(ways, what became of the array): one to three ways after another."""
    made, told = a, []
    for _ in range(int(rng.integers(1, 4))):
        way = LIKELY[int(rng.integers(len(LIKELY)))]
        if type(made) is not np.ndarray or made.dtype.kind not in "?iufc":
            break
        # what cannot be spoilt in this way stays
        with contextlib.suppress(TypeError, ValueError, OverflowError, IndexError):
            made = WAYS[way](made, rng)
            told.append(way)
    if type(made) is np.ndarray and made.flags.c_contiguous and not made.dtype.hasobject:
        made = guarded(made, bool(rng.integers(2)))
    return " then ".join(told), made


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, number) for every plain number inside tuples, lists and results."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.init and not field.name.startswith("_"):
                yield from numbers_in(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, (tuple, list)):
        for k, item in enumerate(value):
            yield from numbers_in(item, (*path, k))


def spoilt_call(arguments: Any, rng: np.random.Generator) -> tuple[str, Any]:
    """(what is wrong, the arguments): one or two arrays, sometimes a number."""
    arrays, told = list(leaves(arguments)), []
    for _ in range(int(rng.integers(1, 3))):
        if not arrays:
            break
        path, array = arrays[int(rng.integers(len(arrays)))]
        how, made = spoilt_array(array, rng)
        if isinstance(path[-1], str) and path[-1] in SPARSE:
            made = made if isinstance(made, np.ndarray) else np.asarray(array)
        # a result that refuses it when made, or a COO matrix whose type it does not fit
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            arguments = replaced(arguments, path, made)
            told.append(f"{'.'.join(map(str, path))}: {how}")
    numbers = list(numbers_in(arguments))
    if numbers and rng.random() < 0.3:
        path, _ = numbers[int(rng.integers(len(numbers)))]
        number = NUMBERS[int(rng.integers(len(NUMBERS)))]
        with contextlib.suppress(TypeError, ValueError):
            arguments = replaced(arguments, path, number)
            told.append(f"{'.'.join(map(str, path))}: {number!r}")
    return "; ".join(told) or "nothing", arguments


@contextlib.contextmanager
def teams_of(size: int) -> Iterator[None]:
    """Kernels on the smallest arrays run on teams of this size; 1 leaves them where they run."""
    kept = crew.INLINE_WORK, crew.SECOND_THREAD_WORK, os.environ.get("MATCHWOOD_NUM_THREADS")
    if size > 1:
        crew.INLINE_WORK = crew.SECOND_THREAD_WORK = 0
        os.environ["MATCHWOOD_NUM_THREADS"] = str(size)
    try:
        yield
    finally:
        crew.INLINE_WORK, crew.SECOND_THREAD_WORK = kept[:2]
        if kept[2] is None:
            os.environ.pop("MATCHWOOD_NUM_THREADS", None)
        else:
            os.environ["MATCHWOOD_NUM_THREADS"] = kept[2]
