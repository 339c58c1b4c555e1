"""Compiling what cpu_posts.py has, and trying it with one member and one caller in one thread."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba.core import types

from matchwood.engines.cpu.compiled import kernel
from matchwood.engines.cpu.native import cpu_posts
from matchwood.engines.cpu.native.cpu_entry import entry
from matchwood.engines.cpu.native.cpu_posts import POST_WORDS
from matchwood.engines.cpu.team import WORDS, Team


def posts() -> dict[str, Any]:
    """The machine code by name; empty where it does not do what it should."""
    word, words = types.int64, types.Array(types.int64, 1, "C")
    signatures = {
        "attend": (words, words),
        "start": (types.Array(types.int64, 2, "C"), words, words, words, word),
        "call": (words, words),
        "wait": (words, words),
        "call_off": (words, words),
    }
    code = {}
    for name, signature in signatures.items():
        function = getattr(cpu_posts, name)
        function.compile(signature)
        code[name] = function.overloads[signature].entry_point
    return code if _works(code) else {}


@kernel
def _probe(team: Any, matrix: Any, numbers: Any, reals: Any, found: Any) -> None:
    found[0], found[1], found[2] = team.rank, team.size, team.words.size
    found[3], found[4], found[5] = matrix.shape[0], matrix.shape[1], matrix.size
    found[6], found[7] = matrix[1, 2], matrix.itemsize
    found[8], found[9], found[10] = numbers[0], numbers[1][1], numbers[2]
    for k in range(5):
        found[11 + k], found[16 + k] = reals[k][0], reals[k][1]


def _works(code: dict[str, Any]) -> bool:
    """A kernel is posted, run, and over."""
    found, words = np.zeros(21), np.zeros(WORDS, np.int64)
    matrix = np.arange(24, dtype=np.int16).reshape(4, 6)[::-2, ::2]
    numbers = True, (None, np.uint8(200)), -5
    reals = tuple((0.1 + k, np.float32(0.5 - k)) for k in range(5))  # more than fit into registers
    arguments = Team(0, 7, words), matrix, numbers, reals, found
    signature = tuple(map(_probe.typeof_pyval, arguments))
    _probe.compile(signature)
    way = entry(_probe.overloads[signature])
    if way is None or not _lies_as_expected(matrix):
        return False
    post, bell, second = np.zeros(POST_WORDS, np.int64), np.zeros(1, np.int64), np.array([1, 0])
    record, places = way.record_of(arguments), np.array([post.ctypes.data])
    code["start"](way.plan, record, places, bell, 1)
    code["call"](post, bell)  # so that it leaves the post after the kernel
    code["attend"](post, bell)
    expected = [0, 7, WORDS, 2, 3, 6, matrix[1, 2], 2, 1, 200, -5, *(x for x, _ in reals)]
    expected += [y for _, y in reals]
    return bool(code["wait"](record, second)) and found.tolist() == expected


def _lies_as_expected(sample: np.ndarray[Any, Any]) -> bool:
    """The fields of NumPy's object lie where `start` will look."""
    fields = (ctypes.c_int64 * 4).from_address(id(sample) + object.__basicsize__)
    if fields[0] != sample.ctypes.data or fields[1] & 0xFFFFFFFF != sample.ndim:
        return False
    pair = ctypes.c_int64 * sample.ndim
    found = (tuple(pair.from_address(fields[k])) for k in (2, 3))
    return tuple(found) == (sample.shape, sample.strides)
