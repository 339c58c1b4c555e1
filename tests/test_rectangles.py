"""Matrices that need not be square pass the same gate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood.gate import inputs
from matchwood.gate.graph import Rectangle, as_rectangle

DENSE = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
TALL, WIDE = DENSE.T.copy(), DENSE


def dense(R: Rectangle) -> np.ndarray:
    return R.on("cpu").sparse().toarray()


@pytest.mark.parametrize("A", [TALL, WIDE, np.zeros((0, 3)), np.zeros((3, 0))])
def test_sparse_matrices_of_all_formats(A) -> None:
    forms = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"] if A.size else ["csr", "csc", "coo"]
    for form in forms:
        R = as_rectangle(sp.csr_array(A).asformat(form), "f")
        assert (R.shape, R.nnz) == (A.shape, np.count_nonzero(A))
        assert (dense(R) == A).all()
        rows = sp.csr_array(A.T != 0)
        flipped = R.transposed_pattern()
        assert flipped.indptr.tolist() == rows.indptr.tolist()
        assert flipped.indices.tolist() == rows.indices.tolist()
    blocks = sp.bsr_array(np.kron(DENSE, np.ones((2, 3))), blocksize=(2, 3))
    assert as_rectangle(blocks, "f").shape == (6, 12)


@pytest.mark.parametrize("where", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_arrays_and_edges(where) -> None:
    put = np.asarray if where == "cpu" else pytest.importorskip("cupy").asarray
    A = sp.csr_array(WIDE)
    arrays = [put(array) for array in (A.indptr, A.indices, A.data)]
    given = as_rectangle((*arrays, (3, 4)), "f")
    rows = np.repeat(np.arange(3), np.diff(A.indptr))
    edges = put(np.stack([rows, A.indices], axis=1)[::-1].copy())
    listed = as_rectangle(((3, 4), edges, put(A.data[::-1].copy())), "f")
    for R in (given, listed, as_rectangle(put(WIDE), "f"), given.on("cpu").on(where)):
        assert (R.engine, R.shape) == (where, (3, 4))
        assert R.directed_pattern().indices.dtype == np.int32
        assert (dense(R) == WIDE).all()
    pattern = as_rectangle((*arrays[:2], (3, 4)), "f")
    assert not pattern.weighted
    assert pattern.directed_weights().data.tolist() == [1.0] * 4
    assert as_rectangle(((3, 4), []), "f").nnz == 0


def test_what_passes_as_it_is() -> None:
    R = as_rectangle(sp.csr_array(WIDE), "f")
    assert as_rectangle(R, "f") is R
    assert repr(R) == "<Rectangle: 3 x 4, 4 entries, cpu>"
    G = matchwood.graph(sp.csr_array(np.eye(3)))
    assert as_rectangle(G, "f").shape == (3, 3)
    A = sp.csr_array(TALL)
    assert np.shares_memory(as_rectangle(A, "f").directed_pattern().indices, A.indices)


def test_duplicates_follow_the_rule() -> None:
    A = ((2, 5), [[0, 4], [1, 2], [0, 4]], [1.0, 7.0, 3.0])
    for rule, value in ((None, 4.0), ("sum", 4.0), ("min", 1.0), ("max", 3.0), ("first", 1.0)):
        view = as_rectangle(A, "f", duplicates=rule).directed_weights("f")
        assert (view.indices.tolist(), view.data.tolist()) == ([4, 2], [value, 7.0])
    with pytest.raises(ValueError, match=r"f: entries must be given once .* \(0, 4\)"):
        as_rectangle(A, "f", duplicates="error")
    assert as_rectangle(as_rectangle(A, "f"), "f", duplicates="max").directed_weights().nnz == 2


@pytest.mark.parametrize(
    ("A", "error", "words"),
    [
        (([0, 1], [4], (1, 4)), ValueError, "f: indices must be within 0..3, got 4 at entry 0"),
        (([0, 1], [0], (2, 4)), ValueError, "f: indptr must have 3 elements for 2 rows, got 2"),
        (([0, 2, 1], [0], (2, 4)), ValueError, "f: indptr must not decrease"),
        (([0, 1], [0]), TypeError, "f: a tuple must begin or end with its shape"),
        (([0, 1], [0], [1.0], [1.0], (1, 1)), TypeError, "f: a tuple must begin or end"),
        (((2, 3), [[2, 0]]), ValueError, r"f: rows of edges must be within 0..1, got \(2, 0\)"),
        (((2, 3), [[1, 3]]), ValueError, r"f: columns of edges must be within 0..2, got \(1, 3\)"),
        (((2, -3), [[1, 0]]), ValueError, "f: the sides of A must"),
        (((2, 1 << 63), [[1, 0]]), ValueError, "f: the sides of A must be at most"),
        (((2.0, 3), [[1, 0]]), TypeError, "f: the sides of A must"),
        (((2, 3), [[1, 0]], [1.0, 2.0]), ValueError, "f: weights must have one value for each"),
        (((2, 3), [[1.5, 0]]), TypeError, "f: edges must hold integers"),
        (np.ones(3), ValueError, "f: A must have 2 dimensions"),
        ("text", TypeError, "f: A must be a sparse matrix"),
        (None, TypeError, "f: A must be a sparse matrix"),
    ],
)
def test_refusals(A, error, words) -> None:
    with pytest.raises(error, match=words):
        as_rectangle(A, "f")


def test_broken_matrices_are_refused() -> None:
    for form, name, value in (("csc", "indices", 3), ("csr", "indices", 4), ("coo", "col", 4)):
        A = sp.csr_array(WIDE).asformat(form)
        getattr(A, name)[-1] = value
        with pytest.raises(ValueError, match="f: "):
            as_rectangle(A, "f")


def test_values_are_read_when_asked_for() -> None:
    R = as_rectangle(([0, 1], [1], ["text"], (1, 2)), "f")
    assert R.directed_pattern().nnz == 1
    with pytest.raises(TypeError, match="g: weights must be real numbers"):
        R.finite_weights("g")
    R = as_rectangle(([0, 1], [1], [np.inf], (1, 2)), "f")
    with pytest.raises(ValueError, match="g: weights must be finite, got inf at row 0, column 1"):
        R.finite_weights("g")


def test_room_for_more_entries_is_cut_where_indptr_ends() -> None:
    """On a GPU the end is not read before it is known to be another one."""
    indptr, indices = np.array([0, 1, 2], np.int32), np.array([1, 0, 99, 99], np.int32)
    spare = inputs.Raw(2, indptr, indices, np.arange(4.0), columns=3, spare=True)
    R = Rectangle(spare, None, "f")
    assert R.nnz == 2
    assert R.directed_weights().data.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="f: indptr must end at the number of indices, 4"):
        Rectangle(spare._replace(spare=False), None, "f")
    with pytest.raises(ValueError, match="f: indptr must end at the number of indices, 1"):
        Rectangle(spare._replace(indices=indices[:1]), None, "f")
