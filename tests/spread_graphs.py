"""Graphs for tests of distributed ones: how shares are made, how blocks are put together again."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import matchwood
from graphs import ZOO
from matchwood.gate.distributed import DistributedGraph

CREW = importlib.import_module("matchwood.engines.cpu.crew")  # a function has its name, too

GRIDS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 5), (2, 3), (3, 3), (5, 3), (2, 8), (8, 2), (4, 4))
FEW_GRIDS = ((1, 1), (2, 1), (2, 3), (4, 4))
USUAL_GRIDS = tuple(grid for grid in GRIDS if grid not in ((5, 3), (2, 8), (8, 2)))
"""For tests of the zoo: grids of many ranks take long.  One stays; drawn graphs are on any."""
SHAPES = [
    grid if grid in USUAL_GRIDS else pytest.param(grid, marks=pytest.mark.slow) for grid in GRIDS
]
EVERYWHERE = ("0x0", "one edge", "disconnected", "rmat", "rmat, directed", "star")

VIEWS = (
    "directed_pattern", "directed_weights", "heaviest_weights", "undirected_pattern",
    "undirected_weights", "transposed_pattern", "transposed_weights",
)  # fmt: skip
FACTS = (
    "n", "nnz", "loops", "weighted", "has_symmetric_pattern", "has_symmetric_values",
    "has_parallel_edges", "weight_range", "largest_magnitude",
)  # fmt: skip


def zoo_on(grid: tuple[int, int], left_out: tuple[str, ...] = ()) -> list[Any]:
    """A sixth of the graphs of the zoo, another one for each of six grids; some are on all."""
    at = GRIDS.index(grid)
    return [
        make()
        for turn, (name, make) in enumerate(ZOO.items())
        if ((at + turn) % 6 == 0 or name in EVERYWHERE) and name not in left_out
    ]


def slab(A: Any, rank: int, size: int) -> Any:
    """The rows of one rank: ranges of nearly equal length."""
    lo, hi = A.shape[0] * rank // size, A.shape[0] * (rank + 1) // size
    first, last = int(A.indptr[lo]), int(A.indptr[hi])
    arrays = (A.data[first:last], A.indices[first:last], A.indptr[lo : hi + 1] - A.indptr[lo])
    return type(A)(arrays, shape=(hi - lo, A.shape[1]))


def part(n: int, edges: Any, weights: Any, rank: int, size: int) -> tuple[Any, ...]:
    """The edges of one rank, uneven: rank 0 may have none."""
    bounds = np.linspace(0, len(edges) ** 0.5, size + 1) ** 2
    lo, hi = int(bounds[rank]), int(bounds[rank + 1]) if rank + 1 < size else len(edges)
    return (n, edges[lo:hi]) if weights is None else (n, edges[lo:hi], weights[lo:hi])


def tried(work: Callable[[], Any]) -> Any:
    """What a call returns, or its error as text."""
    try:
        return work()
    except (TypeError, ValueError, matchwood.EngineUnavailable, matchwood.OutOfMemory) as error:
        return f"{type(error).__name__}: {error}"


def alike(body: Callable[..., Any], ranks: int, *arguments: Any) -> Any:
    """What a body returns, which must be the same on all ranks."""
    first, *rest = matchwood.dist.run(body, ranks, *arguments)
    assert all(each == first for each in rest)
    return first


def assert_refused(found: list[Any], texts: list[str]) -> None:
    """The errors begin with these texts; after them a call went well, so the ranks go on."""
    for text, said in zip(texts, found[:-1], strict=True):
        assert said.startswith(text), said
    assert found[-1] is None


def entries(G: DistributedGraph, view: Any) -> tuple[Any, ...]:
    """(rows, columns, values) of a block in the user's ids; its rules are checked."""
    names = G.original_local
    assert view.indptr.size == G.grid.n_local + 1
    assert view.indptr[G.grid.n_rows] == view.indices.size  # no entries beyond the row group
    assert view.indptr.dtype == view.indices.dtype == G.index_dtype
    rows = np.repeat(names, np.diff(view.indptr))
    columns = names[view.indices]
    same_row = rows[1:] == rows[:-1]
    assert (columns[1:][same_row] > columns[:-1][same_row]).all(), "rows in the order of ids"
    return rows, columns, view.data


def blocks(G: DistributedGraph) -> dict[str, Any]:
    """The entries of all views of one rank, or the errors."""
    found = {name: tried(lambda name=name: entries(G, getattr(G, name)())) for name in VIEWS}
    found |= {name: tried(lambda name=name: getattr(G, name)) for name in FACTS}
    return found


def whole(G: Any) -> dict[str, Any]:
    """The same of a Graph on one machine."""

    def one(name: str) -> tuple[Any, ...]:
        view = getattr(G, name)()
        return np.repeat(np.arange(G.n), np.diff(view.indptr)), view.indices, view.data

    found = {name: tried(lambda name=name: one(name)) for name in VIEWS}
    return found | {name: tried(lambda name=name: getattr(G, name)) for name in FACTS}


def compare(ranks: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    """Put the blocks of all ranks together and compare them bit for bit."""
    for name in FACTS:
        for found in ranks:
            assert found[name] == expected[name], name
    for name in VIEWS:
        if isinstance(expected[name], str):
            assert {found[name] for found in ranks} == {expected[name]}, name
            continue
        assert not any(isinstance(found[name], str) for found in ranks), ranks[0][name]
        rows, columns = (np.concatenate([found[name][k] for found in ranks]) for k in (0, 1))
        order = np.lexsort((columns, rows))
        assert np.array_equal(rows[order], expected[name][0]), name
        assert np.array_equal(columns[order], expected[name][1]), name
        data = expected[name][2]
        if data is not None:
            values = np.concatenate([found[name][2] for found in ranks])[order]
            assert values.dtype == data.dtype, name
            assert values.tobytes() == data.tobytes(), name
