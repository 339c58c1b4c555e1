"""Which records have score 1 with each other.

A score is 1 where every element has a partner of similarity 1.  Elements of similarity 1 are equal
or, by Jaccard, made of the same tokens: "ab" and "ba" are for q = 1.  Either way they fall into
kinds, and two records have score 1 exactly where they have the same kinds of elements, each as
often.  So nothing has to be matched to know it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def kinds_of(prepared: Any) -> tuple[np.ndarray, np.ndarray]:
    """A number for each record of both sides."""
    kinds = _kinds_of_elements(prepared)
    known: dict[bytes, int] = {}
    found = []
    for starts, elements in prepared.records:
        owners = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        parts = kinds[elements]
        parts = parts[np.lexsort((parts, owners))]
        found.append(_numbered(parts, starts, known))
    return found[0], found[-1]


def _kinds_of_elements(prepared: Any) -> np.ndarray:
    if prepared.similarity != "jaccard":
        return np.arange(len(prepared.values), dtype=np.int32)
    return _numbered(prepared.elements.tokens, prepared.elements.starts, {})


def _numbered(parts: np.ndarray, starts: np.ndarray, known: dict[bytes, int]) -> np.ndarray:
    """A number for each stretch of `parts`, the same for equal ones."""
    content, width = parts.tobytes(), parts.itemsize
    bounds = itertools.pairwise((starts * width).tolist())
    numbers = (known.setdefault(content[a:b], len(known)) for a, b in bounds)
    return np.fromiter(numbers, np.int32, starts.size - 1)
