"""Partitions: one body for all engines; teams; what is refused; bisections."""

from __future__ import annotations

import math
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import (
    ZOO,
    disjoint,
    from_edges,
    grid,
    path,
    random_graph,
    rmat,
    shuffled,
    star,
)
from matchwood.partitioning import bisection
from matchwood.partitioning.bisection import cpu as bisection_cpu
from matchwood.partitioning.bisection import reference as bisection_reference
from matchwood.partitioning.kway import cpu, multilevel
from matchwood.partitioning.kway.task import task_of
from strategies import graphs
from support import same, start_script

NEGATIVE = ("mixed signs", "skew-symmetric")
SMALL_ZOO = [name for name in ZOO if name not in NEGATIVE]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs are coarsened too, and get the team that is asked for."""
    sizes = {
        "VERTICES_PER_BLOCK": 4, "VERTICES_OF_START": 20,
        "VERTICES_PER_BLOCK_OF_CYCLES": 2, "VERTICES_OF_CYCLES": 10,
    }  # fmt: skip
    for name, value in sizes.items():
        monkeypatch.setattr(multilevel, name, value)
    monkeypatch.setattr(cpu, "ONE_MEMBER_SIZE", 0)


def weights_of(n: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 9, n)


def some_fixed(n: int, k: int) -> Any:
    fixed = np.full(n, -1)
    fixed[::7] = np.arange(fixed[::7].size) % k
    return fixed


@pytest.mark.slow
def test_zoo(small: None) -> None:
    """Equal to the reference, the check holds, balanced, none empty; the input is untouched."""
    for name in SMALL_ZOO:
        A = ZOO[name]()
        before = A.copy()
        n = A.shape[0]
        for k in sorted({1, min(2, max(n, 1)), min(5, max(n, 1))}):
            expected = matchwood.partition(A, k, rng=3, engine="reference")
            found = matchwood.partition(A, k, rng=3, threads=1)
            assert same(found.labels, expected.labels), (name, k)
            assert found.cut == expected.cut
            assert found.excess == 0
            found.check(A)
        assert same((A.indptr, A.indices, A.data), (before.indptr, before.indices, before.data))


CASES: dict[str, Any] = {
    "plain": {},
    "fast": {"effort": 0},
    "cycles": {"effort": 2},
    "tight": {"imbalance": 0},
    "connected": {"connected": True},
    "weights": {"vertex_weights": weights_of(230)},
    "float weights": {"vertex_weights": weights_of(230) / 7, "imbalance": 0.2},
    "targets": {"block_weights": [1, 2, 3, 4]},
    "fixed": {"fixed": some_fixed(230, 4)},
    "fixed, cycles": {"fixed": some_fixed(230, 4), "effort": 2, "block_weights": [3, 1, 1, 2]},
}


@pytest.mark.parametrize("case", CASES)
def test_teams(case: str, small: None) -> None:
    """The reference's labels at 1, 2, 3 and 7 threads."""
    G = matchwood.graph(shuffled(rmat(7, 4), isolated=102))
    expected = matchwood.partition(G, 4, rng=5, engine="reference", **CASES[case])
    expected.check(G)
    for threads in (1, 2, 3, 7):
        found = matchwood.partition(G, 4, rng=5, threads=threads, **CASES[case])
        assert same(found.labels, expected.labels), threads
        assert [level[:4] for level in found.levels] == [level[:4] for level in expected.levels]
    matchwood.check.check_partition(
        G, found, **{name: CASES[case][name] for name in CASES[case]
                     if name not in ("effort", "connected")},
    )  # fmt: skip


@pytest.mark.slow
def test_wide_indices(small: None) -> None:
    A = rmat(7, 4)
    wide = matchwood.graph(A, index_dtype=np.int64)
    found = matchwood.partition(wide, 4, threads=2, effort=2)
    assert same(found.labels, matchwood.partition(A, 4, threads=1, effort=2).labels)


@pytest.mark.slow
def test_large_graphs_on_teams() -> None:
    for A in (rmat(13, 6), shuffled(grid(120, 130, 1.0)), path(20_000), star(9_000)):
        G = matchwood.graph(A)
        for k in (2, 9):
            expected = matchwood.partition(G, k, threads=1)
            expected.check(G)
            assert expected.excess == 0
            for threads in (2, 3, 7):
                assert same(matchwood.partition(G, k, threads=threads).labels, expected.labels)


