"""The arrays of a join on the GPU: copied once for a collection; their addresses for kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.join.arrays import Elements, Records

RULE = np.dtype(
    [("share", "f8"), ("prefix", "f8")]
    + [(name, "i4") for name in ("itself", "once", "unequal", "scores", "fuzzy", "filler")]
)  # struct Rule of corpus.cuh


class Corpus(NamedTuple):
    """`words` are the addresses, in the order of struct Corpus; `arrays` keeps them alive."""

    words: Any
    arrays: tuple[Any, ...]


class Resident:
    """GPU copies of host arrays; what is copied once stays as long as the host array is in use."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[np.ndarray, Any]] = {}
        self._used: set[int] = set()

    def copy(self, array: np.ndarray) -> Any:
        """The array on the GPU."""
        key = id(array)
        if key not in self._copies or self._copies[key][0] is not array:
            self._copies[key] = array, engines.cupy().asarray(np.ascontiguousarray(array))
        self._used.add(key)
        return self._copies[key][1]

    def forget_unused(self) -> None:
        """Drop what was not asked for since the last time: the index of another delta."""
        self._copies = {key: self._copies[key] for key in self._used}
        self._used = set()


def corpus_of(resident: Resident, corpus: Any, places: Any) -> Corpus:
    """Both sides, lists, index and places, as struct Corpus has them."""
    elements: Elements = corpus.elements
    left: Records = corpus.left
    right: Records = corpus.right
    copies = [
        resident.copy(array)
        for array in (
            elements.starts,
            elements.tokens,
            *left,
            *right,
            *corpus.left_lists,
            *corpus.right_lists,
            *corpus.index,
            corpus.nearest,
        )
    ]
    copies += [
        resident.copy(array)
        for array in (places.rows, places.lows, places.highs, places.right_rows)
    ]
    cupy = engines.cupy()
    sizes = np.diff(right.starts)[places.right_rows].astype(np.int32)
    copies.append(cupy.asarray(sizes))
    resident.forget_unused()
    addresses = np.array([array.data.ptr for array in copies], np.uint64)
    return Corpus(cupy.asarray(addresses), tuple(copies))


def rule_of(rule: Any, once: bool, how: Any, fuzzy: bool) -> Any:
    """struct Rule, as bytes on the GPU."""
    made = np.zeros(1, RULE)
    made["share"], made["prefix"] = rule.share, rule.prefix
    made["itself"], made["once"], made["unequal"] = rule.itself, once, rule.unequal
    made["scores"], made["fuzzy"] = how.scores, fuzzy
    return engines.cupy().asarray(made.view(np.uint8))
