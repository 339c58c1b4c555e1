"""Maximal matching: every engine gives the reference's mates and rounds; it always ends."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, cycle, disjoint, grid, path, rmat, shuffled, star
from matchwood.errors import CheckFailed
from matchwood.matching import maximal_matching
from matchwood.matching.maximal import BEST_PROBABILITY
from matchwood.matching.proposal import cpu
from matchwood.matching.proposal.check import check_maximal_matching
from matchwood.primitives.hashing.reference import quarter_md5_number
from strategies import graphs
from support import cores

METHODS = ["proposal", "serial"]
WEIGHTED = [False, True]
INDEX_TYPES = [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)]  # compiles all once more
THREADS = sorted({1, 2, 3, 2 * cores() + 1})


def assert_same(found, expected) -> None:
    assert np.array_equal(found.mate, expected.mate)
    assert found.mate.dtype == expected.mate.dtype
    assert found.rounds == expected.rounds
    assert found.matched_by_round == expected.matched_by_round
    assert math.isclose(found.weight, expected.weight, rel_tol=1e-12)


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    for method, weighted in itertools.product(METHODS, WEIGHTED):
        given = {"method": method, "weighted": weighted, "rng": 7}
        expected = maximal_matching(A, engine="reference", **given)
        check_maximal_matching(A, expected, weighted=weighted)
        for threads in THREADS:
            assert_same(maximal_matching(A, threads=threads, **given), expected)


@given(
    graphs(max_n=40, max_m=60),
    st.integers(0, 2**64 - 1),
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.booleans(),
)
def test_random_graphs(A: sp.csr_array, rng: int, p: float, weighted: bool) -> None:
    for method in METHODS:
        given = {"method": method, "weighted": weighted, "rng": rng, "blue_probability": p}
        expected = maximal_matching(A, engine="reference", **given)
        check_maximal_matching(A, expected, weighted=weighted)
        assert expected.rounds <= A.shape[0] + 2
        for threads in (1, 3):
            assert_same(maximal_matching(A, threads=threads, **given), expected)


@pytest.mark.parametrize("name", ZOO)
def test_preferences_equal_the_reference(name: str) -> None:
    A = ZOO[name]()
    for method, prefer in itertools.product(METHODS, ("hash", "degree")):
        given = {"method": method, "prefer": prefer, "rng": 7}
        expected = maximal_matching(A, engine="reference", **given)
        check_maximal_matching(A, expected)
        for threads in THREADS:
            assert_same(maximal_matching(A, threads=threads, **given), expected)


@given(
    graphs(max_n=40, max_m=60),
    st.integers(0, 2**64 - 1),
    st.floats(0, 1, exclude_min=True, exclude_max=True),
)
def test_preferences_of_random_graphs(A: sp.csr_array, rng: int, p: float) -> None:
    for method, prefer in itertools.product(METHODS, ("hash", "degree")):
        given = {"method": method, "prefer": prefer, "rng": rng, "blue_probability": p}
        expected = maximal_matching(A, engine="reference", **given)
        check_maximal_matching(A, expected)
        assert expected.rounds <= A.shape[0] + 2
        assert_same(maximal_matching(A, threads=3, **given), expected)


def test_least_degree_first_is_larger() -> None:
    """A hub that takes a leaf leaves more for the others; the edges that a rank adds are many."""
    A = matchwood.generators.rmat(12, rng=1)
    sizes = [maximal_matching(A, prefer=p).cardinality for p in ("random", "hash", "degree")]
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[2] > 1.05 * sizes[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", INDEX_TYPES)
def test_larger_graphs_by_rank(kind: type) -> None:
    A = shuffled(disjoint([rmat(10, 6), path(4000), star(700), grid(40, 50)]), isolated=100)
    expected = maximal_matching(A, prefer="degree", engine="reference")
    G = matchwood.graph(A, index_dtype=kind)
    right = dataclasses.replace(expected, mate=expected.mate.astype(kind))
    for threads in 3 * THREADS:  # other schedules
        assert_same(maximal_matching(G, prefer="degree", threads=threads), right)


@pytest.mark.slow
@pytest.mark.parametrize("kind", INDEX_TYPES)
@pytest.mark.parametrize("weighted", WEIGHTED)
def test_larger_graphs(weighted: bool, kind: type) -> None:
    A = shuffled(disjoint([rmat(10, 6), path(4000), star(700), grid(40, 50)]), isolated=100)
    expected = maximal_matching(A, weighted=weighted, engine="reference")
    G = matchwood.graph(A, index_dtype=kind)
    right = dataclasses.replace(expected, mate=expected.mate.astype(kind))
    for threads in 3 * THREADS:  # other schedules
        assert_same(maximal_matching(G, weighted=weighted, threads=threads), right)


def test_vertex_0_never_changes_its_colour() -> None:
    """What makes the rounds without colours necessary."""
    assert len({quarter_md5_number(0, r) for r in range(1, 1001, 2)}) == 1


@pytest.mark.parametrize("p", [1e-300, 1e-12, 0.1, BEST_PROBABILITY, 0.9, 1 - 2**-53])
def test_always_ends(p: float, engine: str) -> None:
    graphs = (path(2), star(30), star(30, centre=29), path(9), complete(7), disjoint([path(2)] * 9))
    for A, weighted, rng in itertools.product(graphs, WEIGHTED, range(5)):
        found = maximal_matching(A, blue_probability=p, rng=rng, weighted=weighted, engine=engine)
        check_maximal_matching(A, found, weighted=weighted)
        assert found.rounds <= A.shape[0] + 2


def test_one_colour_takes_few_rounds() -> None:
    """Rounds without colours follow the order by hash: no chains as long as the graph."""
    found = maximal_matching(path(5000), blue_probability=1e-300)
    check_maximal_matching(path(5000), found)
    assert found.rounds < 60


def test_more_rounds_than_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = maximal_matching(cycle(300), blue_probability=1e-300, threads=1)
    assert expected.rounds > 4
    for rounds in (1, 2, 3):
        monkeypatch.setattr(cpu, "ROUNDS_PER_LAUNCH", rounds)
        assert_same(maximal_matching(cycle(300), blue_probability=1e-300, threads=1), expected)


def test_first_round_of_a_random_graph() -> None:
    """Equation 2 of the paper, to 1 %; it holds for large degrees."""
    A = matchwood.generators.erdos_renyi(50_000, 2_500_000, rng=1)
    G = matchwood.graph((A.indptr, A.indices))
    for p in (0.3, BEST_PROBABILITY, 0.7):
        matched = maximal_matching(G, blue_probability=p, rng=3).matched_by_round[0] / G.n
        assert matched == pytest.approx(2 * (1 - p) * (1 - math.exp(-p / (1 - p))), rel=0.01)


def test_best_p_is_the_best() -> None:
    def share(p: float) -> float:
        return 2 * (1 - p) * (1 - math.exp(-p / (1 - p)))

    assert max(np.linspace(0.5, 0.57, 7001), key=share) == pytest.approx(BEST_PROBABILITY, abs=2e-5)


def test_few_rounds_and_as_large_as_serial() -> None:
    for A in (grid(60, 60), rmat(11, 8)):
        found = maximal_matching(A)
        assert found.rounds < 25
        assert found.cardinality > 0.95 * maximal_matching(A, method="serial").cardinality


def test_weights_are_looked_at() -> None:
    A = matchwood.generators.random_weights(matchwood.generators.grid((50, 50)), rng=4)
    heavy = maximal_matching(A, weighted=True)
    edges = heavy.edges()
    assert heavy.weight == pytest.approx(A[edges[:, 0], edges[:, 1]].sum(), rel=1e-6)
    light = maximal_matching(A).edges()
    assert heavy.weight > 1.2 * A[light[:, 0], light[:, 1]].sum()


def test_result() -> None:
    found = maximal_matching(path(6))
    mate, weight = found
    assert weight == found.cardinality == len(found.edges())
    assert (mate >= 0).sum() == found.matched_by_round[-1]
    assert found.rounds == len(found.matched_by_round)
    assert 0.5 <= found.quality <= 1
    assert maximal_matching(path(6), method="serial").matched_by_round is None


def test_patterns_read_no_values() -> None:
    A = path(5)
    A.data[:] = np.nan
    check_maximal_matching(A, maximal_matching(A))
    with pytest.raises(ValueError, match="maximal_matching: weights must be finite"):
        maximal_matching(A, weighted=True)


def test_zeros_are_edges_of_patterns_only() -> None:
    A = path(2)
    A.data[:] = 0
    assert maximal_matching(A).cardinality == 1
    assert maximal_matching(A, weighted=True).cardinality == 0


def test_seeds() -> None:
    A = grid(20, 20)
    one = maximal_matching(A, rng=np.random.default_rng(5))
    assert np.array_equal(one.mate, maximal_matching(A, rng=np.random.default_rng(5)).mate)
    assert np.array_equal(maximal_matching(A).mate, maximal_matching(A, rng=None).mate)
    assert not np.array_equal(maximal_matching(A).mate, maximal_matching(A, rng=1).mate)


def test_bad_arguments() -> None:
    A = path(3)
    for arguments, message in [
        ({"method": "luby"}, "method must be one of 'auto', 'proposal', 'serial'"),
        ({"blue_probability": 0.0}, "blue_probability must lie between 0 and 1"),
        ({"blue_probability": 1}, "blue_probability must lie between 0 and 1"),
        ({"blue_probability": math.nan}, "blue_probability must be finite"),
        ({"rng": -1}, "rng must lie in"),
        ({"engine": "fpga"}, "engine must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            maximal_matching(A, **arguments)
    with pytest.raises(TypeError, match="weighted must be True or False"):
        maximal_matching(A, weighted=1)
    with pytest.raises(ValueError, match="maximal_matching: A must be square"):
        maximal_matching(sp.csr_array((2, 3)))
    with pytest.raises(ValueError, match=r"maximal_matching: prefer must be one of 'random'"):
        maximal_matching(path(3), prefer="fixed")
    with pytest.raises(ValueError, match=r"prefer must be 'random' with weighted=True.*'hash'"):
        maximal_matching(path(3), prefer="hash", weighted=True)


def test_the_check_finds_every_fault() -> None:
    A = disjoint([path(4), path(2)])
    right = [1, 0, 3, 2, 5, 4]
    check_maximal_matching(A, right)
    for mate, message in [
        ([1, 0, -1, -1, 5, 4], r"edge \(2, 3\) can be added"),
        ([1, 2, 1, -1, 5, 4], r"mate\[0\] is 1, but mate\[1\] is 2"),
        ([2, -1, 0, -1, 5, 4], "0 and 2 are matched, but .* is no edge"),
        ([0, 2, 1, -1, 5, 4], r"mate\[0\] is 0 itself"),
        ([6, 2, 1, -1, 5, 4], r"mate\[0\] is 6, no vertex"),
        ([-2, 2, 1, -1, 5, 4], r"mate\[0\] is -2, no vertex"),
        (right[:5], "must have 6 elements"),
    ]:
        with pytest.raises(CheckFailed, match=message):
            check_maximal_matching(A, mate)
    found = maximal_matching(A)
    object.__setattr__(found, "weight", 1.0)
    with pytest.raises(CheckFailed, match="the weight is"):
        check_maximal_matching(A, found)
    found = maximal_matching(A)
    object.__setattr__(found, "matched_by_round", [1] * found.rounds)
    with pytest.raises(CheckFailed, match="matched_by_round is"):
        check_maximal_matching(A, found)


def test_the_old_letter_gives_the_same_with_a_warning() -> None:
    expected = maximal_matching(grid(9, 9), blue_probability=0.2)
    text = "^maximal_matching: p is called blue_probability now"
    with pytest.warns(DeprecationWarning, match=text) as seen:
        assert_same(maximal_matching(grid(9, 9), p=0.2), expected)
    assert seen[0].filename == __file__
    with pytest.raises(TypeError, match="maximal_matching: unknown argument 'q'"):
        maximal_matching(grid(9, 9), q=0.2)
