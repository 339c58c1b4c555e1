"""Arrays that are wrong in every way, put in the place of each array of a valid call.

`attacks(arguments)` finds the arrays inside the arguments of a call (also in tuples, in sparse
matrices and in results made by hand) and yields the same call with one of them spoilt.  Arrays
end at a page that nobody may touch, so that a kernel which reads or writes past an end dies
there and then instead of finding what lies behind.

Run as a program it makes these calls, and after them calls with several arrays spoilt at random
(drawn_arrays.py), until the time is over: ``wrong_arrays.py FIRST END [SEED [ONLY]]``.  children.py
says how that is told.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from adversarial.children import Attack, make, unexpected
from adversarial.guard_pages import guarded

# Spoilt arrays


def _with(array: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    made = array.copy()
    made.reshape(-1)[array.size // 2] = value
    return made


def _spread(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers, every other word of a longer array."""
    room = np.zeros((*array.shape, 2), array.dtype)
    room[..., 0] = array
    return room[..., 0]


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = array.copy()
    made.setflags(write=False)
    return made


def _lengths(array: Any) -> dict[str, Any]:
    return {
        "no elements": array[:0],
        "one element less": array[:-1],
        "one element more": np.concatenate([array, array[-1:]]),
        "many more": np.concatenate([array] * 40),
        "0-d": np.array(array.reshape(-1)[0]),
        "a dimension more": array[..., None],
        "a dimension less" if array.ndim > 1 else "a row": array.reshape(-1)
        if array.ndim > 1
        else array[None],
    }


class _Subclass(np.ndarray):
    """An array of another class, as other libraries have."""


def _types(array: Any) -> dict[str, Any]:
    made = {
        "bool": array.astype(bool),
        "uint64 huge": np.full(array.shape, 2**64 - 1, np.uint64),
        "object": array.astype(object),
        "objects": np.full(array.shape, object(), object),
        "text": array.astype(str),
        "complex": array.astype(complex),
        "dates": np.zeros(array.shape, "datetime64[s]"),
        "records": np.zeros(array.shape, [("a", int), ("b", float)]),
        "None": None,
        "a number": 3,
        "a word": "nonsense",
        "a ragged list": [[1, 2], [3]],
        "a dictionary": {0: 1},
        "float16": array.astype(np.float16),
        "longdouble": array.astype(np.longdouble),
        "complex64": array.astype(np.complex64),
        "clongdouble": array.astype(np.clongdouble),
        "bytes": array.astype("S"),
        "raw": np.zeros(array.shape, "V4"),
        "durations": np.zeros(array.shape, "timedelta64[s]"),
        "int8": array.astype(np.int8),
        "uint8": array.astype(np.uint8),
        "int16": array.astype(np.int16),
        "uint32": array.astype(np.uint32),
        "uint64": array.astype(np.uint64),
        "big-endian floats": array.astype(">f4"),
        "big-endian integers": array.astype(">i2"),
        "big-endian unsigned": array.astype(">u8"),
        "a list": array.tolist(),
        "subclass": array.view(_Subclass),
        "masked": np.ma.masked_array(array, np.zeros(array.shape, bool)),
    }
    if array.dtype.kind in "iu":
        made["floats"] = array.astype(float)
        made["half"] = array + 0.5
    return made


def _numbers(array: Any) -> dict[str, Any]:
    if array.dtype.kind in "iu":
        least, most = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        numbers = [-2, -1, 0, array.size - 1, array.size, int(array.max()) + 1, 10**9, most, least]
        if array.dtype.kind == "u":
            numbers = [0, 1, most]
        made = {f"{k}": _with(array, k) for k in numbers if least <= k <= most}
        made["all 10**9"] = np.full_like(array, min(10**9, most))
        made["all least"] = np.full_like(array, least)
        made["backwards"] = array[::-1].copy()
        made["all the same"] = np.full_like(array, array.reshape(-1)[0])
    elif array.dtype.kind == "f":
        numbers = [np.nan, np.inf, -np.inf, -1.0, 0.0, np.finfo(array.dtype).max, 5e-324]
        made = {f"{number}": _with(array, number) for number in numbers}
        made["all nan"] = np.full_like(array, np.nan)
        made["all zero"] = np.zeros_like(array)
        made["all largest"] = np.full_like(array, np.finfo(array.dtype).max)
    else:
        made = {"turned": ~array}
    return made


def _same(array: Any) -> dict[str, Any]:
    """The same numbers in another form: the answer must be the same, or an error."""
    return {
        "spread": _spread(array),
        "strides backwards": array[::-1].copy()[::-1],
        "fortran": np.asfortranarray(array),
        "big-endian": array.astype(array.dtype.newbyteorder(">")),
        "read-only": _read_only(array),
        "not aligned": _not_aligned(array),
    }


def _not_aligned(array: Any) -> Any:
    room = np.zeros(array.nbytes + 1, np.uint8)
    made = room[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


SIZE, TYPE, SAME = range(3)
"""Kinds of attacks: wrong lengths and numbers; wrong types; the same numbers in another form."""


def spoilt(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, Any, int]]:
    """(what is wrong, the array, the kind of the attack)."""
    if not array.size:
        return
    for name, made in {**_lengths(array), **_numbers(array)}.items():
        yield name, guarded(made), SIZE
    for name, made in _types(array).items():
        yield name, guarded(made) if type(made) is np.ndarray else made, TYPE
    for name, made in _same(array).items():
        yield name, made, SAME


# Where the arrays of a call are

