"""Attacks on the gate: forged symmetry, arrays that lie, parallel edges, text for weights."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial import keyed_hashes
from adversarial.clock import attempts
from adversarial.forged_symmetry import VERTICES, forged_arcs, known_key
from graphs import grid
from matchwood.primitives import assemble, inspect, symmetrize, transpose
from matchwood.primitives.inspect import cpu, keys

# ---- symmetry ----


@pytest.fixture(scope="module")
def forged():
    """Arcs that pass as symmetric under a key that was known beforehand, and that key."""
    u, v = forged_arcs()
    assert (u < v).all()
    return sp.csr_array((np.ones(u.size), (u, v)), shape=(VERTICES, VERTICES)), known_key()


def test_who_knows_the_key_can_forge_symmetry_and_nobody_else(forged) -> None:
    A, key = forged
    assert cpu.symmetry(A.indptr, A.indices, key=key).symmetric  # the attack works
    assert cpu.values(A.indptr, A.indices, A.data, key=key).symmetric
    assert not cpu.symmetry(A.indptr, A.indices).symmetric
    assert not inspect.values(A.indptr, A.indices, A.data).symmetric
    G = matchwood.graph(A)
    assert not G.has_symmetric_pattern
    assert G.undirected_pattern().nnz == 2 * A.nnz


@pytest.mark.gpu
def test_forged_symmetry_on_the_gpu(forged) -> None:
    import cupy

    A, _ = forged
    G = matchwood.graph(tuple(cupy.asarray(array) for array in (A.indptr, A.indices, A.data)))
    assert not G.has_symmetric_pattern
    assert not G.has_symmetric_values


def test_keys_are_the_process_own() -> None:
    """Random, kept, and another one in every process."""
    import subprocess
    import sys

    program = "from matchwood.primitives.inspect import keys; print(keys.key(), keys.words(4))"
    runs = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 2
    assert keys.key() is keys.key()
    assert keys.words(4) is keys.words(4)
    assert len(set(keys.key())) == len(keys.key())
    assert all(word >> 63 and word >> 32 & 1 for word in keys.words(4))


def test_the_probabilities_that_are_stated() -> None:
    """Of the docstring of primitives/inspect, for numbers that are independent and uniform."""

    def products(bits: int) -> float:
        """The chance of a sum of products to vanish in so many bits, at most."""
        return min(1.0, (1 + bits / 2) / 2.0**bits)

    assert 2 * math.log2(products(64)) < -117
    shared = sum(2.0 ** -(v + 1) * products(64 - v) ** 2 for v in range(64)) + 2.0**-64
    assert math.log2(shared) < -61


SIGN = 1 << 63
ONE, TWO = 0x3FF0_0000_0000_0000, 0x4000_0000_0000_0000
PATTERNS = {
    "a rectangle": [(0, 1 << 20), (1 << 20, 1), (2, 1), (2 + (1 << 20), 0)],
    "corners": [(5, 9), (9, 7), (6, 11), (11, 4)],
    "near": [(1, 2), (2, 3), (3, 4), (4, 1)],
    "high bits": [(0, 1 << 30), (1 << 30, 1), (1 << 29, 1 << 28), (3 << 28, 2)],
    "one arc": [(3, 8)],
    "parallel": [(8, 1032), (1033, 9), (1034, 10), (11, 1035)],
}
VALUED = {
    "signs": [(0, 1, ONE), (1, 0, ONE ^ SIGN), (2, 3, ONE), (3, 2, ONE ^ SIGN)],
    "signs against": [(0, 1, ONE), (1, 0, ONE ^ SIGN), (2, 3, ONE ^ SIGN), (3, 2, ONE)],
    "swapped": [(0, 1, ONE), (1, 0, TWO), (2, 3, TWO), (3, 2, ONE)],
    "powers": [(0, 1, ONE), (1, 0, TWO), (0, 2, TWO), (2, 0, ONE)],
    "last bits": [(0, 1, ONE), (1, 0, ONE + 1), (1, 2, ONE + 1), (2, 1, ONE)],
    "zero": [(0, 1, 0), (1, 0, ONE), (1, 2, ONE), (2, 1, 0)],
}


@pytest.mark.parametrize("engine", ["cpu", "gpu", "gpu, wide"])
def test_no_pattern_cancels_under_many_keys(engine) -> None:
    """Sums of few structured entries, under many keys: every part of 16 bits is as good as random.

    Under 4096 keys a part is zero 1/16 times on average; 12 times is no chance.
    """
    rng = np.random.default_rng(7)
    count = 4096
    entry = keyed_hashes.cpu_entry if engine == "cpu" else keyed_hashes.gpu_entry
    options = {"wide": True} if engine == "gpu, wide" else {}
    draw = keyed_hashes.cpu_keys if engine == "cpu" else keyed_hashes.gpu_keys
    for _ in attempts(0.2):
        key = draw(rng, count)
        for name, entries in (PATTERNS | VALUED).items():
            hashes = [entry(key, *e, **options) for e in entries]
            for which in range(2):
                total = sum(h[which] for h in hashes)
                assert not (total == 0).any(), name
                for shift in (0, 16, 32, 48):
                    part = total >> np.uint64(shift) & np.uint64(0xFFFF)
                    assert np.count_nonzero(part == 0) < 12, (name, which, shift)


def test_the_hashes_of_the_attacks_are_those_of_the_kernels() -> None:
    """The kernel finds the forged arcs symmetric; so does the definition."""
    sums = keyed_hashes.cpu_entry(known_key(), *forged_arcs())
    assert [int(part.sum()) for part in sums] == [0, 0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_bit_of_a_value_counts(kind) -> None:
    """A difference in the highest bit alone vanishes for half of all multipliers modulo 2^64."""
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0])
    width = 8 * np.dtype(kind).itemsize
    bits = np.array([1.5, 1.5], kind).view(f"u{width // 8}")
    for bit in range(width):
        other = bits.copy()
        other[1] ^= bits.dtype.type(1 << bit)
        data = other.view(kind)
        if np.isfinite(data).all():
            assert not inspect.values(indptr, indices, data).symmetric


def test_small_changes_are_seen() -> None:
    """Swap, move or add entries of symmetric matrices so that all simple sums stay as they were."""
    rng = np.random.default_rng(0)
    for k in attempts(0.2):
        n = int(rng.integers(3, 40))
        dense = np.triu(rng.random((n, n)) < 0.4, 1)
        dense = dense | dense.T
        i, j, p, q = rng.integers(0, n, 4)
        wrong = dense.copy()
        wrong[i, j] ^= True
        if k % 2:
            wrong[p, q] ^= True
        A = sp.csr_array(wrong.astype(float))
        expected = bool((wrong == wrong.T).all())
        assert inspect.symmetry(A.indptr, A.indices).symmetric == expected


# ---- arrays that lie ----


def spoiled(A, rng: random.Random):
    """A sparse matrix with one of its arrays replaced by something else."""
    names = {
        "csr": ("indptr", "indices", "data"), "csc": ("indptr", "indices", "data"),
        "bsr": ("indptr", "indices", "data"), "coo": ("row", "col", "data"),
        "dia": ("offsets", "data"), "lil": ("rows", "data"),
    }[A.format]  # fmt: skip
    name = rng.choice(names)
    old = getattr(A, name)
    new = rng.choice([
        lambda: old[: rng.randrange(len(old))],
        lambda: np.concatenate([old, old]),
        lambda: old[::-1],
        lambda: old.astype(object),
        lambda: old.astype(np.float64) if old.dtype != object else old[:1],
        lambda: old.astype(np.int8) if old.dtype != object else old[:0],
        lambda: old.reshape(1, *old.shape),
        lambda: np.full_like(old, rng.choice([-1, 2**31 - 1, 7, -(2**31)])),
        lambda: old.tolist(),
        lambda: None,
        lambda: np.array(5),
        lambda: np.repeat(old, 2, axis=0)[::2],
        lambda: old.astype(old.dtype.newbyteorder(">")),
        lambda: np.full(len(old), 2**63, np.uint64),
    ])  # fmt: skip
    value = new()
    if A.format == "coo" and name != "data":
        A.coords = tuple(value if n == name else getattr(A, n) for n in ("row", "col"))
    else:
        setattr(A, name, value)
    return A


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil"])
def test_matrices_with_spoiled_arrays_are_refused_or_read(form: str) -> None:
    rng = random.Random(form)
    for _ in attempts(0.2):
        A = sp.csr_array(grid(3, 4)).asformat(form)
        try:
            A = spoiled(A, rng)
        except (ValueError, TypeError, AttributeError, OverflowError):
            continue  # SciPy or NumPy itself would not have it
        refusal = ""
        try:
            G = matchwood.graph(A)
            G.undirected_pattern()
            matchwood.connected_components(G)
            G.undirected_weights()
        except (TypeError, ValueError) as error:
            refusal = str(error)
        assert refusal.startswith(("", "graph: ")[refusal != ""])


def test_data_shorter_than_indices() -> None:
    A = grid(30, 30, 1.0)
    A.data = A.data[:5]
    with pytest.raises(ValueError, match="data must have one value for each index"):
        matchwood.minimum_spanning_forest(A)
    with pytest.raises(ValueError, match="data must have one value for each index"):
        matchwood.graph((A.indptr, A.indices, A.data))
    B = grid(5, 5, 1.0).tocsc()
    B.data = B.data[:3]
    with pytest.raises(ValueError, match="with a value for each"):
        matchwood.graph(B)


def test_what_a_matrix_says_of_itself_is_not_believed() -> None:
    A = sp.csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3, 3, 3])), shape=(3, 3))
    A.has_sorted_indices = A.has_canonical_format = True
    view = matchwood.graph(A).directed_weights()
    assert (view.indices.tolist(), view.data.tolist()) == ([0, 2], [2.0, 1.0])
    B = sp.csr_array(grid(3, 3))
    B._shape = (4, 4)
    with pytest.raises(ValueError, match="indptr must have 5 elements for 4 rows"):
        matchwood.graph(B)


def test_a_class_made_from_scipy_s_is_taken() -> None:
    class Mine(sp.csr_array):
        pass

    assert matchwood.graph(Mine(grid(3, 3))).n == 9


def test_dok_and_masked_and_subclassed_arrays() -> None:
    D = grid(2, 2).todok()
    D._dict[9, 9] = 1.0
    with pytest.raises(ValueError, match=r"graph: .*9"):
        matchwood.graph(D)
    with pytest.raises(TypeError, match="without a mask"):
        matchwood.graph(np.ma.masked_array(np.ones((2, 2)), [[0, 1], [0, 0]]))
    assert matchwood.graph(np.matrix([[0, 1], [1, 0]])).undirected_weights().nnz == 2


def test_what_a_mask_hides_counts_nowhere() -> None:
    """Hidden numbers were taken as if there were no mask: an edge came back, with its weight."""
    hidden = np.ma.masked_array([1.0, 9.0], [False, True])
    ends = np.ma.masked_array([0, 2], [False, True])
    A = grid(2, 2)
    calls = {
        "graph": lambda: matchwood.graph((3, [[0, 1], [1, 2]], hidden)).undirected_weights(),
        "bfs": lambda: matchwood.bfs(A, ends),
        "matching_bound": lambda: matchwood.matching_bound(
            A, np.ma.masked_array([1, 0, 3, 2], [1] * 4)
        ),
        "permute": lambda: matchwood.permute(A, np.ma.masked_array([1, 0, 3, 2], [1] * 4)),
        "streaming_matching": lambda: matchwood.streaming_matching([(ends, ends + 1, hidden)], n=4),
        "tridiagonal.solve": lambda: matchwood.tridiagonal.solve(hidden, hidden, hidden, hidden),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"^{name}: .* without a mask"):
            call()


def test_public_primitives_refuse_bad_arrays() -> None:
    rng = np.random.default_rng(1)
    good = (np.array([0, 1, 2]), np.array([1, 0]), np.array([1.0, 1.0]))
    for _ in attempts(0.2):
        indptr, indices, data = (array.copy() for array in good)
        spoil = rng.integers(5)
        if spoil == 0:
            indptr[rng.integers(3)] = rng.choice([-1, 7, 10**9])
        elif spoil == 1:
            indices[rng.integers(2)] = rng.choice([-1, 2, 10**9])
        elif spoil == 2:
            data = data[:1]
        elif spoil == 3:
            indptr = indptr[: rng.integers(3)]
        else:
            indices = indices.astype(np.float64)
        for call in (
            lambda a: transpose.transpose(*a, 2),
            lambda a: assemble.canonical(*a, 2),
            lambda a: symmetrize.union_with_transpose(*a),
            lambda a: symmetrize.magnitudes(*a),
            lambda a: inspect.values(*a),
        ):
            with pytest.raises((TypeError, ValueError)):
                call((indptr, indices, data))
    for rows, cols in (([0, 5], [0, 1]), ([0, -1], [0, 1]), ([0], [0, 1]), ([0.0], [0.0])):
        with pytest.raises((TypeError, ValueError), match="assemble: "):
            assemble.assemble(2, 2, np.array(rows), np.array(cols))


# ---- parallel edges ----


def brute(n, edges, weights, choose):
    table: dict[tuple[int, int], float] = {}
    for (u, v), w in zip(edges, weights, strict=True):
        if u != v:
            key = (min(u, v), max(u, v))
            table[key] = choose(table[key], w) if key in table else w
    return table


def test_parallel_edges_against_networkx() -> None:
    nx = pytest.importorskip("networkx")
    rng = np.random.default_rng(2)
    for k in attempts(0.4):
        n = int(rng.integers(2, 9))
        m = int(rng.integers(1, 25))
        edges = rng.integers(0, n, (m, 2))
        weights = rng.integers(-4, 9, m) * (1.0 if k % 2 else 1)
        for make in (nx.MultiGraph, nx.MultiDiGraph):
            H = make()
            H.add_nodes_from(range(n))
            H.add_weighted_edges_from(
                [(*e, w) for e, w in zip(edges.tolist(), weights.tolist(), strict=True)]
            )
            U = nx.MultiGraph()  # not of H: two directions with one key would become one edge
            U.add_nodes_from(range(n))
            U.add_edges_from(H.edges(data=True))
            for A in (H, (n, edges, weights)):
                G = matchwood.graph(A)
                least = nx.minimum_spanning_tree(U).size("weight")
                most = nx.maximum_spanning_tree(U).size("weight")
                assert matchwood.minimum_spanning_forest(G).total == least
                found = matchwood.minimum_spanning_forest(G, maximum=True)
                assert found.total == most
                matchwood.check.check_spanning_forest(G, found, maximum=True)
                heaviest = brute(n, edges.tolist(), abs(weights).tolist(), max)
                view = G.undirected_weights()
                rows = np.repeat(np.arange(n), np.diff(view.indptr))
                got = {
                    (int(i), int(j)): float(w)
                    for i, j, w in zip(rows, view.indices, view.data, strict=True)
                    if i < j
                }
                assert got == {e: w for e, w in heaviest.items() if w}
