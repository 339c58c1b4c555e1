"""Elimination: trees and fill, minimum degree, nested dissection."""

from __future__ import annotations

import dataclasses
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, complete, cycle, disjoint, grid, path, rmat, star
from matchwood import (
    CheckFailed,
    elimination_order,
    elimination_tree,
    fill,
    minimum_degree,
    nested_dissection,
)
from matchwood.check import (
    check_dissection,
    check_elimination_tree,
    check_fill,
    check_minimum_degree,
)
from strategies import graphs
from support import THREADS, in_time, same, some

SLOW = {"random", "rmat", "rmat, directed", "long path", "thin grid", "grid", "shuffled path"}
SLOW |= {"shuffled grid", "shuffled grid 2", "shuffled tree", "directed"}  # for the reference
NAMES = some(ZOO, SLOW)


def some_order(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n)


def some_stages(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(-1, 3, n)


def assert_counted(A, perm):
    expected = fill(A, perm, engine="reference")
    found = fill(A, perm)
    assert same(found, expected)
    assert np.array_equal(elimination_tree(A, perm), expected.parent)
    assert np.array_equal(elimination_tree(A, perm, engine="reference"), expected.parent)
    check_fill(A, found, perm)
    check_elimination_tree(A, found.parent, perm)


@pytest.mark.parametrize("name", ZOO)
def test_fill_of_the_zoo(name):
    A = ZOO[name]()
    kept = A.copy()
    assert_counted(A, None)
    assert_counted(A, some_order(A.shape[0]))
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(A, part), getattr(kept, part))


@given(graphs(max_n=30, max_m=80))
def test_fill_of_random_matrices(A):
    assert_counted(A, some_order(A.shape[0], 7))


def test_fill_is_that_of_a_factorisation():
    """Random values do not cancel: L of NumPy has the entries that were counted."""
    A = grid(9, 8)
    rng = np.random.default_rng(3)
    for perm in (np.arange(72), minimum_degree(A), some_order(72)):
        B = A.toarray()[perm][:, perm] * rng.random((72, 72))
        L = np.linalg.cholesky(B + B.T + 100 * np.eye(72))
        found = fill(A, perm)
        assert np.array_equal((L != 0).sum(axis=0), found.counts)
        assert found.entries == np.count_nonzero(L)
        below = np.where(np.tril(L, -1) != 0, np.arange(72)[:, None], 72).min(axis=0)
        assert np.array_equal(np.where(below == 72, -1, below), found.parent)


def test_large_squares_are_added_exactly():
    assert matchwood.ordering.elimination.totals(np.array([2**31 + 1] * 9)) == (
        9 * (2**31 + 1), 9 * (2**31 + 1) ** 2,
    )  # fmt: skip


def test_the_checks_of_trees_and_fill_find_every_fault():
    A, perm = grid(4, 5), some_order(20)
    right = fill(A, perm)
    for name in ("entries", "operations", "height"):
        wrong = dataclasses.replace(right, **{name: getattr(right, name) + 1})
        with pytest.raises(matchwood.CheckFailed, match=f"fill: {name} is"):
            check_fill(A, wrong, perm)
    counts = right.counts.copy()
    counts[3] += 1
    with pytest.raises(matchwood.CheckFailed, match=r"fill: counts is .* at 3"):
        check_fill(A, dataclasses.replace(right, counts=counts), perm)
    for j in range(20):
        for value in {-2, -1, j, 19, 20, int(right.parent[j]) - 1} - {int(right.parent[j])}:
            parent = right.parent.copy()
            parent[j] = value
            with pytest.raises(matchwood.CheckFailed, match="elimination tree: "):
                check_elimination_tree(A, parent, perm)
    with pytest.raises(matchwood.CheckFailed, match="has no neighbour in its subtree"):
        check_elimination_tree(sp.csr_array((2, 2)), [1, -1])
    with pytest.raises(TypeError, match="answer must be a Fill"):
        check_fill(A, right.parent, perm)


def test_bad_permutations():
    for function in (fill, elimination_tree):
        with pytest.raises(ValueError, match=rf"{function.__name__}: perm must hold every row"):
            function(path(3), [0, 0, 1])
        with pytest.raises(ValueError, match=rf"{function.__name__}: A must be square"):
            function(sp.csr_array((2, 3)))


# Minimum degree


def assert_least(A, stages=None):
    expected = minimum_degree(A, stages=stages, engine="reference")
    found = minimum_degree(A, stages=stages)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    check_minimum_degree(A, found, stages=stages)


@pytest.mark.parametrize("name", NAMES)
def test_minimum_degree_of_the_zoo(name):
    A = ZOO[name]()
    assert_least(A)
    assert_least(A, some_stages(A.shape[0]))


