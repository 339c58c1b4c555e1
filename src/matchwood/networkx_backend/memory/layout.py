"""May the memory of dictionaries be read here?  Decided by what can be asked, then tried."""

from __future__ import annotations

import functools
import math
import struct
import sys
import sysconfig
from typing import Any

import numpy as np

from matchwood.networkx_backend.memory.plain import plain_rows
from matchwood.networkx_backend.memory.quick import quick_rows, quick_values

KNOWN_PYTHONS = ((3, 11), (3, 14))  # first and last whose dictionaries have the layout of cpu.py

# Bytes of a dict object, of its header for the garbage collector, of the header of its keys, of
# eight places in the index table, and of five entries; likewise for strings as keys, whose entries
# are shorter.  Then a float, an integer without digits, and a digit.
EXPECTED_SIZES = (48 + 16 + 32 + 8 + 5 * 24, 48 + 16 + 32 + 8 + 5 * 16, 48, 24, 24, 4)


def _sizes() -> tuple[int, ...]:
    """What Python says of the sizes of its objects, to be compared before any memory is read."""
    numbers = dict.fromkeys(range(5))
    words = dict.fromkeys("abcde")
    tables = (sys.getsizeof(numbers), sys.getsizeof(words), dict.__basicsize__)
    return *tables, float.__basicsize__, int.__basicsize__, int.__itemsize__


@functools.cache
def layout_is_known() -> bool:
    """May the memory of dictionaries be read here?

    To try a layout that is another one would end the process.  So nothing is read before version,
    word size, kind of build and the sizes that Python reports for its objects are as expected; a
    Python that is not known is read in the plain way.
    """
    first, last = KNOWN_PYTHONS
    if (
        sys.implementation.name != "cpython"
        or not first <= sys.version_info[:2] <= last
        or struct.calcsize("P") != 8
        or sys.byteorder != "little"
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or hasattr(sys, "getobjects")  # a build that keeps a list of all objects
    ):
        return False
    if _sizes() != EXPECTED_SIZES:
        return False
    return all(_same(sample) for sample in _samples()) and _same_values()


def _samples() -> list[dict[Any, dict[Any, Any]]]:
    """Adjacencies of every kind of dictionary, with deleted entries."""
    numbers: dict[Any, dict[Any, Any]] = {i: {} for i in range(40)}
    words: dict[Any, dict[Any, Any]] = {f"node {i}": {} for i in range(40)}
    mixed: dict[Any, dict[Any, Any]] = {**words, (1, 2): {}, 2.5: {}, -7: {}, 1 << 70: {}}
    samples = [numbers, words, mixed]
    for adjacency in samples:
        nodes = list(adjacency)
        for i, node in enumerate(nodes):
            adjacency[node].update((other, {}) for other in nodes[: i + 1])
            adjacency[node].pop(nodes[i // 2])
    shuffled = {i: dict.fromkeys(range(0, i, 3)) for i in reversed(range(300))}
    del shuffled[299]
    return [*samples, shuffled]


def _same(adjacency: dict[Any, Any]) -> bool:
    quick, plain = quick_rows(adjacency), plain_rows(adjacency)
    return (
        quick is not None
        and quick.nodes == plain.nodes
        and quick.numbered == plain.numbered
        and np.array_equal(quick.indptr, plain.indptr)
        and np.array_equal(quick.indices, plain.indices)
    )


def _same_values() -> bool:
    """Attributes of every kind that the quick way reads."""
    values = [1.5, 0, 1, -1, 7, -(2**30 - 1), 2**30 - 1, math.inf, -0.0, 257]
    adjacency: dict[Any, Any] = {i: {i + 1: {"size": 0, "weight": w}} for i, w in enumerate(values)}
    adjacency[len(values)] = {0: {}, 1: {"other": 1.0}, 2: {3: 1, "weight": -2.5}}
    rows = plain_rows(adjacency)
    found = quick_values(rows, adjacency, True, "weight")
    return found is not None and found.tolist() == [*values, 1.0, 1.0, -2.5]
