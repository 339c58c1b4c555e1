"""Communities: one body for Louvain, Leiden and label propagation on all engines of the CPU."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import matchwood
from graphs import ZOO, complete, disjoint, from_edges, grid, random_graph, rmat, shuffled, star
from matchwood.communities import subrounds
from matchwood.communities.louvain_leiden import cpu as moving_cpu
from matchwood.communities.propagation import cpu as propagation_cpu
from matchwood.communities.weights import LARGEST_SUM, level_of
from strategies import graphs
from support import same, start_script

FUNCTIONS: dict[str, Any] = {
    "moving": lambda G, **o: matchwood.louvain(G, method="moving", **o),
    "joining": lambda G, **o: matchwood.louvain(G, method="joining", **o),
    "leiden": matchwood.leiden,
    "labels": matchwood.label_propagation,
}
NEGATIVE = ("mixed signs", "skew-symmetric")
SMALL_ZOO = [name for name in ZOO if name not in NEGATIVE]
WEIGHTED = ("few weights", "self loops", "duplicates", "float32", "rmat", "both ways, other values")


@pytest.fixture
def teams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs get the team that is asked for, and few sub-rounds: barriers take long."""
    monkeypatch.setattr(moving_cpu, "ONE_MEMBER_SIZE", 0)
    monkeypatch.setattr(propagation_cpu, "ONE_MEMBER_SIZE", 0)
    monkeypatch.setattr(subrounds, "MOST_SUBROUNDS", 6)


