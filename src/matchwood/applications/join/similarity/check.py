"""Similarities of elements by other methods than the kernels': sparse products, tables of edits.

Jaccard: grams become columns of a sparse matrix, whose product with itself counts shared tokens.
Edit: the table of distances is filled cell by cell for all other elements at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from matchwood.applications.join import ONE
from matchwood.applications.join.similarity import EDITS
from matchwood.applications.join.similarity.reference import PADDING, padded, tokens

MOST_KEPT = 1 << 25  # similarities that are cached: 256 MB
NOWHERE = -1  # after the end of a text; padding is -2, which equals itself


class Similarities:
    """The similarity of each of these elements to all of them, row by row.

    Parameters
    ----------
    values : sequence
        Distinct elements, none of them empty.
    similarity : str
    q : int
    """

    def __init__(self, values: Sequence[Any], similarity: str, q: int) -> None:
        self.values = list(values)
        self._kind = similarity
        self._rows: dict[int, np.ndarray] = {}
        if similarity == "jaccard":
            self._incidence = _incidence([tokens(text, q) for text in self.values])
            self._counts = np.asarray(self._incidence.sum(axis=1), np.int64).ravel()
        elif similarity in EDITS:
            pad = similarity == "edit_padded"
            texts = [padded(text, q) if pad else list(text) for text in self.values]
            self._lengths = np.array([len(text) for text in texts], np.int64)
            self._codes = np.full((len(texts), self._lengths.max(initial=0)), NOWHERE, np.int64)
            for i, text in enumerate(texts):
                self._codes[i, : len(text)] = [-2 if c is PADDING else ord(str(c)) for c in text]

    def row(self, i: int) -> np.ndarray:
        """The similarities of element i, int64, in units of 2^-40."""
        if i not in self._rows:
            if len(self._rows) * len(self.values) > MOST_KEPT:
                self._rows.clear()
            self._rows[i] = self._made(i)
        return self._rows[i]

    def _made(self, i: int) -> np.ndarray:
        if self._kind == "jaccard":
            shared = (self._incidence @ self._incidence[[i]].T).toarray().ravel()
            return _fixed(shared, self._counts + self._counts[i] - shared)
        if self._kind in EDITS:
            longer = np.maximum(self._lengths, self._lengths[i])
            return _fixed(longer - self._edits(i), longer)
        equal = np.zeros(len(self.values), np.int64)
        equal[i] = ONE
        return equal

    def _edits(self, i: int) -> np.ndarray:
        """Levenshtein distances: table[j, p] of the first j characters of element p."""
        mine = self._codes[i, : self._lengths[i]]
        width = self._codes.shape[1]
        table = np.repeat(np.arange(width + 1)[:, None], len(self.values), axis=1)
        for k, code in enumerate(mine):
            before = table[0].copy()
            table[0] = k + 1
            for j in range(width):
                change = before + (self._codes[:, j] != code)
                before = table[j + 1].copy()
                table[j + 1] = np.minimum(np.minimum(before, table[j]) + 1, change)
        return table[self._lengths, np.arange(len(self.values))]


def _incidence(lists: Sequence[set[Any]]) -> Any:
    """Elements by tokens, 1 where the element has the token."""
    numbers: dict[Any, int] = {}
    columns = [numbers.setdefault(token, len(numbers)) for found in lists for token in found]
    rows = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
    ones = np.ones(len(columns), np.int64)
    return sparse.csr_array((ones, (rows, columns)), shape=(len(lists), max(len(numbers), 1)))


def _fixed(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole in units of 2^-40, rounded; in Python's integers where 64 bits are too few."""
    wide = part.astype(object if whole.max(initial=0) >= 1 << 21 else np.int64)
    return ((wide * (2 * ONE) + whole) // (2 * whole)).astype(np.int64)
