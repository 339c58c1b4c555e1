"""rmat, erdos_renyi, dense_random: equal to the definition, whatever the threads; their numbers."""

from __future__ import annotations

import itertools
from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from matchwood.generators import dense_random, erdos_renyi, random_points, rmat
from matchwood.generators.hashed import reference
from matchwood.primitives.assemble.check import check_canonical
from support import THREADS, same

GRAPH500 = (0.57, 0.19, 0.19, 0.05)


def parts(A):
    return A.indptr, A.indices, A.data


def check_simple(A, *, directed=False):
    """Sorted rows without duplicates, no self loops, symmetric."""
    check_canonical(A.indptr, A.indices, A.shape[0])
    assert A.has_canonical_format
    assert not A.diagonal().any()
    if not directed:
        assert same(parts(A), parts(A.T.tocsr()))


# rmat


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 8, 9])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("permute", [False, True])
def test_rmat_equals_reference(scale, directed, permute):
    options = {"directed": directed, "permute": permute, "rng": 7}
    A = rmat(scale, 8, engine="reference", **options)
    assert A.shape == (2**scale, 2**scale)
    check_simple(A, directed=directed)
    for threads in THREADS:
        assert same(parts(rmat(scale, 8, threads=threads, **options)), parts(A))


@given(
    st.lists(st.integers(0, 8), min_size=4, max_size=4).filter(any),
    st.integers(0, 7),
    st.integers(0, 2**64 - 1),
)
def test_rmat_with_any_quarters(shares, scale, seed):
    a, b, c, d = (share / sum(shares) for share in shares)
    options = {"a": a, "b": b, "c": c, "d": d, "rng": seed, "permute": False, "directed": True}
    A = rmat(scale, 3, **options)
    assert same(parts(A), parts(rmat(scale, 3, engine="reference", **options)))
    for share, (down, right) in zip(shares, itertools.product((0, 1), repeat=2), strict=True):
        if share == 0 and scale:  # nothing falls into a quarter that has no probability
            half = 2 ** (scale - 1)
            assert A[down * half :, :][:half, right * half :][:, :half].nnz == 0


def test_rmat_samples_fall_into_quarters_as_asked():
    """Each level of each edge is a draw; the share of a quarter must be that of its parameter."""
    plan = reference.RMAT.of(12, 40_000, GRAPH500, 3, directed=True, permute=False)
    u, v = (x.astype(np.int64) for x in reference.rmat_edges(plan))
    for level in range(12):
        quarter = 2 * (u >> (11 - level) & 1) + (v >> (11 - level) & 1)
        shares = np.bincount(quarter, minlength=4) / plan.samples
        # six standard deviations of a share near 1/2
        assert np.allclose(shares, GRAPH500, atol=6 * 0.5 / np.sqrt(plan.samples))
    assert np.corrcoef(u & 1, u >> 1 & 1)[0, 1] < 6 / np.sqrt(plan.samples)


@pytest.mark.parametrize("scale", range(12))
def test_rmat_labels_are_a_permutation(scale):
    plan = reference.RMAT.of(scale, 0, GRAPH500, 11, directed=False, permute=True)
    labels = reference.relabelled(np.arange(2**scale, dtype=np.uint64), plan)
    assert np.array_equal(np.sort(labels), np.arange(2**scale))


def test_rmat_permute_only_renumbers():
    scale, seed = 9, 5
    plan = reference.RMAT.of(scale, 0, GRAPH500, seed, directed=False, permute=True)
    label = reference.relabelled(np.arange(2**scale, dtype=np.uint64), plan).astype(np.int64)
    plain, moved = rmat(scale, permute=False, rng=seed), rmat(scale, rng=seed)
    assert (moved[label][:, label] != plain).nnz == 0
    # high degrees come first unless renumbered
    degree = np.diff(plain.indptr)
    assert degree[: 2**6].sum() > 0.3 * plain.nnz
    assert np.diff(moved.indptr)[: 2**6].sum() < 0.2 * plain.nnz


def test_rmat_edges_drawn():
    assert rmat(6, 0).nnz == 0
    assert rmat(6, 0.5, directed=True).nnz <= 32
    assert rmat(10).nnz > 1.4 * 8 * 1024  # of 2 * 16 * 1024; the others were equal or loops


# erdos_renyi

SIZES = [(0, 0), (1, 0), (2, 1), (3, 3), (4, 2), (50, 0), (50, 300), (51, 1275), (5000, 300)]


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi_equals_reference(n, m, directed):
    A = erdos_renyi(n, m, directed=directed, rng=3, engine="reference")
    assert A.shape == (n, n)
    assert A.nnz == (m if directed else 2 * m)  # exactly m different edges
    check_simple(A, directed=directed)
    for threads in THREADS:
        made = erdos_renyi(n, m, directed=directed, rng=3, threads=threads)
        assert same(parts(made), parts(A))


