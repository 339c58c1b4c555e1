"""Traffic matrices: every engine against the definition; sums; form; bad input."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood import check, engines
from matchwood.applications.sensing.traffic import trusted
from matchwood.applications.sensing.traffic.check import check_traffic_matrix
from matchwood.applications.sensing.traffic.result import with_time
from matchwood.errors import CheckFailed
from matchwood.sensing import TrafficMatrix, sum_matrices, traffic_matrix
from sensing.traffic_cases import CASES, TOP, official, uniform, zipf
from support import THREADS


def parts(matrix):
    arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
    return [engines.moved(array, "cpu") for array in arrays]


@pytest.mark.parametrize("case", CASES)
def test_engines_equal_the_definition(engine, case):
    src, dst = CASES[case]()
    before = src.copy(), dst.copy()
    right = traffic_matrix(src, dst, engine="reference")
    found = traffic_matrix(src, dst, engine=engine)
    assert found == right
    found.check()
    check_traffic_matrix(src, dst, found)
    assert np.array_equal(src, before[0])
    assert np.array_equal(dst, before[1])
    assert [x.dtype for x in parts(found)] == [np.uint32, np.int64, np.uint32, np.int64]


@pytest.mark.parametrize("make", [uniform, zipf])
def test_threads_do_not_matter(make):
    src, dst = make(300_000)
    right = traffic_matrix(src, dst, threads=1)
    check_traffic_matrix(src, dst, right)
    for threads in THREADS:
        assert traffic_matrix(src, dst, threads=threads) == right


@pytest.mark.gpu
@pytest.mark.parametrize("make", [uniform, zipf])
def test_a_gpu_gives_the_same_at_sizes_of_many_tiles(make):
    src, dst = make(1_000_003)
    right = traffic_matrix(src, dst)
    found = traffic_matrix(src, dst, engine="gpu")
    assert found == right
    there = engines.cupy()
    kept = traffic_matrix(there.asarray(src), there.asarray(dst))
    assert kept.engine == "gpu"
    assert all(np.array_equal(a, b) for a, b in zip(parts(kept), parts(right), strict=True))
    assert np.array_equal(kept.keys().get(), right.keys())
    for ours, theirs in zip(kept.destination_sums(), right.destination_sums(), strict=True):
        assert np.array_equal(ours.get(), theirs)
    assert np.array_equal(kept.source_sums().get(), right.source_sums())


@pytest.mark.parametrize("pieces", [1, 2, 5, 8])
def test_sums_are_the_matrix_of_all_packets(engine, pieces):
    src, dst = zipf(4000)
    right = traffic_matrix(src, dst)
    cuts = np.linspace(0, src.size, pieces + 1).astype(int)
    some = [traffic_matrix(src[a:b], dst[a:b]) for a, b in itertools.pairwise(cuts)]
    assert sum_matrices(iter(some), engine=engine) == right
    total = some[0]
    for matrix in some[1:]:
        total = total + matrix
    assert total == right


def test_a_sum_of_nothing_is_empty(engine):
    empty = sum_matrices([], engine=engine)
    assert (empty.links, empty.packets, empty.sources.size) == (0, 0, 0)
    A = traffic_matrix(*zipf(100))
    assert sum_matrices([empty, A, empty], engine=engine) == A


def test_large_sums_at_any_number_of_threads():
    A, B = (traffic_matrix(*zipf(200_000, 50_000, seed)) for seed in (1, 2))
    right = sum_matrices([A, B], engine="reference")
    for threads in THREADS:
        assert sum_matrices([A, B], threads=threads) == right


def test_counts_beyond_32_bits(engine):
    A = TrafficMatrix([1, 2], [0, 2, 3], [5, 6, 5], [2**40, 1, 3])
    sums = traffic_on(A, engine).destination_sums()
    assert [engines.moved(x, "cpu").tolist() for x in sums] == [[5, 6], [2, 1], [2**40 + 3, 1]]
    assert sum_matrices([A, A], engine=engine).counts.tolist() == [2**41, 2, 6]


def traffic_on(matrix, engine):
    return trusted(*(engines.moved(x, engines.home(engine)) for x in parts(matrix)))


def test_the_forms_of_a_matrix():
    A = traffic_matrix(*official())
    source, destination, packets = A.tocoo()
    dense = np.zeros((5, 5), int)
    dense[source, destination] = packets
    scipy = A.toscipy()
    assert isinstance(scipy, sp.coo_array)
    assert scipy.shape == (2**32, 2**32)
    assert scipy.sum() == 21
    graph, addresses = A.graph()
    assert addresses.tolist() == [0, 1, 2, 3, 4]
    assert (graph.n, graph.nnz) == (5, 12)
    assert matchwood.connected_components(graph).count == 1
    copied = pickle.loads(pickle.dumps(with_time(A, 5)))
    assert copied == A
    assert copied.time == copy.copy(A).time == 5  # was dropped
    assert repr(A) == "TrafficMatrix(21 packets, 12 links, 4 sources)"
    assert A != traffic_matrix(*uniform(3))


def test_a_matrix_does_not_change():
    A = traffic_matrix(*official())
    with pytest.raises(AttributeError):
        A.counts = None
    with pytest.raises(ValueError, match="read-only"):
        A.counts[0] = 3


BROKEN = {
    "a packet too many": lambda a: a[3].__setitem__(0, a[3][0] + 1),
    "packets moved to another link": lambda a: (
        a[3].__setitem__(0, a[3][0] + 1),
        a[3].__setitem__(4, a[3][4] - 1),
    ),
    "no packets": lambda a: a[3].__setitem__(0, 0),
    "another source": lambda a: a[0].__setitem__(0, 1),
    "sources that fall": lambda a: a[0].__setitem__(slice(None), a[0][::-1].copy()),
    "another destination": lambda a: a[2].__setitem__(3, 9),
    "destinations that fall": lambda a: a[2].__setitem__(slice(0, 2), a[2][:2][::-1].copy()),
    "a link twice": lambda a: a[2].__setitem__(1, a[2][0]),
    "an empty row": lambda a: a[1].__setitem__(1, 0),
    "rows cut elsewhere": lambda a: a[1].__setitem__(2, 6),
    "a wrong start": lambda a: a[1].__setitem__(0, 1),
    "a wrong end": lambda a: a[1].__setitem__(-1, 11),
}


@pytest.mark.parametrize("how", BROKEN)
def test_the_check_sees_every_way_to_break_a_matrix(how):
    src, dst = official()
    arrays = [array.copy() for array in parts(traffic_matrix(src, dst))]
    check_traffic_matrix(src, dst, trusted(*arrays))
    BROKEN[how](arrays)
    with pytest.raises(CheckFailed):
        check_traffic_matrix(src, dst, trusted(*arrays))


def test_the_check_sees_other_sizes_and_types():
    src, dst = official()
    sources, indptr, destinations, counts = parts(traffic_matrix(src, dst))
    for arrays in [
        (sources[:-1], indptr, destinations, counts),
        (sources, indptr, destinations[:-1], counts),
        (sources.astype(np.int64), indptr, destinations, counts),
        (sources, indptr, destinations, counts.astype(np.float64)),
    ]:
        with pytest.raises(CheckFailed):
            check_traffic_matrix(src, dst, trusted(*arrays))
    with pytest.raises(CheckFailed):
        check_traffic_matrix(src[:-1], dst[:-1], trusted(sources, indptr, destinations, counts))
    assert check.check_traffic_matrix is check_traffic_matrix


@pytest.mark.parametrize(
    ("arrays", "error", "text"),
    [
        (([1.0], [0, 1], [1], [1]), TypeError, "sources must hold integers"),
        (([1], [0, 1], [2**32], [1]), ValueError, "destinations must lie within"),
        (([1], [0, 1], [-1], [1]), ValueError, "destinations must lie within"),
        (([1], [0, 1], [1], [0]), ValueError, "every link must have a packet"),
        (([2, 1], [0, 1, 2], [1, 1], [1, 1]), ValueError, "sources must ascend"),
        (([1], [0, 2], [3, 3], [1, 1]), ValueError, "destinations must ascend"),
        (([1], [0, 1, 1], [3], [1]), ValueError, "indptr must have 2 elements"),
        (([1], [0, 1], [3], [1, 1]), ValueError, "counts must have the size"),
        (([1], [0, 2], [3], [1]), ValueError, "indptr must go from 0 to 1"),
        (([1, 2], [0, 0, 1], [3], [1]), ValueError, "every source must have a link"),
    ],
)
def test_arrays_that_are_no_matrix(arrays, error, text):
    with pytest.raises(error, match=text):
        TrafficMatrix(*arrays)


@pytest.mark.parametrize(
    ("src", "dst", "error"),
    [
        ([1.5], [1], TypeError),
        ([1, 2], [1], ValueError),
        ([-1], [1], ValueError),
        ([TOP + 1], [1], ValueError),
        ([[1]], [[1]], ValueError),
        ("a", "b", ValueError),
    ],
)
def test_addresses_that_are_none(src, dst, error):
    with pytest.raises(error, match="traffic_matrix: "):
        traffic_matrix(src, dst)


def test_sums_of_something_else():
    with pytest.raises(TypeError, match="sum_matrices: matrices must be TrafficMatrix"):
        sum_matrices([1])
    with pytest.raises(TypeError, match="sum_matrices: matrices must be an iterable"):
        sum_matrices(3)
    with pytest.raises(TypeError):
        traffic_matrix(*official()) + 1


def test_empty_lists_are_no_packets():
    assert traffic_matrix([], []).links == 0