SPARSE = ("indptr", "indices", "row", "col", "offsets", "data")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, array) for every array inside."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif sp.issparse(value):
        for name in SPARSE:
            if hasattr(value, name):
                yield (*path, name), getattr(value, name)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, (tuple, list)):
        for k, item in enumerate(value):
            yield from leaves(item, (*path, k))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another array at that path; nothing is changed in place."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if sp.issparse(value):
        made = copy.copy(value)
        setattr(made, first, new)
        return made
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{first: replaced(getattr(value, first), rest, new)})
    items = list(value)
    items[first] = replaced(items[first], rest, new)
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def all_guarded(value: Any) -> Any:
    """The same arguments, with guarded memory."""
    for path, array in list(leaves(value)):
        with contextlib.suppress(TypeError, ValueError, IndexError):  # made, not given
            value = replaced(value, path, guarded(array))
    return value


class Call(NamedTuple):
    """A call that is right as it stands."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    whole: bool = False  # spoil a matrix in every way, not only in the worst
    verify: Callable[..., Any] | None = None  # (answer, *arguments): raises if the answer is wrong


WORST = ("one element less", "one element more", "a dimension more", "half", "-1", "all 10**9",
         "all least", "nan", "uint64 huge", "text")  # fmt: skip
"""All functions take a matrix through one gate, which is attacked in full with `graph`."""


def attacks(call: Call) -> Iterator[tuple[str, Callable[[], Any], int]]:
    """(what is wrong, the arguments' maker, the kind of the attack)."""
    for path, array in leaves(call.arguments):
        where = ".".join(map(str, path))
        for name, made, kind in spoilt(array):
            in_matrix = path[-1] in SPARSE or (len(path) > 1 and isinstance(path[1], int))
            if in_matrix and not call.whole and name not in WORST:
                continue
            if path[-1] in SPARSE and not isinstance(made, np.ndarray):
                continue  # SciPy itself keeps arrays there
            yield (
                f"{where}: {name}",
                lambda path=path, made=made: replaced(call.arguments, path, made),
                kind,
            )


# What came of it


def digest(value: Any) -> Any:
    """What of an answer can be compared; times cannot."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if "seconds" not in f.name]
        return [digest(getattr(value, name)) for name in names]
    if hasattr(value, "_fields"):
        return [digest(getattr(value, k)) for k in value._fields if "seconds" not in k]
    if isinstance(value, (tuple, list)):
        return [digest(item) for item in value]
    if sp.issparse(value):
        return [digest(getattr(value, name, None)) for name in SPARSE]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, (int, float, str, bool)) else None


def contents(value: Any) -> list[bytes]:
    """What the arrays of a call hold, to see whether the call changed them."""
    return [array.tobytes() for _, array in leaves(value) if not array.dtype.hasobject]


def outcome(call: Call, make: Callable[[], Any], right: Any, same: bool) -> str:
    """What is wrong with what happened; "" when nothing is."""
    try:
        arguments = make()
        before = contents(arguments)
        answer = call.function(*arguments)
    except Exception as error:
        return unexpected(error)
    if contents(arguments) != before:
        return "the input was changed"
    if same and digest(answer) != right:
        return "another answer for the same numbers"
    try:
        if call.verify is not None:
            call.verify(answer, *arguments)
    except Exception as error:
        return f"an answer that its check refuses: {type(error).__name__}: {error}"
    return ""


@functools.cache
def calls_of(name: str) -> list[Call]:
    """The valid calls of a function, in guarded memory."""
    return [call._replace(arguments=all_guarded(call.arguments)) for call in table()[name]()]


def all_attacks(end: float, seed: int = 0, only: str = "") -> Iterator[Attack]:
    """Every attack on every function, the worst on all of them first; then attacks at random."""
    if seed == 0:  # the others would make the same once more
        yield from systematic(end, only)
    if time.time() > end:  # finding the calls compiles what the attacks before did not need
        return
    yield from drawn(end, seed, [name for name in table() if only in name and calls_of(name)])


def systematic(end: float, only: str) -> Iterator[Attack]:
    right: dict[tuple[str, int], Any] = {}
    for stage in range(3):
        for name in table():
            if time.time() > end:
                return
            if only not in name:
                continue
            for number, call in enumerate(calls_of(name)):
                for what, arguments, kind in attacks(call):
                    if kind != stage:
                        continue
                    yield (
                        f"{name} | {what}",
                        functools.partial(
                            _attack, call, arguments, right, (name, number), stage == SAME
                        ),
                    )


def _attack(call: Call, make: Any, right: dict[Any, Any], key: Any, same: bool) -> str:
    if same and key not in right:
        right[key] = digest(call.function(*call.arguments))
    return outcome(call, make, right.get(key), same)


def drawn(end: float, seed: int, names: list[str]) -> Iterator[Attack]:
    """Several arrays, or numbers, of a call are spoilt at random, on a team of random size."""
    for k in itertools.count():
        if time.time() > end:
            return
        rng = np.random.default_rng((seed, k))
        name = names[int(rng.integers(len(names)))]
        calls = calls_of(name)
        call = calls[int(rng.integers(len(calls)))]
        what, arguments = drawn_arrays.spoilt_call(call.arguments, rng)
        team = int(rng.integers(1, 4))
        yield (
            f"{name} | seed {seed}, draw {k}: {what}, {team} threads",
            functools.partial(_attack_team, team, call, arguments),
        )


def _attack_team(team: int, call: Call, arguments: Any) -> str:
    """Small as they are, teams of several run these kernels."""
    with drawn_arrays.teams_of(team):
        return outcome(call, lambda: arguments, None, False)


if __name__ == "__main__":
    from adversarial import drawn_arrays
    from adversarial.public_calls import table

    first, end, seed, only = [*sys.argv[1:], *("0", "")[len(sys.argv) - 3 :]]
    make(all_attacks(float(end), int(seed), only), int(first))
