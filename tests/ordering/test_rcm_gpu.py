"""Cuthill-McKee on the GPU: every method gives what the definition gives, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, disjoint, grid, path, rmat, shuffled, star
from matchwood.gate import graph as csr
from matchwood.ordering.rcm import gpu as engine
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.gpu import batch as gpu_batch
from matchwood.ordering.rcm.gpu import leveled
from support import pattern_on_gpu

pytestmark = pytest.mark.gpu

METHODS = engine.METHODS
NONE = np.empty(0, np.int64)


@pytest.fixture(params=["tried", "searched"])
def rule(request, monkeypatch):
    """Have starts found as in small graphs, and as in larger ones."""
    if request.param == "searched":
        monkeypatch.setattr(reference, "SMALL_GRAPH_EDGES", -1)


def binary_tree(n):
    """Vertex v hangs on (v - 1) // 2."""
    from graphs import from_edges

    child = np.arange(1, n)
    return from_edges(n, child, (child - 1) // 2)


def caterpillar(length, legs):
    """A path with so many leaves on every vertex."""
    from graphs import from_edges

    spine = np.arange(length)
    leaves = np.arange(length, length * (legs + 1))
    u = np.concatenate([spine[:-1], np.repeat(spine, legs)])
    return from_edges(length * (legs + 1), u, np.concatenate([spine[1:], leaves]))


LARGER = {
    "grid": lambda: shuffled(grid(90, 101)),
    "long path": lambda: shuffled(path(5000)),
    "star": lambda: star(30_000, centre=29_999),
    "two-level star": lambda: shuffled(caterpillar(40, 700)),
    "tree": lambda: shuffled(binary_tree(20_000)),
    "complete": lambda: complete(1500),
    "rmat 13": lambda: rmat(13, 6),
    "rmat 13, dense": lambda: rmat(12, 60),
    "many small": lambda: shuffled(disjoint([complete(5), path(4)] * 2000), isolated=500),
    "two large": lambda: disjoint([rmat(11, 8), star(5000), rmat(11, 8)]),
}


def prepared(A, index_dtype=np.int32):
    """The graph on the GPU, and its undirected pattern as NumPy arrays."""
    G = pattern_on_gpu(A, index_dtype)
    view = G.undirected_pattern()
    return G, csr.View(view.indptr.get(), view.indices.get())


def expected(view, starts=NONE, reverse=False):
    return by_definition(view, starts, reverse)[0]


def by_definition(view, starts=NONE, reverse=False):
    return reference.order(on_host(view), starts, "serial", reverse)


def on_host(view):
    return matchwood.graph((view.indptr, view.indices), index_dtype=view.indptr.dtype)


def started(view, vertex=None):
    """Where the component of a vertex starts, or that of the vertex of largest degree."""
    vertex = int(np.diff(view.indptr).argmax()) if vertex is None else vertex
    return reference.start_of(on_host(view), vertex)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.usefixtures("rule")
def test_zoo(zoo_graph, index_dtype):
    G, view = prepared(zoo_graph, index_dtype)
    right = expected(view, reverse=True)
    for method in METHODS:
        found = matchwood.reverse_cuthill_mckee(G, method=method)
        assert found.dtype == index_dtype
        assert np.array_equal(found.get(), right), method
    if view.n == 0:
        return
    start = np.array([view.n // 2])
    right = expected(view, start)
    for method in METHODS:
        found = matchwood.cuthill_mckee(G, method=method, start=start)
        assert np.array_equal(found.get(), right), method
    vertex = view.n // 3
    assert matchwood.pseudo_peripheral_vertex(G, vertex) == started(view, vertex)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", LARGER)
@pytest.mark.usefixtures("rule")
def test_larger(name, index_dtype):
    G, view = prepared(LARGER[name](), index_dtype)
    answer = expected(view)
    for method in METHODS:
        for _ in range(3):  # other schedules
            found = matchwood.cuthill_mckee(G, method=method)
            assert np.array_equal(found.get(), answer), method


def test_levels_left_to_the_host(monkeypatch):
    """Levels of many entries have launches of their own, in which rows offer, or vertices seek."""
    ways = []
    place_level = leveled.place_level

    def counted(*args):
        ways.append(args[6] > 0)
        return place_level(*args)

    monkeypatch.setattr(reference, "SMALL_GRAPH_EDGES", -1)
    monkeypatch.setattr(leveled, "HUGE_ENTRIES", 0)
    monkeypatch.setattr(leveled, "FEW_ENTRIES", 0)
    monkeypatch.setattr(leveled, "place_level", counted)
    for name in ("star", "two-level star", "complete", "rmat 13", "rmat 13, dense", "two large"):
        G, view = prepared(LARGER[name]())
        answer = expected(view)
        for bits, far in ((0, 0), (64, 0), (64, 1 << 25)):  # keys without and with the vertex
            monkeypatch.setattr(leveled, "KEY_BITS", bits)
            monkeypatch.setattr(leveled, "FAR_VERTICES", far)
            assert np.array_equal(matchwood.cuthill_mckee(G).get(), answer), name
        hub = np.array([np.diff(view.indptr).argmax()])
        found = matchwood.cuthill_mckee(G, start=hub)
        assert np.array_equal(found.get(), expected(view, hub)), name
    assert {True, False} <= set(ways)
    monkeypatch.undo()
    monkeypatch.setattr(leveled, "HUGE_ROW", 2000)  # rows that are too long for one block to sort
    for name in ("star", "rmat 13, dense", "two large"):
        G, view = prepared(LARGER[name]())
        assert np.array_equal(matchwood.cuthill_mckee(G).get(), expected(view)), name


@pytest.mark.parametrize("apart", [0, 1 << 24])
@pytest.mark.usefixtures("rule")
def test_largest_component_and_others(monkeypatch, apart):
    """Where its smallest vertex comes before, between and after those of the others."""
    monkeypatch.setattr(engine, "ALONE_VERTICES", 0)
    monkeypatch.setattr(engine, "APART_VERTICES", apart)
    small = [path(3), star(4), path(2)]
    for parts in (
        [rmat(11, 8), *small], [*small, rmat(11, 8)], [path(5), rmat(11, 8), *small],
        [path(32), rmat(11, 8), complete(9), *small], [path(33), rmat(11, 8), grid(7, 8), *small],
    ):  # fmt: skip
        for A in (disjoint(parts), shuffled(disjoint(parts), isolated=300)):
            start = np.array([A.shape[0] // 2])
            view = prepared(A)[1]
            answers = expected(view), expected(view, start)
            for index_dtype in (np.int32, np.int64):
                G = prepared(A, index_dtype)[0]
                for method in METHODS:
                    found = matchwood.cuthill_mckee(G, method=method)
                    assert np.array_equal(found.get(), answers[0]), method
                found = matchwood.cuthill_mckee(G, start=start)
                assert np.array_equal(found.get(), answers[1])


@pytest.mark.parametrize("blocks", [1, 2, 3, 17, 132, 1000, 5000])
def test_batches_with_few_and_many_blocks(blocks):
    """No deadlock whatever is resident: with one block, and with more than the device runs."""
    cupy = pytest.importorskip("cupy")
    for name in ("grid", "tree", "rmat 13", "two-level star"):
        G, view = prepared(LARGER[name]())
        start = started(view)
        answer = reference.place_from(reference._neighbours(view), start)
        found, _ = gpu_batch.place_batches(
            G.undirected_pattern(), cupy.array([start], np.int32), len(answer), blocks=blocks
        )
        assert found[: len(answer)].get().tolist() == answer


@pytest.mark.parametrize("name", ["grid", "rmat 13", "two-level star", "tree"])
def test_batches_with_delays(name):
    """Random pauses between the stages, so that signals come early and late."""
    cupy = pytest.importorskip("cupy")
    G, view = prepared(LARGER[name]())
    pattern = G.undirected_pattern()
    start = started(view)
    answer = np.array(reference.place_from(reference._neighbours(view), start))
    starts = cupy.array([start], np.int32)
    for seed in range(1, 101):
        found, _ = gpu_batch.place_batches(
            pattern, starts, answer.size, blocks=1 + seed * 7 % 300, delay=seed
        )
        assert np.array_equal(found[: answer.size].get(), answer), seed


@pytest.mark.parametrize("method", METHODS)
def test_complete_graph_of_20000(method):
    """One vertex has more children than shared memory holds; all others have none."""
    cupy = pytest.importorskip("cupy")
    n = 20_000
    others = cupy.arange(n - 1, dtype=np.int32)
    row = cupy.arange(n, dtype=np.int32)[:, None]
    indices = (others[None, :] + (others[None, :] >= row)).astype(np.int32).ravel()
    indptr = cupy.arange(n + 1, dtype=np.int32) * np.int32(n - 1)
    G = matchwood.graph((indptr, indices))
    found = matchwood.cuthill_mckee(G, start=7, method=method).get()
    assert np.array_equal(found, np.concatenate([[7], np.delete(np.arange(n), 7)]))


def lattice(*sizes):
    """Points of a box, next to all that differ by at most one in every direction."""
    from graphs import from_edges

    points = np.indices(sizes).reshape(len(sizes), -1)
    steps = np.indices((3,) * len(sizes)).reshape(len(sizes), -1).T - 1
    u, v = [], []
    for step in steps[: len(steps) // 2]:
        there = points + step[:, None]
        inside = np.all((there >= 0) & (there < np.array(sizes)[:, None]), axis=0)
        u.append(np.flatnonzero(inside))
        v.append(np.ravel_multi_index(there[:, inside], sizes))
    return from_edges(points.shape[1], np.concatenate(u), np.concatenate(v))


def star_on_tree(n, spokes):
    """A binary tree, one leaf of which has so many more neighbours."""
    from graphs import from_edges

    child = np.arange(1, n)
    u = np.concatenate([(child - 1) // 2, np.full(spokes, n - 1)])
    return from_edges(n, u, np.concatenate([child, np.arange(n - 1 - spokes, n - 1)]))


WIDE = LARGER | {
    "long path": lambda: shuffled(path(1500)),
    "lattice": lambda: lattice(34, 33, 32),
    "hubs": lambda: disjoint([rmat(11, 100), path(3)]),
    "hub and tree": lambda: star_on_tree(6000, 1500),
    "large tree": lambda: shuffled(binary_tree(70_000)),
}


def check_levels(A, index_dtype):
    """Depth, width and the next vertex are those of the definition.  Was some level in no order?"""
    G, view = prepared(A, index_dtype)
    pattern = G.undirected_pattern()
    neighbours = reference._neighbours(view)
    degree = np.diff(view.indptr)
    mixed = False
    for start in (-1, view.n // 2, int(degree.argmax())):
        found = leveled.find_levels(pattern, start)
        begin = found.start
        joined = np.where(degree > 0, degree, view.n)  # no vertex alone, unless all are
        assert begin == (start if start >= 0 else np.lexsort((np.arange(view.n), joined))[0])
        levels = reference._levels(neighbours, begin)
        order = reference.place_from(neighbours, begin)
        width, depth, far = reference._search(neighbours, begin)
        assert (found.size, found.depth, found.width) == (len(levels), depth, width)
        assert found.far == far
        queue = found.order[: found.size].get().tolist()
        assert sorted(queue) == sorted(levels)
        assert [levels[v] for v in queue] == sorted(levels.values())
        if found.in_order:
            assert queue == order
        mixed |= not found.in_order
        placed = leveled.place_levels(pattern, start, found.size)
        assert placed.order[: placed.size].get().tolist() == order
        assert placed[2:] == (True, *found[3:])
        for limit in (width // 2, width, width + 1):
            given_up = leveled.find_levels(pattern, begin, limit=limit)
            assert (given_up.width >= limit) == (width >= limit)
            if width < limit:
                assert given_up[3:] == found[3:]
    return mixed


@pytest.mark.parametrize("most", [leveled.LEVELS_PER_LAUNCH, 2])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", WIDE)
def test_levels_alone(monkeypatch, name, index_dtype, most):
    """In narrow and wide levels, in one launch and in many."""
    monkeypatch.setattr(leveled, "LEVELS_PER_LAUNCH", most)
    mixed = check_levels(WIDE[name](), index_dtype)
    assert mixed or name not in ("lattice", "hubs", "hub and tree", "large tree", "rmat 13")


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_levels_of_more_than_blocks_have_room_for(monkeypatch, index_dtype):
    monkeypatch.setattr(leveled, "_needed", lambda work: leveled.CLUSTER)
    assert check_levels(star(60_000, centre=59_999), index_dtype)
    assert check_levels(rmat(16, 4), index_dtype)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("rule")
def test_goes_on_after_a_pause(monkeypatch, method):
    """A launch ends after so many levels, the next one takes up where it ended."""
    for name in ("long path", "grid", "rmat", "star"):
        G, view = prepared(ZOO[name]())
        for most in (1, 3):
            monkeypatch.setattr(leveled, "LEVELS_PER_LAUNCH", most)
            found = matchwood.cuthill_mckee(G, method=method)
            assert np.array_equal(found.get(), expected(view))


def test_batches_can_be_interrupted(monkeypatch):
    """Ctrl-C ends what is on the device; the next call is not disturbed."""
    G, view = prepared(shuffled(path(300_000)))

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(gpu_batch.time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            matchwood.cuthill_mckee(G, start=int(view.n // 2), method="batch")
    G, view = prepared(LARGER["grid"]())
    found = matchwood.cuthill_mckee(G, method="batch")
    assert np.array_equal(found.get(), expected(view))


def test_places_may_still_be_called():
    cupy = pytest.importorskip("cupy")
    G, _ = prepared(grid(6, 7))
    place = matchwood.rcm_ordering(G).place
    with pytest.warns(DeprecationWarning, match=r"Ordering.place is an array now"):
        called = place()
    assert type(called) is cupy.ndarray
    assert bool((called == place).all())


def test_two_starts_in_one_component():
    G, _ = prepared(disjoint([path(4), path(5)]))
    with pytest.raises(ValueError, match="vertices 5 and 8 are in one component"):
        matchwood.cuthill_mckee(G, start=[8, 0, 5])
    found = matchwood.cuthill_mckee(G, start=[8, 1])
    assert found.get().tolist() == [1, 0, 2, 3, 8, 7, 6, 5, 4]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("rule")
def test_stats(method):
    G, view = prepared(LARGER["rmat 13"]())
    found = matchwood.rcm_ordering(G, method=method)
    _, counters = by_definition(view, NONE, True)
    for key in ("components", "levels", "front", "searches"):
        assert found.counters[key] == counters[key], key
    assert found.counters["method"] == method
    assert found.after.bandwidth == matchwood.bandwidth(G, found.perm)
    if method == "batch":
        made, taken = found.counters["generated"], found.counters["dequeued"]
        assert made >= taken == found.counters["executed"] + found.counters["empty"] > 0
        shares = sum(found.counters[key] for key in gpu_batch.TIMED)
        assert shares == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
def test_input_is_not_changed(method):
    G, view = prepared(LARGER["rmat 13"]())
    matchwood.reverse_cuthill_mckee(G, method=method)
    pattern = G.undirected_pattern()
    assert np.array_equal(pattern.indptr.get(), view.indptr)
    assert np.array_equal(pattern.indices.get(), view.indices)


@pytest.mark.parametrize("method", METHODS)
def test_several_threads_at_once(method):
    """Orders on streams of their own, more blocks than the device runs at once."""
    cupy = pytest.importorskip("cupy")
    G, view = prepared(LARGER["grid"]())
    starts = [0, 17, 400, view.n - 1]
    wanted = [expected(view, np.array([s])) for s in starts]
    wrong = []

    def body(k):
        with cupy.cuda.Stream(non_blocking=True):
            for _ in range(5):
                found = matchwood.cuthill_mckee(G, start=starts[k], method=method)
                if not np.array_equal(found.get(), wanted[k]):
                    wrong.append(k)

    cupy.cuda.Device().synchronize()
    members = [threading.Thread(target=body, args=(k,)) for k in range(4)]
    for member in members:
        member.start()
    for member in members:
        member.join()
    assert wrong == []


@pytest.mark.parametrize(
    "parts", [(path(40), grid(6, 7)), (grid(9, 8), path(30), complete(4)), (path(2), path(2))]
)
@pytest.mark.usefixtures("rule")
def test_several_components_and_none_alone(parts):
    """The first order may be of a large component, of a small one, or of the one with a start."""
    G, view = prepared(disjoint(parts))
    for given in ([], [0], [view.n - 1], [0, view.n - 1]):
        start = np.array(given, np.int64)
        found = matchwood.rcm_ordering(G, start=start, reverse=False)
        answer, counters = by_definition(view, start)
        assert np.array_equal(found.perm.get(), answer)
        assert np.array_equal(matchwood.cuthill_mckee(G, start=start).get(), answer)
        for key in ("components", "levels", "searches"):
            assert found.counters[key] == counters[key], key


def test_isolated_vertices_are_quick():
    """A million of them, and a path: no loop over components."""
    cupy = pytest.importorskip("cupy")
    n = 1_000_000
    edges = cupy.array([[5, 900_000], [900_000, 17], [999_999, 0]])
    G = matchwood.graph((n, edges))
    found = matchwood.cuthill_mckee(G).get()
    assert found[:2].tolist() == [0, 999_999]
    assert found[5:9].tolist() == [4, 5, 900_000, 17]
    assert np.array_equal(np.sort(found), np.arange(n))


def test_ring_is_large_enough():
    """More entries than batches that can wait at once, and a power of two."""
    for n, nnz in ((1, 0), (10**6, 10**7), (10**9, 10**10)):
        size = gpu_batch.ring_size(n, nnz, 1792, 1)
        assert size & (size - 1) == 0
        assert size > 3 * n / 256 + 6 * nnz / 1792
