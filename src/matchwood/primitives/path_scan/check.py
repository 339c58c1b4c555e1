"""Is this the scan?  Decided step by step: v's side follows from that of its neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.errors import CheckFailed

VECTORS: dict[str, Any] = {"add": np.add, "minimum": np.minimum, "maximum": np.maximum}


def check_path_scan(neighbours: Any, values: Any, op: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is ``path_scan(neighbours, values, op)``.

    Side s of v ends where its neighbour's far side ends, one step further, and combines v's value
    with the neighbour's; where there is no neighbour it is v itself.  Distances that go down by
    one at each step show that no walk is a cycle.  Floating-point values may differ by rounding.
    """
    table, values, ends, found, cycle, distances = (
        np.asarray(engines.moved(array, "cpu"))
        for array in (
            neighbours, values, answer.ends, answer.values, answer.cycle, answer.distances,
        )
    )  # fmt: skip
    n = table.shape[0]
    for name, array in (("ends", ends), ("values", found), ("distances", distances)):
        if array.shape != (n, 2):
            raise CheckFailed(f"path scan: {name} must have shape ({n}, 2), got {array.shape}")
    answers.of_kind("check_path_scan", "iu", ends=ends, distances=distances)
    answers.of_kind("check_path_scan", "b", cycle=cycle)
    if cycle.shape != (n,):
        raise CheckFailed(f"path scan: cycle must have {n} elements, got shape {cycle.shape}")
    outside = (ends < 0) | (ends >= n) | (distances < 0) | (distances >= n)
    if outside.any():
        v = int(np.argmax(outside.any(axis=1)))
        raise CheckFailed(
            f"path scan: ends {ends[v].tolist()} or distances {distances[v].tolist()} of {v} "
            f"are not within 0..{n - 1}"
        )
    if n == 0:
        return
    table = _cut(table, ends, cycle)
    function = VECTORS[op] if isinstance(op, str) else np.frompyfunc(op, 2, 1)
    rows = np.arange(n)
    for side in (0, 1):
        w = table[:, side]
        far = np.where(table[w, 0] == rows, 1, 0)  # the neighbour's other side
        last = w < 0
        expected = {
            "ends": np.where(last, rows, ends[w, far]),
            "distances": np.where(last, 0, distances[w, far] + 1),
        }
        for name, array in expected.items():
            got = (ends if name == "ends" else distances)[:, side]
            _compare(name, side, got, array, got == array)
        with np.errstate(over="ignore"):
            combined = np.asarray(function(values, found[w, far])).astype(values.dtype)
        wanted = np.where(last, values, combined)
        got = found[:, side]
        if values.dtype.kind == "f":
            scale = np.abs(wanted) + np.abs(values) + 1
            right = np.abs(got - wanted) <= 8 * (distances[:, side] + 1) * (
                np.finfo(values.dtype).eps * scale
            )
        else:
            right = got == wanted
        _compare("values", side, got, wanted, right)


def _compare(name: str, side: int, got: Any, wanted: Any, right: Any) -> None:
    if not right.all():
        v = int(np.argmin(right))
        raise CheckFailed(f"path scan: {name}[{v}, {side}] is {got[v]}, expected {wanted[v]}")


def _cut(table: Any, ends: Any, cycle: Any) -> Any:
    """The table without the edges at which cycles are cut; `cycle` is checked on the way."""
    n = table.shape[0]
    open_end = (table < 0).any(axis=1)
    if (cycle & open_end).any():
        v = int(np.argmax(cycle & open_end))
        raise CheckFailed(f"path scan: cycle[{v}] is True, but {v} is the end of a path")
    inside = (table >= 0) & (cycle[table] != cycle[:, None])
    if inside.any():
        v = int(np.argmax(inside.any(axis=1)))
        raise CheckFailed(f"path scan: cycle[{v}] is {cycle[v]}, unlike that of a neighbour")
    low = ends.min(axis=1)
    wrong = cycle & (low > np.arange(n))
    if wrong.any():
        v = int(np.argmax(wrong))
        found = ends[v].tolist()
        raise CheckFailed(f"path scan: {v} is smaller than the ends {found} of its cycle")
    table = table.copy()
    smallest = np.flatnonzero(cycle & (low == np.arange(n)))
    other = table[smallest].max(axis=1)
    table[smallest, table[smallest].argmax(axis=1)] = -1
    table[other, np.where(table[other, 0] == smallest, 0, 1)] = -1
    return table
