"""Sizes that make no sense or fit no memory: a named error before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from matchwood import generators as g
from matchwood.errors import OutOfMemory

MADE: dict[str, Callable[[Any], Any]] = {
    "path": g.path,
    "cycle": g.cycle,
    "star": g.star,
    "complete": g.complete,
    "mycielskian": g.mycielskian,
    "rmat": g.rmat,
    "rmat ": lambda x: g.rmat(4, edge_factor=x),
    "erdos_renyi": lambda x: g.erdos_renyi(x, 3),
    "erdos_renyi ": lambda x: g.erdos_renyi(2**31, x),
    "dense_random": lambda x: g.dense_random(x, 0.5),
    "random_geometric": lambda x: g.random_geometric(x, degree=3),
    "random_geometric ": lambda x: g.random_geometric(x, 0.5, dim=3),
    "delaunay": g.delaunay,
    "random_points": g.random_points,
    "grid": lambda x: g.grid((x, x)),
    "grid ": lambda x: g.grid((x,)),
    "mesh": lambda x: g.mesh((x, 2, x)),
    "aniso": lambda x: g.aniso(3, (x, 0)),
    "aniso ": lambda x: g.aniso(1, (x, 3)),
    "stencil": lambda x: g.stencil([1, 2, 1], (x,)),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("size", [10**15, 10**18, 2**63, 10**30, 10**400, -1, float("nan"), "7"])
def test_sizes(name: str, size: Any) -> None:
    with pytest.raises((TypeError, ValueError, OutOfMemory), match=f"^{name.strip()}: "):
        MADE[name](size)


@pytest.mark.parametrize("name", [name for name in MADE if not name.endswith(" ")])
@pytest.mark.parametrize("size", [1.5, None, True, np.float64(3), [3]])
def test_what_is_no_integer(name: str, size: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name}: "):
        MADE[name](size)


def test_sums_that_do_not_fit_are_told_by_their_memory() -> None:
    with pytest.raises(OutOfMemory, match=r"complete: a graph of 10000000 vertices and .* needs"):
        g.complete(10**7)
    with pytest.raises(OutOfMemory, match="dense_random"):
        g.dense_random(2**31, 0.9)


def test_odd_numbers_of_threads() -> None:
    makers: tuple[Callable[..., Any], ...] = (
        lambda **more: g.rmat(9, rng=3, **more),
        lambda **more: g.erdos_renyi(300, 2000, directed=True, **more),
        lambda **more: g.dense_random(90, 0.3, weights="uniform", **more),
        lambda **more: g.random_geometric(500, degree=6, weights="distance", **more),
        lambda **more: g.delaunay(300, **more),
        lambda **more: g.aniso(3, (17, 23), **more),
    )
    for make in makers:
        one = make(threads=1)
        for threads in (2, 3, 5, 7):
            many = make(threads=threads)
            for part in ("indptr", "indices", "data"):
                assert np.array_equal(getattr(one, part), getattr(many, part))