@pytest.mark.slow
@settings(max_examples=40)
@given(A=graphs(weights="positive"), k=st.integers(1, 6), seed=st.integers(0, 3))
def test_random_graphs(A: sp.csr_array, k: int, seed: int) -> None:
    n = A.shape[0]
    k = min(k, max(n, 1))
    found = matchwood.partition(A, k, rng=seed, threads=1)
    assert same(found.labels, matchwood.partition(A, k, rng=seed, engine="reference").labels)
    assert found.excess == 0
    found.check(A)
    matchwood.check.check_partition(A, found, balanced=True, replay=True, rng=seed)


@settings(max_examples=30)
@given(
    A=graphs(weights="few"), k=st.integers(1, 5), seed=st.integers(0, 3),
    weights=st.lists(st.integers(0, 12), min_size=24, max_size=24),
)  # fmt: skip
def test_random_weights(A: sp.csr_array, k: int, seed: int, weights: list[int]) -> None:
    """With vertex weights and refinement from any labels: never worse."""
    n = A.shape[0]
    k = min(k, max(n, 1))
    heavy = np.array(weights[:n], np.int64) + 1
    options: dict[str, Any] = {"vertex_weights": heavy, "imbalance": 1.0, "rng": seed}
    limit = math.floor(2 * math.ceil(int(heavy.sum()) / k))
    if n and int(heavy.max()) > limit:
        with pytest.raises(ValueError, match="largest limit"):
            matchwood.partition(A, k, **options)
        return
    found = matchwood.partition(A, k, threads=1, **options)
    assert same(found.labels, matchwood.partition(A, k, engine="reference", **options).labels)
    found.check(A)
    given_labels = np.random.default_rng(seed).integers(0, k, n)
    before = _score(A, given_labels, heavy, found.limits)
    better = matchwood.refine_partition(A, given_labels, k=k, threads=1, **options)
    again = matchwood.refine_partition(A, given_labels, k=k, engine="reference", **options)
    assert same(better.labels, again.labels)
    assert _score(A, better.labels, heavy, better.limits) <= before


def _score(A: Any, labels: Any, weights: Any, limits: Any) -> tuple[int, int, float]:
    """Empty blocks, excess, cut."""
    blocks = np.bincount(labels, weights, minlength=limits.size).astype(np.int64)
    view = matchwood.graph(A).undirected_weights()
    rows = np.repeat(np.arange(view.n), np.diff(view.indptr))
    across = labels[rows] != labels[view.indices]
    empty = limits.size - np.unique(labels).size
    return (
        empty,
        int(np.maximum(blocks - limits, 0).sum()),
        round(float(view.data[across].sum()), 3),
    )


def test_known_cuts() -> None:
    """Graphs whose best cut is known."""
    assert matchwood.partition(grid(20, 30, 1.0), 2, effort=2).cut <= 21
    assert matchwood.partition(grid(24, 24, 1.0), 4, effort=2).cut <= 50
    assert matchwood.partition(disjoint([grid(9, 9, 1.0)] * 3), 3).cut == 0
    two = [[u, v] for c in (0, 8) for u in range(c, c + 8) for v in range(c, u)]
    assert matchwood.partition((16, [*two, [3, 12]]), 2).cut == 1


def test_every_k_of_a_small_graph() -> None:
    """None is empty, and unit weights are always balanced, also without any room."""
    A = shuffled(random_graph(24, 40), isolated=5)
    for k in range(1, 30):
        for imbalance in (0, 0.5):
            found = matchwood.partition(A, k, imbalance=imbalance)
            found.check(A)
            assert found.excess == 0
            assert (np.bincount(found.labels, minlength=k) > 0).all()


def test_edges_of_the_range() -> None:
    empty = matchwood.partition(sp.csr_array((0, 0)), 1)
    assert (empty.cut, empty.labels.size, empty.weights.tolist()) == (0, 0, [0])
    empty.check(sp.csr_array((0, 0)))
    lonely = matchwood.partition(sp.csr_array((5, 5)), 2)
    assert sorted(lonely.weights.tolist()) == [2, 3]
    assert matchwood.partition(path(6), 6).labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert matchwood.refine_partition(path(6), np.zeros(6, int)).cut == 0


