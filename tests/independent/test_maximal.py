"""Maximal independent sets: one answer for each method and seed, and the check is strict."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import (
    ZOO,
    binary_tree,
    complete,
    disjoint,
    from_edges,
    grid,
    path,
    rmat,
    shuffled,
    star,
)
from matchwood.check import check_maximal_independent_set
from matchwood.independent import cpu, order, reference
from matchwood.primitives import hashing
from matchwood.primitives.hashing.reference import mix64_number
from strategies import graphs
from support import THREADS, from_python, run_script, start_script

METHODS = ["luby", "lexicographic", "luby_sampling"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str, method: str) -> None:
    A = ZOO[name]()
    before = A.copy()
    for rng in (0, 7):
        expected = matchwood.maximal_independent_set(A, method=method, rng=rng, engine="reference")
        check_maximal_independent_set(A, expected, method=method, rng=rng)
        for argument, threads in itertools.product((A, matchwood.graph(A)), THREADS):
            found = matchwood.maximal_independent_set(
                argument, method=method, rng=rng, threads=threads
            )
            assert found.dtype == np.bool_
            assert np.array_equal(found, expected), threads
    assert np.array_equal(A.indptr, before.indptr)
    assert np.array_equal(A.indices, before.indices)


@given(graphs(max_n=60, max_m=150))
def test_random_graphs(A: sp.csr_array) -> None:
    for method in METHODS:
        expected = matchwood.maximal_independent_set(A, method=method, rng=3, engine="reference")
        check_maximal_independent_set(A, expected, method=method, rng=3)
        for threads in (1, 2, 5):
            found = matchwood.maximal_independent_set(A, method=method, rng=3, threads=threads)
            assert np.array_equal(found, expected)


LARGER = {
    "rmat": lambda: rmat(12, 8),
    "grid": lambda: grid(150, 151),
    "shuffled grid": lambda: shuffled(grid(120, 130), isolated=50),
    "dense": lambda: matchwood.generators.dense_random(300, 0.65, directed=True),
    "path": lambda: path(30_000),
    "star": lambda: star(20_000),
    "cliques": lambda: shuffled(disjoint([complete(9)] * 300)),
}


# For the wider type each method is compiled once more.
@pytest.mark.parametrize("index_dtype", [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs(name: str, method: str, index_dtype: type) -> None:
    G = matchwood.graph(LARGER[name](), index_dtype=index_dtype)
    expected = matchwood.maximal_independent_set(G, method=method, engine="reference")
    check_maximal_independent_set(G, expected, method=method)
    for threads in (1, 2, 3, 5):
        found = matchwood.maximal_independent_set(G, method=method, threads=threads)
        assert np.array_equal(found, expected)


def test_many_schedules() -> None:
    G = matchwood.graph(shuffled(disjoint([rmat(9, 6), path(3000), star(300)]), isolated=50))
    for method in METHODS:
        first = matchwood.maximal_independent_set(G, method=method, threads=1)
        for threads in THREADS * 30:
            found = matchwood.maximal_independent_set(G, method=method, threads=threads)
            assert np.array_equal(found, first)


def test_a_star_gives_its_leaves() -> None:
    for rng in range(20):
        for centre in (0, 7, 49):
            found = matchwood.maximal_independent_set(star(50, centre=centre), rng=rng)
            assert np.flatnonzero(~found).tolist() == [centre]


def luby_order(degree: Any, seed: int) -> Any:
    """The vertices in the order of "luby"."""
    v = np.arange(degree.size, dtype=np.uint64)
    hashed = hashing.mix64(np.uint64(order.start_of(seed)) ^ v, threads=1)
    return np.lexsort((hashed, order.degree_class(np.maximum(degree, 1))))


def test_the_order() -> None:
    """Classes of degrees as order.py says, and the same on both sides of the engines."""
    degrees = np.arange(1, 40)
    assert order.degree_class(degrees).tolist() == (
        [0, 1, 2, 3] + [4] * 2 + [5] * 2 + [6] * 4 + [7] * 4 + [8] * 8 + [9] * 8 + [10] * 7
    )
    large = np.array([2**31 - 1, 2**31, 2**31 + 1, 2**40])
    assert order.degree_class(large).tolist() == [61, 61, 62, 62]
    place_of = from_python(cpu._place)
    for degree in [*degrees.tolist(), *large.tolist()]:
        for v in (0, 1, 12345):
            place = place_of(v, degree, np.uint64(99))
            hashed = mix64_number(99 ^ v)
            assert place == 254 - 4 * int(order.degree_class([degree])[0]) - (hashed >> 62)
            assert place > cpu.JOINED
    assert luby_order(np.array([3, 1, 0, 2]), 5)[2:].tolist() == [3, 0]


def test_seeds() -> None:
    A = grid(30, 30)
    found = {matchwood.maximal_independent_set(A, rng=rng).tobytes() for rng in (0, 1, 2**64 - 1)}
    assert len(found) == 3
    one, other = (
        matchwood.maximal_independent_set(A, rng=np.random.default_rng(4)) for _ in range(2)
    )
    assert np.array_equal(one, other)
    for rng in (0, 9):
        found_first = matchwood.maximal_independent_set(A, method="lexicographic", rng=rng)
        assert np.array_equal(found_first, np.indices((30, 30)).sum(axis=0).ravel() % 2 == 0)


def test_chains_deeper_than_the_stack() -> None:
    """Paths that are seen from their late end first, by threads that begin in the middle."""
    room = cpu.STACK_VERTICES
    for n, threads in itertools.product((room - 1, room, room + 1, 5 * room), THREADS):
        found = matchwood.maximal_independent_set(path(n), method="lexicographic", threads=threads)
        assert np.array_equal(found, np.arange(n) % 2 == 0)


def chain(n: int, rng: int = 0) -> sp.csr_array:
    """A path along the order of "luby": of n vertices one waits for n - 1 others in turn."""
    along = luby_order(np.full(n, 2), rng)
    return from_edges(n, along[:-1], along[1:])


def test_the_worst_order_for_a_path() -> None:
    """Longer chains than the stack holds: their beginning is forgotten and asked for again."""
    A = chain(4 * cpu.STACK_VERTICES)
    for threads in THREADS:
        found = matchwood.maximal_independent_set(A, threads=threads)
        check_maximal_independent_set(A, found, method="luby")


def test_rounds_of_sampling_are_few() -> None:
    """At most n whatever the seed, and few where the thesis' code stalled: dense graphs."""
    A = matchwood.generators.dense_random(400, 0.65, directed=True)
    view = matchwood.graph(A).undirected_pattern()
    for rng in range(10):
        members, rounds = cpu.choose(view, "luby_sampling", rng, threads=2)
        assert rounds <= members.sum()  # somebody joins in every round
        assert rounds < 12
        assert rounds == reference.choose(view, "luby_sampling", rng)[1]
    for n in (1, 2, 300):
        view = matchwood.graph(complete(n)).undirected_pattern()
        assert cpu.choose(view, "luby_sampling", 0, threads=2)[1] == 1
    view = matchwood.graph(grid(60, 60)).undirected_pattern()
    assert cpu.choose(view, "luby_sampling", 0, threads=2)[1] < 40