def check(A: Any, found: Any, name: str) -> None:
    if name == "labels":
        matchwood.check.check_label_propagation(A, found)
    else:
        matchwood.check.check_communities(A, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_zoo(name: str) -> None:
    """Equal to the reference, rounds and levels too; the check holds; the input is untouched."""
    for graph in SMALL_ZOO:
        A = ZOO[graph]()
        before = A.copy()
        expected = FUNCTIONS[name](A, rng=3, engine="reference")
        found = FUNCTIONS[name](A, rng=3, threads=1)
        assert same(found.labels, expected.labels), graph
        for field in ("count", "modularity", "levels", "rounds"):
            assert getattr(found, field) == getattr(expected, field), (graph, field)
        check(A, found, name)
        assert same((A.indptr, A.indices, A.data), (before.indptr, before.indices, before.data))


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_teams(name: str, teams: None) -> None:
    for graph in (*WEIGHTED, "grid", "star", "components", "int64 indices, float32"):
        G = matchwood.graph(ZOO[graph]())
        expected = FUNCTIONS[name](G, rng=5, engine="reference")
        for threads in (1, 2, 3, 7):
            found = FUNCTIONS[name](G, rng=5, threads=threads)
            assert same(found.labels, expected.labels), (graph, threads)
            assert found.rounds == expected.rounds
            assert found.modularity == expected.modularity


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_large_graphs_on_teams(name: str) -> None:
    """Above 2^14 vertices there are 16 sub-rounds, and above some work a team by itself."""
    for A in (rmat(15, 6), shuffled(grid(160, 170, 1.0))):
        G = matchwood.graph(A)
        options = {"tol": 0.01} if name == "labels" else {}
        expected = FUNCTIONS[name](G, threads=1, **options)
        for threads in (2, 3, 7):
            found = FUNCTIONS[name](G, threads=threads, **options)
            assert same(found.labels, expected.labels)
            assert found.modularity == expected.modularity
        if name == "labels":
            matchwood.check.check_label_propagation(G, expected, settled=False)
        else:
            check(G, expected, name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_teams_at_once(name: str, teams: None) -> None:
    """Calls of four threads, with teams of three: whoever is late, the answer is the same."""
    G = matchwood.graph(shuffled(rmat(8, 5), isolated=9))
    expected = FUNCTIONS[name](G, engine="reference")
    wrong: list[Any] = []

    def call() -> None:
        for _ in range(2):
            found = FUNCTIONS[name](G, threads=3)
            if not same(found.labels, expected.labels):
                wrong.append(found)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.slow
@settings(max_examples=25)
@given(A=graphs(weights="positive"))
def test_random_graphs(A: sp.csr_array) -> None:
    for name, function in FUNCTIONS.items():
        expected = function(A, rng=1, engine="reference")
        found = function(A, rng=1, threads=1)
        assert same(found.labels, expected.labels), name
        assert found.modularity == expected.modularity
        check(A, found, name)


@settings(max_examples=25)
@given(A=graphs(weights="few"))
def test_random_graphs_with_ties(A: sp.csr_array) -> None:
    for name, function in FUNCTIONS.items():
        found = function(A, rng=8, threads=1)
        assert same(found.labels, function(A, rng=8, engine="reference").labels), name
        check(A, found, name)


def test_seeds_differ_and_repeat() -> None:
    G = matchwood.graph(rmat(9, 6))
    for function in FUNCTIONS.values():
        one, again = function(G, rng=1), function(G, rng=np.random.default_rng(4))
        assert same(one.labels, function(G, rng=1).labels)
        assert same(again.labels, function(G, rng=np.random.default_rng(4)).labels)
    assert not same(matchwood.leiden(G, rng=1).labels, matchwood.leiden(G, rng=2).labels)


@pytest.mark.slow  # compiles every kernel once more
def test_index_types_agree() -> None:
    A = ZOO["rmat"]()
    for function in FUNCTIONS.values():
        narrow = function(matchwood.graph(A, index_dtype=np.int32))
        wide = function(matchwood.graph(A, index_dtype=np.int64))
        assert narrow.labels.dtype == np.int32
        assert wide.labels.dtype == np.int64
        assert np.array_equal(narrow.labels, wide.labels)


def test_planted_communities_are_found() -> None:
    parts = disjoint([complete(12) for _ in range(8)]).tocoo()
    ring = np.arange(8) * 12
    A = from_edges(96, np.append(parts.row, ring), np.append(parts.col, np.roll(ring, 1) + 1), 1.0)
    for name in ("moving", "joining", "leiden"):  # labels may flow from one into the next
        found = FUNCTIONS[name](A)
        assert found.count == 8, name
        assert np.array_equal(found.labels, np.arange(96) // 12)
        assert found.sizes().tolist() == [12] * 8


def test_quality_is_that_of_networkx() -> None:
    """Not below NetworkX's own by more than a hundredth."""
    networkx = pytest.importorskip("networkx")
    for A in (grid(20, 21, 1.0), rmat(8, 5), ZOO["components"]()):
        N = networkx.from_scipy_sparse_array(A)
        theirs = networkx.community.louvain_communities(N, seed=1)
        best = networkx.community.modularity(N, theirs)
        for name in ("moving", "leiden", "joining"):
            found = FUNCTIONS[name](A)
            sets = [set(np.flatnonzero(found.labels == c).tolist()) for c in range(found.count)]
            assert math.isclose(networkx.community.modularity(N, sets), found.modularity,
                                abs_tol=1e-12)  # fmt: skip
            assert found.modularity >= best - (0.03 if name == "joining" else 0.01), name


def test_limits() -> None:
    G = matchwood.graph(shuffled(grid(40, 40, 1.0)))
    flat = matchwood.louvain(G, method="moving", max_levels=1)
    deep = matchwood.louvain(G, method="moving")
    assert flat.levels == 1
    assert deep.levels > 2
    assert flat.modularity < deep.modularity
    assert matchwood.louvain(G, method="joining", max_levels=2).levels <= 3
    assert matchwood.louvain(G, method="moving", max_levels=1, max_rounds=1).rounds == 2  # one back
    assert matchwood.label_propagation(G, max_rounds=2).rounds == 2
    assert matchwood.label_propagation(G, max_rounds=0).count == 1600
    assert matchwood.label_propagation(G, tol=1).rounds == 1
    better = matchwood.leiden(G, iterations=3).modularity
    assert better >= matchwood.leiden(G, iterations=1).modularity - 0.01


def test_resolution() -> None:
    A = grid(20, 20, 1.0)
    counts = [matchwood.louvain(A, resolution=r).count for r in (0, 0.1, 1, 10, 1000)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 400
    assert matchwood.leiden(A, resolution=1000).count == 400
    found = matchwood.louvain(A, resolution=3)
    matchwood.check.check_communities(A, found, resolution=3)
    with pytest.raises(matchwood.CheckFailed, match="modularity is"):
        matchwood.check.check_communities(A, found)


def test_a_tolerance_ends_levels(engine) -> None:
    """Less is gained on each level; with a tolerance that none reaches there is one."""
    A = matchwood.generators.path(60)
    for method in ("moving", "joining"):
        whole = matchwood.louvain(A, method=method, engine=engine)
        levels = [
            matchwood.louvain(A, method=method, tolerance=tolerance, engine=engine).levels
            for tolerance in (0.0, 1e-3, 0.1, 0.9)
        ]
        assert levels[0] == whole.levels > levels[-1]
        assert levels == sorted(levels, reverse=True)
        some = matchwood.louvain(A, method=method, tolerance=0.1, engine=engine)
        matchwood.check.check_communities(A, some)
    with pytest.raises(ValueError, match="tolerance must be"):
        matchwood.louvain(A, tolerance=-1)


def test_dense_graphs_are_not_left_early() -> None:
    """A level that ends with half of the vertices moving costs modularity where edges are many."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 10, 1000)
    a, b = rng.integers(0, 1000, (2, 30_000))
    kept = (group[a] == group[b]) | (rng.random(30_000) < 0.2)
    A = sp.coo_array((np.ones(kept.sum()), (a[kept], b[kept])), shape=(1000, 1000)).tocsr()
    found = [matchwood.louvain(A + A.T, rng=seed).modularity for seed in range(7)]
    assert np.median(found) > 0.247  # 0.2445 where half is enough; planted: 0.2524


def test_auto_goes_by_degrees() -> None:
    """Joining where they are even; where they are as chance has it, it loses modularity."""
    even, skewed = shuffled(grid(30, 30, 1.0)), star(200)
    chance = random_graph(900, 3600, symmetric=True)
    chance.data[:] = 1.0
    for A, method in ((even, "joining"), (skewed, "moving"), (chance, "moving")):
        assert same(matchwood.louvain(A).labels, FUNCTIONS[method](A).labels)
        for engine in ("reference", "cpu"):
            assert same(matchwood.louvain(A, engine=engine).labels, matchwood.louvain(A).labels)


def test_label_propagation_ends_without_sub_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounds in which only the first by hash moves, from the beginning."""
    from matchwood.communities.propagation import reference

    for module in (reference, propagation_cpu):
        monkeypatch.setattr(module, "SPLIT_ROUNDS", 0)
    monkeypatch.setattr(propagation_cpu, "ONE_MEMBER_SIZE", 0)
    for graph in ("grid", "bipartite", "cycle", "few weights", "rmat"):
        A = ZOO[graph]()
        expected = matchwood.label_propagation(A, engine="reference")
        assert expected.rounds < 1000
        for threads in (1, 3):
            found = matchwood.label_propagation(A, threads=threads)
            assert same(found.labels, expected.labels), graph
            assert found.rounds == expected.rounds
        check(A, expected, "labels")


# Modularity


def by_fractions(A: sp.csr_array, labels: Any, resolution: Fraction) -> Fraction:
    """The definition, in exact numbers, of a symmetric matrix."""
    dense = [[Fraction(float(x)) for x in row] for row in A.toarray()]
    n = len(dense)
    for v in range(n):
        dense[v][v] *= 2
    total = sum(map(sum, dense))
    inside = sum(dense[u][v] for u in range(n) for v in range(n) if labels[u] == labels[v])
    strength = [sum(row) for row in dense]
    volumes = [sum(strength[v] for v in range(n) if labels[v] == c) for c in set(labels)]
    return inside / total - resolution * sum((volume / total) ** 2 for volume in volumes)


def test_modularity_is_the_definition() -> None:
    rng = np.random.default_rng(3)
    for graph in ("self loops", "triangle", "few weights", "1x1 loop", "only self loops"):
        A = ZOO[graph]()
        labels = rng.integers(-5, 5, A.shape[0])
        for resolution in (0, 1, 2.5):
            right = float(by_fractions(A, labels.tolist(), Fraction(resolution)))
            for engine in ("reference", "cpu"):
                found = matchwood.modularity(A, labels, resolution=resolution, engine=engine)
                assert math.isclose(found, right, abs_tol=1e-12)
            matchwood.check.check_modularity(A, labels, found, resolution=resolution)


def test_modularity_of_weights_of_any_size() -> None:
    """The scale of all weights does not matter, down to denormal and up to the largest numbers."""
    A = grid(5, 6)
    labels = np.arange(30) // 5
    right = matchwood.modularity(A, labels)
    for power in (-1074, -1000, -60, 60, 1000):
        B = A.copy()
        B.data = np.ldexp(np.rint(np.ldexp(A.data, 20)), power if power < 0 else power - 20)
        if power == -1074:
            B.data = np.ldexp(np.rint(np.ldexp(A.data, 20)), -1074)
        near = matchwood.modularity(B, labels)
        assert math.isclose(near, right, abs_tol=1e-5)
        assert matchwood.louvain(B).count == matchwood.louvain(A).count


def test_weights_are_scaled_as_far_as_they_fit() -> None:
    for A in (grid(5, 6), ZOO["self loops"](), 1e300 * grid(3, 3), 1e-300 * grid(3, 3)):
        level = level_of(matchwood.graph(A), "louvain")
        assert LARGEST_SUM // 2 - A.nnz <= level.total <= LARGEST_SUM
        assert level.total == int(level.strength.sum())
    unit = level_of(matchwood.graph(grid(3, 3, 1.0)), "louvain")
    assert unit.data is None
    assert unit.total == 24


def test_sums_of_squares_are_exact() -> None:
    from matchwood.communities.quality import sum_of_squares

    rng = np.random.default_rng(1)
    for high in (10, 2**26, 2**40, 2**51):
        volumes = rng.integers(0, high, 300)
        assert sum_of_squares(volumes) == sum(int(x) ** 2 for x in volumes)


# Awkward input


def test_nothing_to_group() -> None:
    for A in (ZOO["0x0"](), ZOO["1x1"](), ZOO["no edges"](), ZOO["only self loops"]()):
        n = A.shape[0]
        for function in FUNCTIONS.values():
            found = function(A)
            assert found.count == n
            assert found.labels.tolist() == list(range(n))
        assert isinstance(matchwood.modularity(A, np.zeros(n, int)), float)
    assert matchwood.modularity(ZOO["no edges"](), np.zeros(5, int)) == 0.0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_input(name: str) -> None:
    function = FUNCTIONS[name]
    A = grid(3, 3)
    public = {"moving": "louvain", "joining": "louvain", "labels": "label_propagation"}
    who = public.get(name, name)
    for graph in NEGATIVE:
        with pytest.raises(ValueError, match=f"{who}: weights must not be negative"):
            function(ZOO[graph]())
    bad = A.copy()
    bad.data[3] = np.nan
    with pytest.raises(ValueError, match=rf"{who}: .*nan"):
        function(bad)
    with pytest.raises(TypeError, match=f"{who}: rng must be"):
        function(A, rng="no")
    with pytest.raises(ValueError, match="square"):
        function(sp.csr_array((2, 3)))
    if name == "labels":
        for options in ({"tol": -1}, {"tol": 2}, {"tol": math.nan}, {"max_rounds": -1}):
            with pytest.raises(ValueError, match=r"label_propagation: (tol|max_rounds) must be"):
                function(A, **options)
        return
    for resolution in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"{who}: resolution must be finite"):
            function(A, resolution=resolution)
    with pytest.raises(TypeError, match=f"{who}: resolution must be a number"):
        function(A, resolution="1")


def test_bad_options() -> None:
    A = grid(3, 3)
    with pytest.raises(ValueError, match="louvain: method must be one of"):
        matchwood.louvain(A, method="best")
    with pytest.raises(ValueError, match="louvain: max_levels must be at least 1, got 0"):
        matchwood.louvain(A, max_levels=0)
    with pytest.raises(ValueError, match="louvain: max_rounds must be at least 1, got 0"):
        matchwood.louvain(A, max_rounds=0)
    with pytest.raises(ValueError, match="leiden: iterations must be at least 1, got 0"):
        matchwood.leiden(A, iterations=0)
    with pytest.raises(ValueError, match="modularity: labels must have 9 elements, got 8"):
        matchwood.modularity(A, [0] * 8)
    with pytest.raises(TypeError, match="modularity: labels must hold integers"):
        matchwood.modularity(A, np.zeros(9))
    with pytest.raises(ValueError, match="modularity: resolution"):
        matchwood.modularity(A, [0] * 9, resolution=-1)
    with pytest.raises(ValueError, match="modularity: weights must not be negative"):
        matchwood.modularity(-A, [0] * 9)


INTERRUPTED = """
    import matchwood

    G = matchwood.graph(matchwood.generators.grid((1500, 1500)))
    small = matchwood.generators.grid((20, 20))
    for function in (matchwood.louvain, matchwood.leiden, matchwood.label_propagation):
        function(small, threads=2)
    G.undirected_pattern()
    print("ready", flush=True)
    try:
        while True:
            matchwood.louvain(G, threads=2, method="moving")
    except KeyboardInterrupt:
        pass
    matchwood.check.check_communities(small, matchwood.louvain(small, threads=2))
    print("usable", flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_is_heard(tmp_path) -> None:
    import signal
    import time

    process = start_script(tmp_path, INTERRUPTED)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "usable" in out
    finally:
        process.kill()


@pytest.mark.slow
def test_real_graphs(data_folder) -> None:
    """The same at 1, 2, 3 and 7 threads on every graph of the folder."""
    files = [file for folder in ("graphs", "matrices") for file in data_folder.glob(f"{folder}/*")]
    for file in sorted(files):
        try:
            A = matchwood.io.read(file)
        except matchwood.FileFormatError:  # names of vertices, and the like
            continue
        if A.shape[0] != A.shape[1]:
            continue
        G = matchwood.graph(abs(A))
        for name, function in FUNCTIONS.items():
            expected = function(G, threads=1)
            for threads in (2, 3, 7):
                assert same(function(G, threads=threads).labels, expected.labels), (file, name)
            if name != "labels":
                matchwood.check.check_communities(G, expected)