def test_blocks_are_numbered_by_their_smallest_vertices() -> None:
    A = shuffled(grid(12, 12, 1.0))
    labels = matchwood.partition(A, 6).labels
    assert np.unique(labels, return_index=True)[1].tolist() == sorted(
        np.unique(labels, return_index=True)[1].tolist()
    )
    unequal = matchwood.partition(A, 3, block_weights=[1, 4, 1])
    assert unequal.limits.tolist() == [24, 98, 24]
    first = [int((unequal.labels == b).argmax()) for b in (0, 2)]
    assert first == sorted(first)


def test_seeds_differ_and_repeat() -> None:
    G = matchwood.graph(rmat(9, 6))
    first = matchwood.partition(G, 8, rng=1)
    assert same(first.labels, matchwood.partition(G, 8, rng=1).labels)
    assert not same(first.labels, matchwood.partition(G, 8, rng=2).labels)
    assert same(matchwood.partition(G, 8, rng=None).labels, matchwood.partition(G, 8).labels)


def test_connected_joins_stray_pieces() -> None:
    """Pieces join what they are tied to where there is room; fixed ones and islands stay."""
    A = disjoint([grid(12, 12, 1.0), grid(2, 2, 1.0)])
    labels = (np.arange(148) // 72).clip(0, 1).astype(np.int32)
    labels[[30, 31, 130]] = 1, 1, 0
    for imbalance, fixed, pieces in ((0.1, None, [1, 2]), (0.0, None, [2, 2]), (0.1, 130, [2, 2])):
        held = np.full(148, -1)
        if fixed is not None:
            held[fixed] = labels[fixed]
        task = task_of("partition", 148, 2, imbalance, None, None, held)
        run = multilevel.begin(matchwood.graph(A), task, "partition", "cpu")
        joined = multilevel.connected(run, labels)
        _, blocks = multilevel.pieces_of(matchwood.graph(A).undirected_pattern(), joined)
        found = np.bincount(blocks)
        assert found.tolist() == pieces, imbalance
    whole = matchwood.partition(grid(30, 30, 1.0), 8, connected=True)
    assert whole.pieces.tolist() == [1] * 8


def test_refinement_repairs_what_is_too_heavy() -> None:
    A = grid(20, 20, 1.0)
    for effort in (0, 1, 3):
        better = matchwood.refine_partition(A, np.arange(400) // 390, effort=effort)
        assert better.excess == 0
        assert better.cut <= (60, 40, 40, 40)[effort]
        better.check(A)
    stays = np.arange(400) // 200
    assert same(matchwood.refine_partition(A, stays).labels, stays.astype(np.int32))


def test_what_a_partition_says(small: None) -> None:
    A = grid(6, 6, 1.0)
    P = matchwood.partition(A, 4)
    cut, labels = P
    assert cut == P.cut == int(P.quotient().sum()) // 2
    assert P.k == 4
    assert [len(block) for block in P.sets()] == P.weights.tolist()
    assert P.boundary.size <= P.volume
    assert P.levels[-1].n == 36
    assert P.levels[-1].after == cut
    assert set(P.seconds) >= {"coarsen", "start", "refine"}
    assert "4 blocks" in repr(P)
    G = nx.relabel_nodes(nx.path_graph(6), dict(enumerate("abcdef")))
    assert matchwood.partition(G, 2).sets(list(G)) == [set("abc"), set("def")]
    by_hand = matchwood.partitioning.Partition(1, labels, P.weights, P.limits)
    with pytest.raises(ValueError, match=r"Partition.volume: this partition does not know"):
        _ = by_hand.volume
    with pytest.raises(ValueError, match=r"names must have 36 elements, got 1"):
        P.sets(["a"])


REFUSED: dict[str, tuple[type[Exception], str, Any]] = {
    "k = 0": (ValueError, "k must be at least 1, got 0", {"k": 0}),
    "k > n": (ValueError, "k must be at most 6, the number of vertices, got 7", {"k": 7}),
    "k = 2.0": (TypeError, "k must be an integer", {"k": 2.0}),
    "imbalance": (ValueError, "imbalance must be finite and at least 0", {"imbalance": -0.1}),
    "nan imbalance": (ValueError, "imbalance must be finite", {"imbalance": math.nan}),
    "negative": (ValueError, r"must not be negative, got -1 at 2",
                 {"vertex_weights": [1, 1, -1, 1, 1, 1]}),
    "nan": (ValueError, "vertex_weights must be finite",
            {"vertex_weights": [1, math.nan, 1, 1, 1, 1]}),
    "all 0": (ValueError, "vertex_weights must not all be 0", {"vertex_weights": [0] * 6}),
    "too few": (ValueError, "vertex_weights must have 6 elements", {"vertex_weights": [1]}),
    "infinite sum": (ValueError, "vertex_weights must add up to a finite number, got inf",
                     {"vertex_weights": [1e308] * 6}),
    "too heavy": (ValueError, "must be at most 7, the largest limit of a block, got 9 at 1",
                  {"vertex_weights": [1, 9, 1, 1, 1, 1]}),
    "targets": (ValueError, "block_weights must be positive, got 0 at 1",
                {"block_weights": [1, 0]}),
    "one target": (ValueError, "block_weights must have 2 elements", {"block_weights": [1]}),
    "fixed": (ValueError, r"fixed must lie within -1..1, got 2 at 0",
              {"fixed": [2, -1, -1, -1, -1, -1]}),
    "overfull": (ValueError, "fixed vertices of block 0 must weigh at most its limit 3, got 4",
                 {"fixed": [0, 0, 0, 0, -1, -1]}),
    "effort": (ValueError, "effort must be at most 3", {"effort": 4}),
    "connected": (TypeError, "connected must be True or False", {"connected": 1}),
    "rng": (TypeError, "rng must be", {"rng": "a"}),
    "engine": (ValueError, "engine", {"engine": "tpu"}),
}  # fmt: skip


def test_weights_longer_than_doubles() -> None:
    """They count as float64 has them; and where it has none, they are refused without a warning."""
    A = matchwood.generators.path(6)
    long = np.longdouble
    nearly = np.full(6, 1 - long(2) ** -60)  # was cut to 0
    P = matchwood.partition(A, 2, vertex_weights=nearly, block_weights=np.array([1, 2], long))
    assert P.weights.tolist() == [2, 4]
    if np.finfo(long).maxexp > 1024:
        for find in (partial(matchwood.partition, k=2), matchwood.vertex_separator):
            with pytest.raises(ValueError, match="vertex_weights must be finite, got inf at 0"):
                find(A, vertex_weights=np.full(6, long("1e4000")))
            with pytest.raises(ValueError, match="vertex_weights must not all be 0"):
                find(A, vertex_weights=np.full(6, long("1e-4000")))


def test_extreme_numbers() -> None:
    """No sum overflows: any imbalance, the smallest floats, edges that almost weigh too much."""
    A = grid(9, 8, 1.0)
    plain = matchwood.partition(A, 3)
    for imbalance in (1e9, 1e19, 1e300):
        P = matchwood.partition(A, 3, imbalance=imbalance)
        assert P.excess == 0
        P.check(A)
    for weight in (5e-324, 1e-310, 2.0**1000):
        P = matchwood.partition(A, 3, vertex_weights=np.full(72, weight))
        assert same(P.labels, plain.labels)
        assert P.weights.tolist() == [weight * count for count in plain.weights.tolist()]
        P.check(A)
    heavy = A * 1e300
    assert math.isclose(matchwood.partition(heavy, 3).cut, plain.cut * 1e300)


def test_arguments_may_change_after_the_call() -> None:
    """A partition keeps copies of the arguments that its check needs."""
    A = grid(6, 6)
    weights, targets, fixed = np.arange(1, 37), [1.0, 2.0], np.full(36, -1)
    options = {"vertex_weights": weights, "block_weights": targets, "fixed": fixed}
    made = matchwood.partition(A, 2, **options)
    refined = matchwood.refine_partition(A, made.labels, **options)
    weights[:], targets[0], fixed[:] = 0, -1.0, 0
    made.check(A)
    refined.check(A)


@pytest.mark.filterwarnings("error")
def test_targets_of_any_size() -> None:
    """Shares that vanish beside others, or in double precision, are shares all the same."""
    A = grid(5, 5, 1.0)
    for targets in ([1e-200, 1e-250, 1e200, 1e-300], [1e300, 1e-12, 1e-12, 1e-12], [1, 2, 1, 1e17]):
        for imbalance in (0, np.float32(0.1), 1e6):
            P = matchwood.partition(A, 4, block_weights=targets, imbalance=imbalance)
            P.check(A)
            assert P.excess == 0
            assert P.weights.min() > 0


def test_a_matrix_that_has_changed_is_noticed() -> None:
    """Nothing is said of a partition by the entries of another matrix."""
    for name in ("data", "indices"):
        A = grid(6, 6, 1.0)
        A.data[::2] = 3
        A = sp.csr_array(A + A.T)
        P = matchwood.partition(A, 4)
        getattr(A, name)[:] = 0
        for ask in (lambda P: P.boundary, lambda P: P.volume, lambda P: P.pieces,
                    lambda P: P.quotient()):  # fmt: skip
            with pytest.raises(ValueError, match=r"Partition.*: A must stay as it was"):
                ask(P)


def test_blocks_of_distinct_targets_keep_their_numbers() -> None:
    """Only equal targets are numbered by smallest vertices: by groups, and many at once."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        targets = rng.integers(1, 4, 9)
        task = task_of("partition", 60, 9, 9.0, None, targets, None)
        labels = rng.integers(0, 9, 60).astype(np.int32)
        found = multilevel.numbered(labels, task)
        for target in (1, 2, 3):
            group = np.flatnonzero(targets == target)
            assert same(np.isin(found, group), np.isin(labels, group))
            first = [int((found == b).argmax()) for b in group if (found == b).any()]
            assert first == sorted(first)


@pytest.mark.slow
def test_what_comes_last_is_quick_on_large_graphs() -> None:
    """Hundreds of thousands of stray pieces, or of empty blocks: seconds of processor time."""
    G = matchwood.graph(grid(500, 500, 1.0))
    labels = np.random.default_rng(1).integers(0, 16, G.n).astype(np.int32)
    for k, finish in ((16, multilevel.connected), (G.n - 1, multilevel.finished)):
        task = task_of("partition", G.n, k, 0.03, None, None, None)
        run = multilevel.begin(G, task, "partition", "cpu", 1)
        began = time.process_time()
        found = finish(run, labels.copy())
        assert time.process_time() - began < 6
        assert np.unique(found).size == k


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused(name: str) -> None:
    kind, message, options = REFUSED[name]
    with pytest.raises(kind, match=f"partition: .*{message}"):
        matchwood.partition(path(6), **{"k": 2, **options})


def test_bad_graphs_and_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"partition: .*square"):
        matchwood.partition(sp.csr_array((2, 3)), 1)
    with pytest.raises(ValueError, match=r"partition: .*negative"):
        matchwood.partition(from_edges(3, [0, 1], [1, 2], [1.0, -2.0]), 2)
    with pytest.raises(ValueError, match=r"refine_partition: labels must lie within 0..2, got -1"):
        matchwood.refine_partition(path(3), [0, -1, 1])
    with pytest.raises(ValueError, match=r"the weights of all edges must add up to a finite"):
        matchwood.partition(from_edges(3, [0, 1], [1, 2], [1e308, 1e308]), 2)
    with pytest.raises(ValueError, match="k must be at most 1 where there are no vertices, got 2"):
        matchwood.partition(sp.csr_array((0, 0)), 2)
    with pytest.raises(ValueError, match=r"labels must lie within 0..1, got 2"):
        matchwood.refine_partition(path(3), [0, 1, 2], k=2)
    with pytest.raises(ValueError, match="refine_partition: labels must have 3 elements"):
        matchwood.refine_partition(path(3), [0, 1])
    with pytest.raises(ValueError, match="got 0 for vertex 1, which is fixed to 1"):
        matchwood.refine_partition(path(3), [1, 0, 1], fixed=[-1, 1, -1], imbalance=1.0)


INTERRUPTED = """
import matchwood
A = matchwood.generators.rmat(15, edge_factor=16)
G = matchwood.graph(A)
matchwood.partition(matchwood.generators.grid((60, 60)), 4, threads=2)  # compiled
G.undirected_weights()
print("ready", flush=True)
try:
    while True:
        matchwood.partition(G, 24, threads=2)
except KeyboardInterrupt:
    matchwood.partition(matchwood.generators.path(50), 3)
    print("usable")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_control_c(tmp_path: Path) -> None:
    """It ends at once, wherever it is, and the next call works."""
    process = start_script(tmp_path, INTERRUPTED)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.7)
        began = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "usable" in out
        assert time.perf_counter() - began < 5
    finally:
        process.kill()


# Bisection


def batch_of(A: Any, seed: int) -> Any:
    """A graph with weights of its own, and some vertices that must stay on a side."""
    rng = np.random.default_rng(seed)
    view = matchwood.graph(A).undirected_pattern()
    n, heaviest = view.n, int(rng.choice([1, 9]))
    rows = np.repeat(np.arange(n), np.diff(view.indptr))
    data = 1 + (rows + view.indices) * (rows ^ view.indices) % int(rng.choice([1, 7]))
    weights = rng.integers(0, heaviest + 1, n) if heaviest > 1 else np.ones(n, np.int64)
    fixed = np.where(rng.random(n) < rng.choice([0, 0.2]), rng.integers(0, 2, n), -1)
    graph = bisection.small_graph(view.indptr, view.indices, data, weights)
    half = int(weights.sum()) // int(rng.integers(2, 5))
    limits = [[half + heaviest, int(weights.sum()) - half + heaviest]]
    return bisection_cpu.Batch(
        *graph, fixed.astype(np.int8), np.array([0, n]), np.array(limits), np.array([half]),
        np.array([seed], np.uint64),
    )  # fmt: skip


@pytest.mark.slow
def test_bisections_are_those_of_the_definition() -> None:
    for name in SMALL_ZOO:
        for seed in range(3):
            batch = batch_of(ZOO[name](), seed)
            expected = bisection_reference.bisect(batch, 2)
            for threads in (1, 3):
                assert same(bisection_cpu.bisect(batch, 2, threads), expected), (name, threads)


def windmill(n: int) -> sp.csr_array:
    """A hub of light edges to the ends of heavy ones: it looks for a mate after every match."""
    u = np.arange(1, n, 2)
    ones = np.ones(n - 1)
    return from_edges(n, [*u, *(0 * ones)], [*(u + 1), *range(1, n)], [*(2 * ones[::2]), *ones])


def test_hubs_look_for_mates_in_linear_time() -> None:
    G = matchwood.graph(windmill(40_001))
    assert matchwood.partition(G, 2, effort=0, threads=1).excess == 0
    began = time.process_time()
    matchwood.partition(G, 2, effort=0, threads=1)
    assert time.process_time() - began < 2


def test_coarse_bisections_are_those_of_the_definition() -> None:
    """Graphs of several levels, of one that cannot be coarsened, and of hubs."""
    hubs = star(200), windmill(401)
    for A in (rmat(7, 6), grid(9, 21, 1.0), *hubs, path(200), random_graph(100, 2000)):
        batch = batch_of(shuffled(A, isolated=9), A.nnz)
        assert same(bisection_cpu.bisect(batch, 1), bisection_reference.bisect(batch, 1))


def test_bisections_of_a_batch_do_not_depend_on_threads() -> None:
    """Each graph of a batch is bisected as it is alone; limits are kept; fixed vertices stay."""
    parts = [grid(9, 14, 1.0), path(40), rmat(7, 4), star(30), sp.csr_array((3, 3))]
    begins = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])])
    whole = matchwood.graph(disjoint(parts)).undirected_pattern()
    n = whole.n
    graph = bisection.small_graph(whole.indptr, whole.indices, None, np.ones(n, np.int64))
    halves = [(part.shape[0] + 1) // 2 for part in parts]
    limits = [[half + 1, half + 1] for half in halves]
    fixed = np.full(n, -1)
    fixed[begins[1]], fixed[begins[2] - 1] = 1, 0
    first = bisection.bisect(graph, begins, limits, halves, range(5), fixed=fixed, threads=1)
    for threads in (2, 3, 7):
        again = bisection.bisect(
            graph, begins, limits, halves, range(5), fixed=fixed, threads=threads
        )
        assert same(tuple(again), tuple(first))
    assert first.excess.tolist() == [0] * 5
    assert (first.side[begins[1]], first.side[begins[2] - 1]) == (1, 0)
    rows = np.repeat(np.arange(n), np.diff(whole.indptr))
    for b, part in enumerate(parts):
        side = first.side[begins[b] : begins[b + 1]]
        assert max(np.bincount(side, minlength=2)) <= limits[b][0]
        mine = (rows >= begins[b]) & (rows < begins[b + 1])
        cut = (first.side[rows[mine]] != first.side[whole.indices[mine]]).sum() // 2
        assert cut == first.cut[b]
        assert part.shape[0] == side.size
    assert first.cut.tolist()[:2] == [9, 1]