@given(graphs(max_n=40, max_m=150))
def test_minimum_degree_of_random_matrices(A):
    assert_least(A)
    assert_least(A, some_stages(A.shape[0]))


@pytest.mark.slow
def test_minimum_degree_with_little_room():
    """Lists are packed again and again where elements grow; hubs are left to the end."""
    for seed in range(4):
        assert_least(rmat(9, 20, seed=seed))
    hubs = sp.block_array([[rmat(9, 2), np.ones((512, 2))], [None, sp.csr_array((2, 2))]])
    assert_least(sp.csr_array(hubs))


def test_minimum_degree_leaves_trees_without_fill():
    for A in (path(50), star(30), ZOO["tree"]()):
        n = A.shape[0]
        assert fill(A, minimum_degree(A)).entries == 2 * n - 1
    A = grid(30, 30)
    assert fill(A, minimum_degree(A)).operations < fill(A).operations / 4


def test_stages_are_kept():
    A, stages = grid(12, 12), some_stages(144)
    perm = minimum_degree(A, stages=stages)
    assert (np.diff(stages[perm]) >= 0).all()
    assert np.array_equal(perm, minimum_degree(A, stages=10 * stages))
    with pytest.raises(ValueError, match="minimum_degree: stages must have 144 elements, got 3"):
        minimum_degree(A, stages=[0, 1, 2])
    with pytest.raises(TypeError, match="minimum_degree: stages must hold integers"):
        minimum_degree(A, stages=np.zeros(144))


def test_the_check_of_minimum_degree_finds_every_fault():
    A = grid(5, 5)
    right = minimum_degree(A)
    swapped = right.copy()
    swapped[[3, 9]] = swapped[[9, 3]]
    with pytest.raises(matchwood.CheckFailed, match="minimum degree: place 3 has vertex"):
        check_minimum_degree(A, swapped)
    with pytest.raises(matchwood.CheckFailed, match="is missing"):
        check_minimum_degree(A, np.zeros(25, int))
    with pytest.raises(matchwood.CheckFailed, match="which is of a later stage"):
        check_minimum_degree(A, right, stages=np.arange(25)[::-1])


# Nested dissection


def assert_dissects(A, teams=THREADS, **options):
    kept = A.copy()
    expected = nested_dissection(A, engine="reference", **options)
    for threads in teams:
        found = nested_dissection(A, threads=threads, **options)
        assert same(found, expected)
    check_dissection(A, found)
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(A, part), getattr(kept, part))


@pytest.mark.parametrize("name", NAMES)
def test_dissections_of_the_zoo(name):
    A = ZOO[name]()
    assert_dissects(A, leaf=20, tries=1)
    assert_dissects(A, [3], leaf=60, leaves="rcm", tries=2, rng=4, imbalance=0.5)


@given(graphs(max_n=20, max_m=50))
def test_dissections_of_random_matrices(A):
    assert_dissects(A, [2], leaf=2, tries=1)


def test_equal_rows_stay_together():
    """Three unknowns at each point of a grid: the order is that of the grid."""
    A = grid(9, 12)
    B = sp.csr_array(sp.kron(A + sp.eye_array(108), np.ones((3, 3))))
    assert_dissects(B, leaf=40, tries=1)
    found = nested_dissection(B, leaf=40)
    node = np.repeat(np.arange(found.tree.size), np.diff(found.starts))[found.place]
    assert (node.reshape(108, 3) == node[::3, None]).all()


def test_pieces_without_a_separator_are_leaves():
    found = nested_dissection(complete(40), leaf=5)
    assert found.separators.tolist() == [False]
    found = nested_dissection(disjoint([complete(30), complete(20), path(3), path(2)]), leaf=8)
    check_dissection(disjoint([complete(30), complete(20), path(3), path(2)]), found)
    assert np.diff(found.starts).tolist() == [20, 30, 5, 0]
    assert repr(found).startswith("<Dissection: 55 vertices, 3 leaves")
    assert nested_dissection(sp.csr_array((0, 0))).perm.shape == (0,)


@pytest.mark.parametrize("tree", [[3, 5, 3, 5, 5, -1], [2, 4, 3, 4, -1]])
def test_trees_out_of_postorder_are_refused(tree):
    """Every parent comes later, but the nodes below one of them are not beside it."""
    A = sp.csr_array((len(tree), len(tree)))
    found = nested_dissection(A)
    cut = [k in tree for k in range(len(tree))]
    starts = np.arange(len(tree) + 1)
    wrong = dataclasses.replace(found, tree=np.array(tree), starts=starts, separators=np.array(cut))
    with pytest.raises(CheckFailed, match="no postorder"):
        check_dissection(A, wrong)


