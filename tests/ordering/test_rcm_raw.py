"""Small matrices of SciPy as they are given: one kernel, and the same answers as by the gate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, disjoint, grid, path, rmat, shuffled, star
from matchwood.ordering.rcm.cpu.cached import order_raw

MATRICES = {
    "path": lambda: path(9),
    "loops": lambda: sp.csr_array(path(9) + sp.eye_array(9)),
    "some loops": lambda: sp.csr_array(grid(5, 6) + sp.diags_array(np.arange(30.0) % 2)),
    "shuffled grid": lambda: shuffled(grid(21, 33)),
    "star": lambda: star(500, centre=77),
    "dense": lambda: complete(60),
    "many": lambda: shuffled(disjoint([path(2), complete(4), star(6)] * 30), isolated=20),
    "rmat": lambda: rmat(9, 6),
    "long rows": lambda: rmat(8, 60),
    "no entries": lambda: sp.csr_array((7, 7)),
    "one": lambda: sp.csr_array((1, 1)),
    "directed": lambda: sp.csr_array(sp.triu(shuffled(grid(8, 9)))),
    "directed, loops": lambda: sp.csr_array(sp.tril(rmat(9, 8)) + sp.eye_array(512)),
    "directed, many": lambda: rmat(8, 20, symmetric=False),
}


def outcome(A, **options):
    """What a call gives: the order, or the error."""
    try:
        found = matchwood.cuthill_mckee(A, **options)
    except Exception as error:  # compared with the other call's
        return type(error), str(error)
    return found.dtype, found.tolist()


def same_as_by_the_gate(A):
    before = [np.array(part) for part in (A.indptr, A.indices, A.data)]
    right = outcome(A, engine="cpu")  # naming an engine leads through the gate
    assert outcome(A) == right
    for array, copy in zip((A.indptr, A.indices, A.data), before, strict=True):
        assert np.array_equal(array, copy)
    return right


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("name", MATRICES)
def test_taken_at_once(name, kind):
    A = kind(MATRICES[name]())
    A.sort_indices()
    right = same_as_by_the_gate(A)[1]
    assert order_raw(A, False, "test").tolist() == right
    assert order_raw(A, True, "test").tolist() == right[::-1]
    assert matchwood.reverse_cuthill_mckee(A, threads=2).tolist() == right[::-1]


@pytest.mark.parametrize("name", ZOO)
def test_zoo(name):
    same_as_by_the_gate(sp.csr_array(ZOO[name]()))


def unusual():
    """Matrices that the gate has to look at, all of them right."""
    A = shuffled(grid(8, 9))
    yield "other format", sp.csc_array(A)
    wide = A.copy()
    wide.indptr, wide.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    yield "64 bits", wide
    unsorted = A.copy()
    unsorted.indices[:2] = A.indices[1::-1]
    yield "unsorted", unsorted
    yield "twice", sp.csr_array((np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), (2, 2))
    yield "complex", A.astype(np.complex128)
    spare = A.copy()
    spare.indices, spare.data = np.append(A.indices, 0), np.append(A.data, 0.0)
    yield "spare", spare
    fixed = A.copy()
    fixed.indices.flags.writeable = False
    yield "read-only", fixed
    apart = A.copy()
    apart.indices = np.repeat(A.indices, 2)[::2]
    yield "strided", apart
    yield "large", shuffled(grid(170, 170))
    yield "many vertices", sp.csr_array((70_000, 70_000))
    yield "0x0", sp.csr_array((0, 0))


@pytest.mark.parametrize(
    ("name", "A"), list(unusual()), ids=lambda x: x if isinstance(x, str) else ""
)
def test_left_to_the_gate(name, A):
    assert order_raw(A, False, "test") is None
    right = outcome(A, engine="cpu")
    assert outcome(A) == right
    assert isinstance(right[1], list) or name in ("complex", "0x0")


def broken(rng, A):
    """Spoil a word of the arrays, or their lengths."""
    indptr, indices, data = A.indptr.copy(), A.indices.copy(), A.data.copy()
    wrong = int(rng.choice([-1, -(2**31), 2**31 - 1, A.shape[0], 0, 1]))
    way = rng.integers(0, 5)
    if way == 0 and indices.size:
        indices[rng.integers(indices.size)] = wrong
    elif way == 1:
        indptr[rng.integers(indptr.size)] = wrong
    elif way == 2:
        indptr[-1] += rng.choice([-1, 1])
    elif way == 3:
        data = data[:-1]
    else:
        indptr = indptr[: rng.integers(indptr.size + 1)]
    A.indptr, A.indices, A.data = indptr, indices, data
    return A


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 30), st.booleans(), st.booleans())
def test_any_matrix_and_any_damage(seed, n, mirrored, damaged):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=rng.random() ** 2, rng=rng, format="csr")
    A = sp.csr_array(A + A.T if mirrored else A)
    A.sort_indices()
    assert A.indices.dtype == np.int32
    same_as_by_the_gate(broken(rng, A) if damaged else A)


def test_arguments_are_checked_all_the_same():
    A = path(5)
    for options in ({"threads": 0}, {"threads": "2"}, {"method": "none"}, {"engine": "none"}):
        with pytest.raises((TypeError, ValueError), match=r"cuthill_mckee|threads"):
            matchwood.cuthill_mckee(A, **options)
    assert matchwood.cuthill_mckee(A, start=2).tolist()[0] == 2
