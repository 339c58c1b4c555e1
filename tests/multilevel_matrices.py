"""Matrices for the tests of the multilevel preconditioner, and its levels spoiled."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import scipy.sparse as sp

from graphs import ZOO


def laplacian(shape: tuple[int, ...], stretch: float = 1.0) -> sp.csr_array:
    """The 5- or 7-point Laplacian with values at the boundary given; the last axis is stronger."""
    A = sp.csr_array((1, 1))
    for k, size in enumerate(shape):
        one = np.full(size, stretch if k + 1 == len(shape) else 1.0)
        line = sp.diags_array((-one[1:], 2 * one, -one[1:]), offsets=(-1, 0, 1))
        A = sp.kron(A, sp.eye_array(size)) + sp.kron(sp.eye_array(A.shape[0]), line)
    return sp.csr_array(A)


def definite(A: sp.csr_array, rng: int = 0, symmetric: bool = True) -> sp.csr_array:
    """Random values at the places of A, and a diagonal that dominates them slightly."""
    A = sp.csr_array(A, copy=True).astype(np.float64)
    A.sum_duplicates()
    A.data = -np.random.default_rng(rng).uniform(0.1, 1, A.nnz)
    A = sp.csr_array(A + A.T) if symmetric else A
    A = sp.csr_array(A - sp.diags_array(A.diagonal()))
    total = np.maximum(abs(A).sum(axis=1), abs(A).sum(axis=0))
    return sp.csr_array(A + sp.diags_array(1.05 * total + 0.01))


SMALL = {
    "grid": lambda: laplacian((14, 15)),
    "stretched": lambda: laplacian((14, 15), 1000.0),
    "cube": lambda: laplacian((6, 6, 6)),
    "random": lambda: definite(ZOO["rmat"]() if "rmat" in ZOO else laplacian((12, 12)), 3),
    "unsymmetric": lambda: definite(laplacian((14, 15)), 1, symmetric=False),
}


def spoiled(M, k: int, **changes):
    """M with other attributes of its level k."""
    N = copy.copy(M)
    levels = list(M.levels)
    levels[k] = dataclasses.replace(levels[k], **changes)
    N.levels = tuple(levels)
    return N