@given(st.integers(0, 40), st.floats(0, 1), st.booleans(), st.integers(0, 2**64 - 1))
def test_erdos_renyi_has_m_edges(n, share, directed, seed):
    m = int(share * n * max(n - 1, 0) / (1 if directed else 2))
    A = erdos_renyi(n, m, directed=directed, rng=seed)
    assert A.nnz == (m if directed else 2 * m)
    check_simple(A, directed=directed)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "directed"), [(4, 2, False), (4, 3, False), (3, 2, True)])
def test_erdos_renyi_graphs_are_equally_likely(n, m, directed):
    """Over many seeds every graph occurs about as often as any other."""
    possible = comb(n * (n - 1) // (1 if directed else 2), m)
    each = 100
    seen: Counter[bytes] = Counter()
    for seed in range(possible * each):
        indptr, indices = reference.gnm(reference.GNM.of(n, m, seed, directed=directed))
        seen[indptr.tobytes() + indices.tobytes()] += 1
    assert len(seen) == possible
    statistic = sum((count - each) ** 2 / each for count in seen.values())
    assert chi2.sf(statistic, possible - 1) > 1e-4


def test_erdos_renyi_degrees_and_triangles():
    """Spread of degrees and number of triangles are those of the model."""
    for n, m in ((4000, 32_000), (9000, 72_000)):  # below and above the bits that count as small
        A = erdos_renyi(n, m, rng=1)
        p = m / comb(n, 2)
        degree = np.diff(A.indptr)
        assert degree.mean() == 2 * m / n
        assert abs(degree.var() / ((n - 1) * p * (1 - p)) - 1) < 6 * np.sqrt(2 / n)
        triangles = (A @ A).multiply(A).sum() / 6
        expected = comb(n, 3) * p**3
        assert abs(triangles - expected) < 6 * np.sqrt(expected)


# dense_random


@pytest.mark.parametrize("n", [0, 1, 2, 37])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.45, 0.65, 1.0])
@pytest.mark.parametrize("directed", [False, True])
def test_dense_random_equals_reference(n, density, directed):
    options = {"directed": directed, "rng": 2}
    A = dense_random(n, density, engine="reference", **options)
    assert A.shape == (n, n)
    check_simple(A, directed=directed)
    for threads in THREADS:
        assert same(parts(dense_random(n, density, threads=threads, **options)), parts(A))
    if density in (0.0, 1.0):
        assert A.nnz == density * n * max(n - 1, 0)


@pytest.mark.parametrize("density", [0.1, 0.45, 0.65])
@pytest.mark.parametrize("directed", [False, True])
def test_dense_random_density(density, directed):
    n = 600
    A = dense_random(n, density, directed=directed)
    pairs = n * (n - 1) if directed else n * (n - 1) / 2
    deviation = np.sqrt(density * (1 - density) / pairs)
    assert abs(A.nnz / (n * (n - 1)) - density) < 6 * deviation


def test_dense_random_grows_with_the_density():
    few, many = (dense_random(80, density, rng=4).toarray() for density in (0.3, 0.4))
    assert (few <= many).all()
    assert (few < many).any()


# what they share


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_seeds(seed):
    for make in (
        lambda rng: rmat(7, rng=rng),
        lambda rng: erdos_renyi(100, 300, rng=rng),
        lambda rng: dense_random(40, 0.3, rng=rng),
    ):
        assert same(parts(make(seed)), parts(make(np.uint64(seed))))
        other = make((seed + 1) % 2**64)
        assert not (np.array_equal(make(seed).indices, other.indices))


def test_seed_from_a_generator():
    one, other = (rmat(6, rng=np.random.default_rng(5)) for _ in range(2))
    assert same(parts(one), parts(other))
    rng = np.random.default_rng(5)
    assert not same(parts(rmat(6, rng=rng)), parts(rmat(6, rng=rng)))
    assert same(parts(rmat(6, rng=None)), parts(rmat(6, rng=0)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, "uniform", "integers"])
@pytest.mark.parametrize("directed", [False, True])
def test_weights(dtype, weights, directed):
    options = {"weights": weights, "dtype": dtype, "directed": directed, "rng": 9}
    for make in (
        lambda **more: rmat(7, **options, **more),
        lambda **more: erdos_renyi(90, 400, **options, **more),
        lambda **more: dense_random(50, 0.3, **options, **more),
    ):
        A = make(engine="reference")
        assert A.dtype == dtype
        assert A.indices.dtype == A.indptr.dtype == np.int32
        check_simple(A, directed=directed)
        for threads in THREADS:
            assert same(parts(make(threads=threads)), parts(A))


