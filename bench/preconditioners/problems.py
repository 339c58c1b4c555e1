"""The linear systems on which the preconditioners are tried: the paper's, or such as those."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench import harness, papers
from matchwood import generators

REAL = (
    "bcsstk08", "bcsstk09", "bcsstk10", "bcsstk13", "bcsstk19", "bcsstk21", "1138_bus", "add32",
    "fidapex6", "cryg2500", "watt_2", "olm1000",
)  # fmt: skip
GRIDS = ("power_case6515rte", "power_case9241pegase")


def convection_diffusion(shape: tuple[int, ...] = (58, 148, 148), **options: Any) -> Any:
    """7-point convection-diffusion, as atmosmodm: strong in the direction in which indices jump.

    95 % of the weight off the diagonal lies along the first axis, 3 % along the last, which is
    the order of the indices.  Not symmetric.
    """
    weights = np.zeros((3, 3, 3))
    for axis, strength, wind in ((0, 0.95, 0.2), (1, 0.02, 0.1), (2, 0.03, -0.1)):
        for side in (-1, 1):
            at = [1, 1, 1]
            at[axis] += side
            weights[tuple(at)] = -strength * (1 + side * wind)
    weights[1, 1, 1] = -weights.sum()
    return generators.stencil(weights, shape, **options)


def real(path: Path) -> Any:
    """A matrix of the data folder."""
    return papers.read(path).astype(np.float64)


def problems(
    side: int, shape: tuple[int, ...], engine: str, folder: Path = harness.DATA
) -> dict[str, Callable[[], Any]]:
    """Functions that make the matrices, by name."""
    there = papers.files(folder)
    made: dict[str, Callable[[], Any]] = {
        f"aniso{kind}": lambda kind=kind: generators.aniso(kind, (side, side), engine=engine)
        for kind in (1, 2, 3)
    }
    made["convection-diffusion"] = lambda: convection_diffusion(shape, engine=engine)
    for name in REAL:
        if name in there:
            made[name] = lambda name=name: on(real(there[name]), engine)
    for name in GRIDS:
        if name in there:
            made[name] = lambda name=name: on(grid_laplacian(real(there[name])), engine)
    return made


def on(A: Any, engine: str) -> Any:
    """A SciPy matrix on the engine."""
    if engine == "cpu":
        return A
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix(sp.csr_matrix(A))


def right_hand_side(A: Any) -> tuple[Any, Any]:
    """The paper's solution x[i] = sin(16 pi i / n), and b for it."""
    n = A.shape[0]
    return _side(A, np.sin(16 * np.pi * np.arange(n) / n))


def right_hand_sides(A: Any, count: int) -> list[tuple[Any, Any]]:
    """The paper's, then random solutions up to `count`: for medians."""
    random = (np.random.default_rng(seed).standard_normal(A.shape[0]) for seed in range(count - 1))
    return [right_hand_side(A), *(_side(A, x) for x in random)]


def _side(A: Any, x: Any) -> tuple[Any, Any]:
    if not isinstance(A, sp.sparray):
        import cupy

        x = cupy.asarray(x)
    return x, A @ x


def grid_laplacian(A: Any) -> Any:
    """Of a power grid: admittances on its lines, grounded a little at every bus."""
    W = sp.csr_array(abs(A - sp.diags_array(A.diagonal())))
    degree = np.asarray(W.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(degree + 1e-3 * degree.max()) - W)


def elasticity(shape: tuple[int, ...], spacing: tuple[float, ...] | None = None) -> tuple[Any, Any]:
    """(stiffness matrix, rigid body modes) of an elastic body that is held on one side.

    Bilinear or trilinear elements on a grid, Lame's numbers 1 and 1; numbered as
    ``n_dimensions * node + direction``.  The first layer of nodes along the first axis is held.
    """
    d, N = len(shape), math.prod(shape)
    spacing = spacing or (1.0,) * d

    def lines(n: int, h: float) -> dict[str, Any]:
        """Along one axis: integrals of f g, f' g' and f' g for the hat functions."""
        ends = np.r_[0.5, np.ones(n - 2), 0.5]
        one, steps = np.ones(n - 1), np.r_[-0.5, np.zeros(n - 2), 0.5]
        bands = {"M": (h / 6 * one, 2 * h / 3 * ends, h / 6 * one),
                 "K": (-one / h, 2 / h * ends, -one / h),
                 "C": (one / 2, steps, -one / 2)}  # fmt: skip
        return {k: sp.csr_array(sp.diags_array(v, offsets=(-1, 0, 1))) for k, v in bands.items()}

    axes = [lines(n, h) for n, h in zip(shape, spacing, strict=True)]

    def integrals(p: int, r: int) -> Any:
        """Of the derivative along p of one function, times that along r of another."""
        out: Any = sp.csr_array([[1.0]])
        for k, axis in enumerate(axes):
            kinds = {(True, True): axis["K"], (True, False): axis["C"], (False, True): axis["C"].T}
            out = sp.kron(out, kinds.get((k == p, k == r), axis["M"]))
        return sp.csr_array(out)

    stiffness = sum((integrals(k, k) for k in range(d)), sp.csr_array((N, N)))
    A = sp.csr_array((N * d, N * d))
    for p, r in itertools.product(range(d), repeat=2):
        block = integrals(p, r) + integrals(r, p) + (stiffness if p == r else 0 * stiffness)
        A = A + sp.kron(block, sp.csr_array(([1.0], ([p], [r])), shape=(d, d)))
    points = [np.arange(n) * h for n, h in zip(shape, spacing, strict=True)]
    x = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1).reshape(N, d)
    x = x - x.mean(axis=0)
    modes = [np.tile(np.eye(d)[p], N) for p in range(d)]
    for p, r in itertools.combinations(range(d), 2):
        turn = np.zeros((N, d))
        turn[:, p], turn[:, r] = x[:, r], -x[:, p]
        modes.append(turn.ravel())
    free = np.arange(N // shape[0] * d, N * d)
    A = sp.csr_array(sp.csr_array(A)[free][:, free])
    A.data[abs(A.data) < 1e-12] = 0
    A.eliminate_zeros()
    return A, np.stack(modes, axis=1)[free]
