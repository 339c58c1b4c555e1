"""What a Graph keeps for walks along arcs: transposed weights, and the diagonal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import ZOO, dense_values


@pytest.mark.parametrize("name", ZOO)
def test_transposed_weights(name):
    A = ZOO[name]()
    G = matchwood.graph(A)
    view = G.transposed_weights()
    n = A.shape[0]
    B = sp.csr_array((view.data, view.indices, view.indptr), shape=(n, n))
    assert np.allclose(B.toarray(), dense_values(A).T)
    assert B.has_sorted_indices
    assert G.transposed_weights() is view
    if G.has_symmetric_values:
        assert view.data is G.directed_weights().data


@pytest.mark.parametrize("name", ZOO)
def test_diagonal(name):
    A = ZOO[name]()
    found = matchwood.graph(A).diagonal()
    assert np.allclose(found, np.diag(dense_values(A)))


def test_values_that_are_not_finite_are_refused():
    A = sp.csr_array(np.array([[0.0, np.nan], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="asked"):
        matchwood.graph(A).transposed_weights("asked")