# Graphs that must not change from one version to the next


def test_graphs_stay_as_they_are():
    A = rmat(3, 2, rng=0)
    assert A.indptr.tolist() == [0, 5, 6, 6, 7, 9, 9, 11, 12]
    assert A.indices.tolist() == [1, 3, 4, 6, 7, 0, 0, 0, 6, 0, 4, 0]
    A = erdos_renyi(6, 5, rng=0)
    assert A.indices.tolist() == [3, 4, 5, 3, 4, 1, 2, 1, 2, 1]
    A = dense_random(5, 0.5, rng=0, weights="integers")
    assert A.indices.tolist() == [4, 2, 4, 1, 3, 4, 2, 4, 0, 1, 2, 3]
    assert A.data.tolist() == [10, 195, 67, 195, 115, 216, 115, 235, 10, 67, 216, 235]
    points = random_points(2, rng=0) * 2**31
    assert points.tolist() == [[481085325, 655400409], [1374898288, 1194364084]]


# errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rmat(-1), ValueError, "rmat: scale must be at least 0, got -1"),
        (lambda: rmat(41), ValueError, "rmat: scale must be at most 40"),
        (lambda: rmat(2.5), TypeError, "rmat: scale must be an integer, got 2.5"),
        (lambda: rmat(True), TypeError, "rmat: scale must be an integer"),
        (lambda: rmat(3, -1), ValueError, "rmat: edge_factor must be finite and at least 0"),
        (lambda: rmat(3, float("inf")), ValueError, "rmat: edge_factor must be finite"),
        (lambda: rmat(3, "16"), TypeError, "rmat: edge_factor must be a number, got '16'"),
        (lambda: rmat(3, a=0.9), ValueError, "rmat: a + b + c + d must be 1, got 1.33"),
        (lambda: rmat(3, a=-0.1), ValueError, "rmat: a must be finite and between 0 and 1"),
        (lambda: rmat(3, a=float("nan")), ValueError, "rmat: a must be finite"),
        (lambda: rmat(3, directed=1), TypeError, "rmat: directed must be True or False, got 1"),
        (lambda: rmat(3, permute=None), TypeError, "rmat: permute must be True or False"),
        (lambda: rmat(3, weights="normal"), ValueError, "rmat: weights must be one of None, 'uni"),
        (lambda: rmat(3, weights=1), ValueError, "rmat: weights must be one of None"),
        (lambda: rmat(3, dtype=np.int32), TypeError, "rmat: dtype must be float32 or float64"),
        (lambda: rmat(3, dtype=None), TypeError, "rmat: dtype must be float32 or float64"),
        (lambda: rmat(3, dtype="text"), TypeError, "rmat: dtype must be float32 or float64"),
        (lambda: rmat(3, rng=-1), ValueError, "rmat: rng must lie in 0 .. 2**64 - 1, got -1"),
        (lambda: rmat(3, rng=2**64), ValueError, "rmat: rng must lie in 0 .. 2**64 - 1"),
        (lambda: rmat(3, rng=1.0), TypeError, "rmat: rng must be an integer, a Generator or None"),
        (lambda: rmat(3, rng=False), TypeError, "rmat: rng must be an integer, a Generator"),
        (lambda: rmat(3, engine="tpu"), ValueError, "rmat: engine must be None or one of"),
        (lambda: rmat(3, threads=0), ValueError, "rmat: threads must be at least 1"),
        (lambda: erdos_renyi(-1, 0), ValueError, "erdos_renyi: n must be at least 0, got -1"),
        (lambda: erdos_renyi(2**31 + 1, 0), ValueError, "erdos_renyi: n must be at most"),
        (lambda: erdos_renyi(4, 7), ValueError, "erdos_renyi: m must be at most 6 (all edges of 4"),
        (lambda: erdos_renyi(4, 13, directed=True), ValueError, "erdos_renyi: m must be at most 1"),
        (lambda: erdos_renyi(1, 1), ValueError, "erdos_renyi: m must be at most 0"),
        (lambda: erdos_renyi(4, 1.0), TypeError, "erdos_renyi: m must be an integer, got 1.0"),
        (lambda: dense_random(4, 1.1), ValueError, "dense_random: density must be finite and betw"),
        (lambda: dense_random(4, None), TypeError, "dense_random: density must be a number"),
        (lambda: dense_random("4", 0.1), TypeError, "dense_random: n must be an integer, got '4'"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
