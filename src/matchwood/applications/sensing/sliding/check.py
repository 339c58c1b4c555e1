"""Whether the numbers of a sliding window are right, computed without sliding.

Packets of a link (source, destination) enter and leave the window, each at a known step.  So the
number of a link's packets is a step function, whose pieces are intervals of steps with a value.
The number of links at a step is a count of intervals; the largest value is the maximum over all
intervals that hold the step, found by a table of doubling widths.  Fan-outs change where a link
of the source appears or disappears, and are step functions as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.applications.sensing.packets import packet_arrays
from matchwood.applications.sensing.sliding import STORED, Sliding
from matchwood.errors import CheckFailed
from matchwood.primitives.sort import radix_sort


def check_sliding(src: Any, dst: Any, found: Any) -> None:
    """Raise `CheckFailed` unless these are the numbers of every step.  O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.check import check_sliding
    >>> from matchwood.sensing import sliding_statistics
    >>> src, dst = np.array([1, 1, 2]), np.array([2, 2, 3])
    >>> check_sliding(src, dst, sliding_statistics(src, dst, window=2))
    """
    if not isinstance(found, Sliding):
        raise TypeError(f"check_sliding: found must be Sliding, got {type(found).__name__}")
    src, dst = (engines.moved(x, "cpu") for x in packet_arrays("check_sliding", src, dst))
    window, stride = found.window, found.stride
    steps = 0 if src.size < window else (src.size - window) // stride + 1
    shape = (steps, len(STORED))
    table = answers.integers("check_sliding", "sliding", "table", found.table, shape, "cpu")
    if steps == 0:
        return
    expected = _expected(src, dst, window)
    for name, column in zip(STORED, table.T, strict=True):
        right = expected[name][: (steps - 1) * stride + 1 : stride]
        wrong = np.flatnonzero(right != column)
        if wrong.size:
            k = int(wrong[0])
            raise CheckFailed(f"sliding: {name} of step {k} is {right[k]}, got {column[k]}")


def _expected(src: Any, dst: Any, window: int) -> dict[str, Any]:
    """Every quantity for stride 1."""
    steps = src.size - window + 1
    links = (src.astype(np.uint64) << np.uint64(32)) | dst
    i = np.arange(src.size)
    # a packet is in the windows that begin from `comes` to `goes` - 1
    comes, goes = np.maximum(i - window + 1, 0), np.minimum(i + 1, steps)
    made = {}
    link = _Functions(links, comes, goes, steps)
    made["unique_links"], made["max_link_packets"] = link.number, link.most
    appears, entity = link.present()
    for name, addresses, packets, fan in (
        ("sources", src, "max_source_packets", "max_source_fan_out"),
        ("destinations", dst, "max_destination_packets", "max_destination_fan_in"),
    ):
        functions = _Functions(addresses, comes, goes, steps)
        made[f"unique_{name}"], made[packets] = functions.number, functions.most
        shift = np.uint64(32) if name == "sources" else np.uint64(0)
        owners = (entity >> shift) & np.uint64(0xFFFFFFFF)
        made[fan] = _Functions(owners, *appears, steps).most
    return made


class _Functions:
    """The step functions of entities that are counted from step `comes` to `goes` - 1."""

    def __init__(self, entities: Any, comes: Any, goes: Any, steps: int) -> None:
        real = comes < goes
        entities, comes, goes = entities[real], comes[real], goes[real]
        keys = np.concatenate([entities, entities])
        at = np.concatenate([comes, goes])
        change = np.concatenate([np.ones(comes.size, np.int64), -np.ones(goes.size, np.int64)])
        order = radix_sort(at)[1]
        keys, by_key = radix_sort(keys[order])
        order = order[by_key]
        at, value = at[order], np.cumsum(change[order])
        # the sum over an entity is 0, so the running sum is the value of the current entity
        ends = np.append((keys[1:] != keys[:-1]) | (at[1:] != at[:-1]), True)
        keys, at, value = keys[ends], at[ends], value[ends]
        same = np.append(keys[1:] == keys[:-1], False)
        until = np.where(same, np.append(at[1:], 0), steps)
        lasts = (value > 0) & (at < until)
        self._keys, self._from, self._until = keys[lasts], at[lasts], until[lasts]
        self.most = _largest(self._from, self._until, value[lasts], steps)
        self.number = _covered(self._from, self._until, steps)

    def present(self) -> tuple[tuple[Any, Any], Any]:
        """((from, until), entity): the intervals in which an entity counts something."""
        return (self._from, self._until), self._keys


def _covered(begin: Any, until: Any, steps: int) -> Any:
    """The number of intervals that hold each step."""
    change = np.zeros(steps + 1, np.int64)
    for lo, hi in answers.pieces(begin.size):
        np.add.at(change, begin[lo:hi], 1)
        np.add.at(change, until[lo:hi], -1)
    return np.cumsum(change)[:steps]


def _largest(begin: Any, until: Any, value: Any, steps: int) -> Any:
    """The largest value of the intervals that hold each step."""
    levels = max(1, steps.bit_length())
    table = np.zeros((levels, steps), np.int64)
    level = np.floor(np.log2(until - begin)).astype(np.int64)
    width = np.int64(1) << level
    for lo, hi in answers.pieces(begin.size, answers.BLOCK):
        part = slice(lo, hi)
        np.maximum.at(table, (level[part], begin[part]), value[part])
        np.maximum.at(table, (level[part], until[part] - width[part]), value[part])
    for k in range(levels - 1, 0, -1):
        half = 1 << (k - 1)
        np.maximum(table[k - 1], table[k], out=table[k - 1])
        if half < steps:
            np.maximum(table[k - 1, half:], table[k, : steps - half], out=table[k - 1, half:])
    return table[0]
