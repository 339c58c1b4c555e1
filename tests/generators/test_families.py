"""path, cycle, star, complete, mycielskian: equal to NetworkX's."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from matchwood.generators import complete, cycle, mycielskian, path, star
from matchwood.primitives.assemble.check import check_canonical
from support import same

FAMILIES = {
    "path": (path, nx.path_graph, (0, 1, 2, 3, 50)),
    "cycle": (cycle, nx.cycle_graph, (3, 4, 50)),
    "star": (star, lambda n: nx.star_graph(n - 1), (1, 2, 3, 50)),
    "complete": (complete, nx.complete_graph, (0, 1, 2, 3, 30)),
    "mycielskian": (mycielskian, nx.mycielski_graph, (1, 2, 3, 4, 5, 8)),
}
CASES = [(name, n) for name, (_, _, sizes) in FAMILIES.items() for n in sizes]


def parts(A):
    return A.indptr, A.indices, A.data


@pytest.mark.parametrize(("name", "n"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_families(name, n, dtype):
    make, expected, _ = FAMILIES[name]
    A = make(n, dtype=dtype)
    check_canonical(A.indptr, A.indices, A.shape[0])
    assert A.dtype == dtype
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert (A.data == 1).all()
    G = expected(n)
    assert A.shape == (len(G), len(G))
    if len(G):
        assert np.array_equal(A.toarray(), nx.to_numpy_array(G, nodelist=range(len(G))))
    assert same(parts(A), parts(make(n, dtype=dtype, engine="reference")))


def test_star_without_vertices():
    assert star(0).shape == (0, 0)


@pytest.mark.parametrize("k", range(2, 13))
def test_mycielskian_sizes(k):
    A = mycielskian(k)
    assert A.shape[0] == 3 * 2 ** (k - 2) - 1
    assert A.nnz // 2 == (7 * 3 ** (k - 2) + 1) // 2 - 3 * 2 ** (k - 2)


def test_mycielskian_has_no_triangles():
    A = mycielskian(7)
    assert (A @ A).multiply(A).nnz == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: path(-1), ValueError, "path: n must be at least 0, got -1"),
        (lambda: path(1.5), TypeError, "path: n must be an integer, got 1.5"),
        (lambda: cycle(2), ValueError, "cycle: n must be at least 3, got 2"),
        (lambda: star(None), TypeError, "star: n must be an integer, got None"),
        (lambda: complete("3"), TypeError, "complete: n must be an integer, got '3'"),
        (lambda: mycielskian(0), ValueError, "mycielskian: k must be at least 1, got 0"),
        (lambda: mycielskian(23), ValueError, "mycielskian: k must be at most 22"),
        (lambda: path(3, dtype=int), TypeError, "path: dtype must be float32 or float64"),
        (lambda: path(3, engine="fpga"), ValueError, "path: engine must be None or one of"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