def test_bad_arguments() -> None:
    call = matchwood.maximal_independent_set
    with pytest.raises(ValueError, match="method must be one of 'auto', 'luby'"):
        call(path(3), method="greedy")
    with pytest.raises(ValueError, match="maximal_independent_set: A must be square"):
        call(sp.csr_array((2, 3)))
    with pytest.raises(TypeError, match="maximal_independent_set: rng must be an integer"):
        call(path(3), rng="a")
    with pytest.raises(ValueError, match=r"rng must lie in 0 \.\. 2\*\*64 - 1"):
        call(path(3), rng=-1)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        call(path(3), threads=0)


def test_the_check_finds_every_fault() -> None:
    A = disjoint([path(4), star(4), path(1)])  # 4 is the centre of the star
    luby = matchwood.maximal_independent_set(A)
    check_maximal_independent_set(A, luby, method="luby")

    def members(*vertices: int) -> list[bool]:
        return [v in vertices for v in range(9)]

    first = members(0, 2, 4, 8)
    check_maximal_independent_set(A, first)
    check_maximal_independent_set(A, first, method="lexicographic")
    check_maximal_independent_set(A, members(1, 3, 4, 8), method="luby_sampling")
    for found, message in [
        (members(0, 1, 4, 8), r"edge \(0, 1\) joins two members"),
        (members(0, 4, 8), "vertex 2 could be added"),
        (members(0, 2, 4), "vertex 8 could be added"),
        (first[:5], "must have 9 elements"),
        ([1] * 9, r"edge \(0, 1\) joins two members"),
        ([0, 2, 4, 8, 0, 0, 0, 0, 0], "integers 0 and 1, got 2 at vertex 1"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_maximal_independent_set(A, found)
    with pytest.raises(matchwood.CheckFailed, match="vertex 0 comes before all members among"):
        check_maximal_independent_set(A, members(1, 3, 4, 8), method="lexicographic")
    with pytest.raises(matchwood.CheckFailed, match="in the order of 'luby'"):
        check_maximal_independent_set(A, first, method="luby")  # has the centre of the star
    with pytest.raises(ValueError, match="method must be one of None, 'auto', 'luby'"):
        check_maximal_independent_set(A, first, method="greedy")


def test_no_other_set_passes_the_strict_check() -> None:
    """All maximal independent sets of a small graph: the check takes exactly one."""
    A = ZOO["cycle"]()[:9, :9].tocsr()
    found = matchwood.maximal_independent_set(A, rng=2)
    passed = []
    for bits in range(1 << 9):
        members = np.array([bool(bits >> v & 1) for v in range(9)])
        try:
            check_maximal_independent_set(A, members, method="luby", rng=2)
        except matchwood.CheckFailed:
            continue
        passed.append(members)
    assert len(passed) == 1
    assert np.array_equal(passed[0], found)


INTERRUPTED = """
    import sys, time
    import numpy as np
    import matchwood

    n = 3_000_000
    method = sys.argv[1]
    G = matchwood.graph(matchwood.generators.grid((n // 1000, 1000)))
    small = matchwood.generators.path(20)
    matchwood.maximal_independent_set(small, method=method, threads=2)
    G.undirected_pattern()
    print("ready", flush=True)
    try:
        while True:
            matchwood.maximal_independent_set(G, method=method, threads=2)
    except KeyboardInterrupt:
        pass
    found = matchwood.maximal_independent_set(small, method=method, threads=2)
    matchwood.check.check_maximal_independent_set(small, found, method=method)
    print("usable", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["luby", "luby_sampling"])
def test_ctrl_c_is_heard(method: str, tmp_path) -> None:
    import signal
    import time

    process = start_script(tmp_path, INTERRUPTED, method)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "usable" in out
    finally:
        process.kill()


@pytest.mark.parametrize(("method", "words"), [("luby", 0), ("luby_sampling", 2)])
def test_memory_is_what_is_said(method: str, words: int) -> None:
    n = 90_000
    G = matchwood.graph(matchwood.generators.grid((300, 300)))

    def call() -> None:
        matchwood.maximal_independent_set(G, method=method, threads=2)

    call()
    tracemalloc.start()
    try:
        call()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n <= taken <= (1 + 4 * words) * n + 200_000


def test_import_of_the_page_is_light(tmp_path) -> None:
    text = "import sys, matchwood.independent; print('numba' in sys.modules)"
    assert run_script(tmp_path, text) == "False"


@pytest.mark.slow
def test_real_graphs(data_folder) -> None:
    files = sorted(data_folder.rglob("*.mtx*"))[:6]
    for file in files:
        G = matchwood.graph(matchwood.io.read(file))
        for method in METHODS:
            found = matchwood.maximal_independent_set(G, method=method)
            check_maximal_independent_set(G, found, method=method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_input_is_much_slower_than_others(method: str) -> None:
    """None takes more than 5 times the median, for each vertex and entry."""
    import statistics
    import time

    n = 100_000
    inputs = {
        "path": path(2 * n),
        "shuffled path": shuffled(path(2 * n)),
        "star": star(2 * n),
        "tree": binary_tree(2 * n),
        "grid": grid(300, 333),
        "shuffled grid": shuffled(grid(300, 333)),
        "rmat": rmat(15, 8),
        "cliques": disjoint([complete(20)] * 1000),
        "complete": complete(640),
        "dense": matchwood.generators.dense_random(700, 0.65, directed=True),
    }
    best = {}
    for name, A in inputs.items():
        G = matchwood.graph(A)
        matchwood.maximal_independent_set(G, method=method)
        times = []
        for _ in range(9):
            start = time.process_time()  # of the CPU, so that other programs do not count
            matchwood.maximal_independent_set(G, method=method, threads=1)
            times.append(time.process_time() - start)
        best[name] = 1e9 * min(times) / (A.shape[0] + A.nnz)
    # dense graphs are far below: most of their rows need not be read
    sparse = [value for name, value in best.items() if name not in ("complete", "dense")]
    assert max(best.values()) <= 5 * statistics.median(sparse), best