def test_a_grid_is_cut_in_halves():
    A = grid(63, 63)
    found = nested_dissection(A)
    check_dissection(A, found)
    assert found.starts[-1] - found.starts[-2] <= 63
    least = fill(A, minimum_degree(A))
    assert found.fill.operations < least.operations
    assert found.fill.height < fill(A).height / 8
    best = elimination_order(A)
    assert best.method == "dissection"
    assert np.array_equal(best.perm, found.perm)
    assert best.other.operations == least.operations
    assert repr(best).startswith("<EliminationOrder by dissection")
    for order in (found, best):  # orders are taken where a permutation is
        assert fill(A, order).entries == best.fill.entries
    tree = elimination_order(ZOO["tree"]())
    assert tree.method == "minimum_degree"
    assert tree.fill.operations <= tree.other.operations


METIS = {  # entries of L and operations of its NodeND, 5.1
    "graphs/4elt": (344_654, 13_231_024),
    "matrices/bcsstk33": (2_147_967, 761_058_545),
    "matrices/crack": (169_812, 6_617_148),
}


@pytest.mark.slow
def test_real_meshes_fill_in_as_little_as_by_metis(data_folder):
    for name, (entries, operations) in METIS.items():
        path = data_folder / f"{name}.mtx.gz"
        if path.exists():
            A = matchwood.io.read(path)
            found = nested_dissection(A)
            check_dissection(A, found)
            assert found.fill.entries <= entries
            assert found.fill.operations <= 1.05 * operations


def test_the_check_of_dissections_finds_every_fault():
    A = grid(8, 9)
    right = nested_dissection(A, leaf=10)
    k = right.tree.size
    tree, starts, separators = right.tree.copy(), right.starts.copy(), right.separators.copy()
    tree[0] = k - 1
    starts[1] += 1
    separators[0] = True
    perm = right.perm[::-1].copy()
    for change, message in [
        ({"perm": np.zeros(72, int)}, "is missing"),
        ({"perm": perm}, "place is"),
        ({"perm": perm, "place": 71 - right.place}, "of which none is above the other"),
        ({"tree": tree}, "no postorder|joins nodes|must be a separator"),
        ({"tree": np.zeros(k, int)}, "which cannot be"),
        ({"starts": starts}, "joins nodes"),
        ({"starts": starts[::-1]}, "starts must ascend"),
        ({"separators": separators}, "node 0 must be a separator if it has children"),
        ({"fill": fill(A)}, "fill: "),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_dissection(A, dataclasses.replace(right, **change))
    with pytest.raises(TypeError, match="answer must be a Dissection"):
        check_dissection(A, right.perm)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"leaf": 0}, ValueError, "leaf must be at least 1"),
        ({"leaf": 2.5}, TypeError, "leaf must be an integer"),
        ({"leaves": "best"}, ValueError, "leaves must be one of 'minimum_degree', 'rcm'"),
        ({"tries": 0}, ValueError, "tries must be at least 1"),
        ({"imbalance": -1}, ValueError, "imbalance must be finite and at least 0"),
        ({"rng": "seed"}, TypeError, "rng must be an integer"),
        ({"engine": "fast"}, ValueError, "engine must be None or one of"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=f"nested_dissection: {message}"):
        nested_dissection(cycle(5), **options)
    if options.keys() <= {"tries", "rng", "engine"}:
        with pytest.raises(error, match=f"elimination_order: {message}"):
            elimination_order(cycle(5), **options)
    with pytest.raises(ValueError, match="elimination_order: A must be square"):
        elimination_order(sp.csr_array((2, 3)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("delay", [0.03, 0.12])
@pytest.mark.parametrize(
    "call",
    [
        lambda G: nested_dissection(G, threads=2),
        lambda G: matchwood.vertex_separator(G, tries=9, threads=2),
        minimum_degree,
        lambda G: [fill(G, some_order(G.n)) for _ in range(9)],
    ],
)
def test_ctrl_c_ends_a_call_soon(call, delay):
    G = matchwood.graph(matchwood.generators.grid((600, 600)))
    G.undirected_pattern()
    call(matchwood.graph(grid(4, 4)))  # compiled
    sent = [0.0]

    def interrupt(number, frame):
        sent[0] = time.monotonic()
        raise KeyboardInterrupt

    def measure():
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            call(G)
        except KeyboardInterrupt:
            return time.monotonic() - sent[0]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return None  # it was done before

    in_time(measure, 0.1)
    assert same(nested_dissection(path(9)), nested_dissection(path(9), engine="reference"))


@pytest.mark.parametrize(
    "function",
    [fill, elimination_tree, minimum_degree, nested_dissection, elimination_order,
     matchwood.vertex_separator, matchwood.minimum_vertex_cover],
)  # fmt: skip
def test_there_is_no_gpu_engine(function):
    with pytest.raises(matchwood.EngineUnavailable):
        function(path(4), engine="gpu")
