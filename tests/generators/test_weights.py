"""random_weights: a function of the two ends of an edge."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from matchwood.generators import complete, dense_random, path, random_weights, rmat, star
from matchwood.generators.streams import reference
from support import THREADS, same


def parts(A):
    return A.indptr, A.indices, A.data


def test_weights_depend_on_the_edge_only():
    dense = random_weights(complete(30)).toarray()
    for A in (path(30), star(30), dense_random(30, 0.3)):
        B = random_weights(A).toarray()
        assert np.array_equal(B, np.where(A.toarray() != 0, dense, 0))


def test_weights_equal_those_of_the_generators():
    A = rmat(7, rng=4)
    assert same(parts(random_weights(A, rng=4)), parts(rmat(7, rng=4, weights="uniform")))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("directed", [False, True])
def test_uniform(dtype, directed):
    A = complete(150)
    B = random_weights(A, dtype=dtype, directed=directed, threads=1)
    for threads in THREADS:
        other = random_weights(A, dtype=dtype, directed=directed, threads=threads)
        assert same(parts(other), parts(B))
    assert B.dtype == dtype
    assert (B.data > 0).all()
    assert (B.data <= 1).all()
    assert (np.ldexp(B.data, 24 if dtype == np.float32 else 53) % 1 == 0).all()
    assert abs(B.data.mean() - 0.5) < 0.02
    assert np.unique(B.data).size > 0.95 * B.nnz / (1 if directed else 2)
    assert (abs(B - B.T).nnz == 0) != directed


def test_integers():
    B = random_weights(complete(150), "integers", threads=1)
    for threads in THREADS:
        assert same(parts(random_weights(complete(150), "integers", threads=threads)), parts(B))
    assert np.array_equal(np.unique(B.data), np.arange(1, 256))
    assert abs(B.data.mean() - 128) < 2
    assert abs(B - B.T).nnz == 0


def test_extremes():
    """The smallest and the largest number that the hash can give."""
    indptr, indices = np.array([0, 0, 1]), np.array([0])

    def of(value, dtype, bits):
        # the key for which number 0 * 2 + 1 of the stream is `value`
        key = unmixed(value) - 0x9E3779B97F4A7C15
        return reference.weigh(indptr, indices, dtype, False, key % 2**64, bits).item()

    assert of(0, np.float32, 24) == 2.0**-24
    assert of(2**64 - 1, np.float32, 24) == 1
    assert of(0, np.float64, 53) == 2.0**-53
    assert of(2**64 - 1, np.float64, 53) == 1
    assert of(0, np.float32, 0) == 1
    assert of(2**64 - 1, np.float32, 0) == 255


def unmixed(x):
    """The inverse of mix64: undo its five steps."""
    for shift, multiplier in ((31, None), (27, 0x94D049BB133111EB), (30, 0xBF58476D1CE4E5B9)):
        if multiplier:
            x = x * pow(multiplier, -1, 2**64) % 2**64
        y = x
        for _ in range(64 // shift):
            y = x ^ y >> shift
        x = y
    return x


def test_input_is_kept():
    A = sp.csr_array(sp.coo_array(([3.0, 4.0], ([0, 1], [1, 1])), shape=(2, 2)))
    before = [part.copy() for part in parts(A)]
    B = random_weights(A)
    assert same(list(parts(A)), before)
    assert np.shares_memory(A.indices, B.indices)
    assert B.nnz == 2  # the diagonal has a weight too


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.coo_array, sp.csc_array, sp.lil_array])
def test_formats(make):
    A = dense_random(20, 0.3)
    assert same(parts(random_weights(make(A))), parts(random_weights(A)))


def test_int64_indices():
    A = path(9)
    wide = sp.csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), A.shape)
    B = random_weights(wide)
    assert B.indices.dtype == np.int64
    assert np.array_equal(B.data, random_weights(A).data)


def test_empty():
    assert random_weights(path(0)).shape == (0, 0)
    assert random_weights(path(1)).nnz == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random_weights(np.eye(2)), TypeError, "random_weights: A must be a sparse matrix"),
        (lambda: random_weights(sp.csr_array((2, 3))), ValueError, "random_weights: A must be squ"),
        (lambda: random_weights(path(3), None), ValueError, "random_weights: kind must be one of"),
        (lambda: random_weights(path(3), "ones"), ValueError, "random_weights: kind must be one"),
        (lambda: random_weights(path(3), rng="x"), TypeError, "random_weights: rng must be an int"),
        (lambda: random_weights(path(3), dtype=int), TypeError, "random_weights: dtype must be f"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
