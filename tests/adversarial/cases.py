"""A right answer in parts, to be spoiled, and the graphs that answers are of."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from adversarial.spoiling import equal
from graphs import ZOO, random_graph

Fields = dict[str, Any]
SMALL = 40  # vertices; the graphs of the zoo that are no larger
RANDOM = 30  # random graphs besides


@dataclass
class Case:
    """A right answer of a problem, in parts."""

    n: int
    graph: Any
    fields: Fields
    build: Callable[[Fields], Any]
    check: Callable[[Any], None]
    right: Callable[[Fields], bool] | None = field(default=None)
    """Whether other fields are an answer too; None: there is just one."""
    fit: Callable[[Fields], Fields] | None = field(default=None)
    """Makes the fields that follow from others fit them again: then just one thing is wrong."""

    def is_right(self, fields: Fields) -> bool:
        if all(equal(fields[name], self.fields[name]) for name in fields):
            return True
        return self.right is not None and self.right(fields)


_drawn = 0  # which random graphs


def draw_graphs(number: int) -> None:
    """From now on the random graphs are those of this number."""
    global _drawn
    _drawn = number
    matrices.cache_clear()


def drawn() -> int:
    return _drawn


@functools.cache
def matrices() -> list[sp.csr_array]:
    found = [make() for make in ZOO.values()]
    found = [A for A in found if A.shape[0] <= SMALL]
    rng = np.random.default_rng(5 + _drawn)
    for k in range(RANDOM):
        n = int(rng.integers(2, 12))
        seed = RANDOM * _drawn + k
        A = random_graph(n, int(rng.integers(1, 3 * n)), symmetric=k % 2 == 0, seed=seed)
        if k % 3 == 0:  # ties
            A.data = np.ceil(3 * A.data)
        found.append(A)
    return found


def graphs() -> Iterator[tuple[sp.csr_array, Any]]:
    for A in matrices():
        yield A, matchwood.graph(A)


def of(found: Any, *names: str) -> Fields:
    return {name: getattr(found, name) for name in names}


def replaced(found: Any) -> Callable[[Fields], Any]:
    return lambda fields: dataclasses.replace(found, **fields)


def parts(labels: Any) -> list[list[int]]:
    """Which vertices share a label."""
    found: dict[int, list[int]] = {}
    for v, label in enumerate(labels.tolist()):
        found.setdefault(label, []).append(v)
    return sorted(found.values())


def some_order(n: int) -> Any:
    return np.random.default_rng(n).permutation(n)
