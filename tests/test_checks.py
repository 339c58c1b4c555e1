"""What all checks share: what they take, what they refuse, and that Ctrl-C stops them."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

import matchwood
from graphs import ZOO, disjoint, from_edges, grid, path, star
from matchwood import answers, check
from matchwood.gate import graph as csr
from support import in_time

CheckFailed = matchwood.CheckFailed
CYCLE_AND_TAIL = (4, [[2, 0], [0, 2], [2, 1], [1, 3]])


# What cannot be an answer


@pytest.mark.parametrize("kind", [float, bool, str, object, complex])
def test_only_integers_number_vertices(kind):
    A = path(2)
    wrong = np.array([0, 1]).astype(kind)
    right = np.array([0, 0])
    for call in (
        lambda: check.check_bfs(A, 0, (wrong, [0, 0])),
        lambda: check.check_bfs(A, 0, ([0, 1], wrong)),
        lambda: check.check_connected_components(A, wrong),
        lambda: check.check_connected_components(A, wrong, numbering="any"),
        lambda: check.check_strongly_connected_components(A, wrong),
        lambda: check.check_condensation(A, (sp.csr_array((1, 1)), wrong)),
        lambda: check.check_condensation(A, (sp.csr_array((1, 1)), right, wrong[:1])),
        lambda: check.check_spanning_forest(A, wrong[None]),
        lambda: check.check_rcm_order(A, wrong),
    ):
        with pytest.raises(TypeError, match=r"^check_.*: .* must hold integers, got dtype"):
            call()


def test_numbers_of_the_wrong_kind():
    A = path(3)
    with pytest.raises(TypeError, match="count must be an integer, got float"):
        check.check_connected_components(A, (1.0, [0, 0, 0]))
    with pytest.raises(TypeError, match=r"answer must be Components, .* got a tuple of 3"):
        check.check_connected_components(A, (0, 0, 0))
    with pytest.raises(TypeError, match="result must be a BFS or"):
        check.check_bfs(A, 0, [0, 1, 2])
    with pytest.raises(TypeError, match="rounds must be an integer"):
        check.check_bfs(A, 0, dataclasses.replace(matchwood.bfs(A, 0), rounds=2.0))
    with pytest.raises(CheckFailed, match="rounds is 1, but the largest level is 2"):
        check.check_bfs(A, 0, dataclasses.replace(matchwood.bfs(A, 0), rounds=1))
    with pytest.raises(TypeError, match="sources must hold integers"):
        check.check_bfs(A, 0.5, matchwood.bfs(A, 0))
    with pytest.raises(ValueError, match=r"sources must lie within 0\.\.2, got 3"):
        check.check_bfs(A, 3, matchwood.bfs(A, 0))
    with pytest.raises(TypeError, match="members must hold truth values"):
        check.check_maximal_independent_set(A, [1.0, 0.0, 1.0])
    with pytest.raises(TypeError, match="answer must be Measures"):
        check.check_measures(A, (1, 2, 3, 4))
    with pytest.raises(ValueError, match="perm must hold every row once"):
        check.check_measures(A, matchwood.order_measures(A), [0, 0, 1])
    with pytest.raises(ValueError, match="start must have one vertex of a component"):
        check.check_rcm_order(A, [0, 1, 2], start=[0, 2])


def test_large_numbers_do_not_wrap():
    A = path(2)
    for wrong in ([0, 2**32], [0, -(2**63)], np.array([0, 2**63], np.uint64)):
        assert not check.is_connected_components(A, wrong)
        assert not check.is_bfs(A, 0, ([0, 1], wrong))


# What was taken and is wrong


def test_unreached_vertices_have_no_parent():
    A = disjoint([path(2), path(1)])
    check.check_bfs(A, 0, ([0, 1, -1], [0, 0, -1]))
    with pytest.raises(CheckFailed, match="vertex 2 has level -1 and parent -5"):
        check.check_bfs(A, 0, ([0, 1, -1], [0, 0, -5]))


def test_all_of_a_condensation_is_checked():
    found = matchwood.condensation(CYCLE_AND_TAIL)
    check.check_condensation(CYCLE_AND_TAIL, found)
    assert check.is_condensation(CYCLE_AND_TAIL, (found.graph, found.labels, found.levels))
    for levels in (found.levels + 1, found.levels[::-1], found.levels * 0):
        with pytest.raises(CheckFailed, match="the level of component"):
            wrong = dataclasses.replace(found, levels=levels)
            check.check_condensation(CYCLE_AND_TAIL, wrong)
    for value in (2.0, 0.0, -1.0, math.nan):
        graph = found.graph.copy()
        graph.data[1] = value
        with pytest.raises(CheckFailed, match=r"entry 1 of the graph is .*, not 1"):
            check.check_condensation(CYCLE_AND_TAIL, (graph, found.labels))
    twice = sp.csr_array(([1.0, 1.0, 1.0], [1, 1, 2], [0, 2, 3, 3]), shape=(3, 3))
    with pytest.raises(CheckFailed, match="has an arc twice"):
        check.check_condensation(CYCLE_AND_TAIL, (twice, found.labels))
    with pytest.raises(CheckFailed, match="must be square"):
        check.check_condensation(CYCLE_AND_TAIL, (sp.csr_array((3, 4)), found.labels))
    assert not check.is_condensation(CYCLE_AND_TAIL, (found.graph.T, found.labels))


def test_all_of_a_spanning_forest_is_checked():
    A = from_edges(5, [0, 1, 2, 0, 0], [1, 2, 3, 3, 2], [1.0, 2.0, 3.0, 4.0, 5.0])
    found = matchwood.minimum_spanning_forest(A)
    check.check_spanning_forest(A, found)
    for changed in (
        {"total": math.nan},
        {"total": math.inf},
        {"total": found.total * (1 + 1e-13)},
        {"n": 4},
        {"components": 3},
        {"weights": np.array([1.0, math.nan, 3.0])},
        {"edges": found.edges[:, ::-1]},
        {"edges": found.edges[::-1], "weights": found.weights[::-1]},
    ):
        assert not check.is_spanning_forest(A, dataclasses.replace(found, **changed)), changed


def test_large_integer_weights_are_not_rounded():
    big = 2**60 + 1
    A = sp.csr_array(np.array([[0, big], [big, 0]]))
    assert check.is_spanning_forest(A, ([[0, 1]], np.array([big])))
    for wrong in (np.array([big - 1]), np.array([float(big)]), np.array([2**63 + 5], np.uint64)):
        assert not check.is_spanning_forest(A, ([[0, 1]], wrong))
    assert check.is_spanning_forest(A - (A > 0), ([[0, 1]], np.array([2.0**60])))


@pytest.mark.parametrize("scale", [8e307, 5e-324, 1e-310])
def test_totals_near_the_ends_of_floats(scale):
    A = from_edges(3, [0, 1], [1, 2], [scale, scale])
    found = matchwood.minimum_spanning_forest(A)
    check.check_spanning_forest(A, found)
    for total in (0.0, 3 * scale if scale < 1 else 1e308, -found.total, math.nan):
        assert not check.is_spanning_forest(A, dataclasses.replace(found, total=total)), total


def test_whole_measures_are_exact():
    n = 1_500_000
    far = from_edges(n, np.full(n - 1, 0), np.arange(1, n))  # profile about 10^12
    found = matchwood.order_measures(far)
    check.check_measures(far, found)
    with pytest.raises(CheckFailed, match="profile is"):
        check.check_measures(far, dataclasses.replace(found, profile=found.profile + 1))


def test_an_ordering_is_checked_with_its_measures():
    A = grid(5, 6)
    found = matchwood.rcm_ordering(A)
    check.check_rcm_order(A, found)
    for name in ("before", "after"):
        wrong = dataclasses.replace(getattr(found, name), bandwidth=9)
        with pytest.raises(CheckFailed, match="measures: bandwidth is 9"):
            check.check_rcm_order(A, dataclasses.replace(found, **{name: wrong}))


def test_a_column_too_far_is_not_the_next_row():
    A = sp.csr_array(np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0]]))
    wrong = sp.csr_array(A.shape)
    wrong.indptr, wrong.indices, wrong.data = np.array([0, 1, 1, 1]), np.array([3]), np.ones(1)
    with pytest.raises(CheckFailed, match="entry 0 is in column 3"):
        check.check_permuted(A, [0, 1, 2], wrong)


def test_values_that_are_no_numbers_may_be_permuted():
    A = sp.csr_array(np.array([[0.0, math.nan], [2.0, 0.0]]))
    check.check_permuted(A, [1, 0], matchwood.permute(A, [1, 0]))
    B = matchwood.permute(A, [1, 0])
    B.data[:] = 2.0
    with pytest.raises(CheckFailed, match="but must be nan"):
        check.check_permuted(A, [1, 0], B)


def test_all_of_a_solution_is_checked():
    A = sp.csr_array(sp.diags_array([[-1.0] * 9, [3.0] * 10, [-1.0] * 9], offsets=[-1, 0, 1]))
    b = np.linspace(1, 2, 10)
    for method in ("bicgstab", "cg", "gmres"):
        for history in (True, False):
            found = matchwood.solve(A, b, method=method, preconditioner="jacobi", history=history)
            check.check_solution(A, b, found)
    found = matchwood.solve(A, b, preconditioner="jacobi")
    check.check_solution(A, b, found.x)
    for v in range(10):
        with pytest.raises(CheckFailed, match="the residual is"):
            check.check_solution(A, b, found.x + 1e-6 * (np.arange(10) == v))
    spoiled = np.append(found.residuals[:-1], np.nan)
    for changed, message in (
        ({"info": 3}, "info is 3"),
        ({"converged": False}, "converged False"),
        ({"iterations": found.iterations + 1}, "iterations, but residuals of shape"),
        ({"iterations": -1}, "-1 iterations"),
        ({"residuals": found.residuals[:-1]}, "but residuals of shape"),
        ({"residuals": -found.residuals}, "residual 0 of the history is -1"),
        ({"residuals": spoiled}, "of the history is nan"),
        ({"residuals": 2 * found.residuals}, "but its history ends at"),
    ):
        with pytest.raises(CheckFailed, match=message):
            check.check_solution(A, b, dataclasses.replace(found, **changed))
    for changed in ({"info": 0.0}, {"iterations": 2.0}, {"converged": 1}, {"residuals": ["1"]}):
        with pytest.raises(TypeError, match=r"^check_solution: \w+ must "):
            check.check_solution(A, b, dataclasses.replace(found, **changed))


def test_all_of_a_preconditioner_is_checked():
    from matchwood import preconditioners

    A = sp.csr_array(sp.diags_array([[-1.0] * 9, [3.0] * 10, [-2.0] * 9], offsets=[-1, 0, 1]))
    own = sp.linalg.aslinearoperator(sp.csr_array(sp.eye_array(10)))
    check.check_preconditioner(A, own)  # says nothing of itself

    def third(x):
        return (x / 3).astype(np.float32)

    rounded = sp.linalg.LinearOperator((10, 10), third, third, dtype=np.float32)
    rounded.precision = "float64"  # inside
    check.check_preconditioner(A, rounded)
    for wrong, message in (
        (sp.linalg.LinearOperator((10, 10), lambda x: x**2, lambda x: x, dtype=float), "not M x"),
        (sp.linalg.LinearOperator((10, 10), A.dot, A.dot, dtype=float), "but x.(M.H y) is"),
        (sp.linalg.LinearOperator((10, 10), A.dot, lambda x: x[1:], dtype=float), "cannot be"),
        (sp.linalg.LinearOperator((10, 10), lambda x: x * np.nan, A.dot, dtype=float), "not M x"),
        (sp.linalg.aslinearoperator(np.eye(9)), "the shape must be"),
    ):
        with pytest.raises(CheckFailed, match=message.replace("(", r"\(").replace(")", r"\)")):
            check.check_preconditioner(A, wrong)
    for coverage in (-0.1, 1.1, math.nan, math.inf):
        M = preconditioners.tridiagonal(A)
        M.coverage = coverage
        with pytest.raises(CheckFailed, match="the coverage is"):
            check.check_preconditioner(A, M)
    M = preconditioners.jacobi(-A)
    M.definite = True
    with pytest.raises(CheckFailed, match="it is called definite"):
        check.check_preconditioner(A, M)
    for name, value in (("coverage", "0.5"), ("definite", 1)):
        M = preconditioners.jacobi(A)
        setattr(M, name, value)
        with pytest.raises(TypeError, match=f"^check_preconditioner: {name} must be"):
            check.check_preconditioner(A, M)
    for wrong in (None, 3.0, sp.linalg.aslinearoperator(np.eye(10) * 1j)):
        with pytest.raises(TypeError, match=r"^check_preconditioner: M must be a linear operator"):
            check.check_preconditioner(A, wrong)


# What was refused and is right


@pytest.mark.parametrize("name", ["components", "disconnected", "directed", "rmat", "0x0"])
def test_other_numberings_of_components(name):
    A = ZOO[name]()
    rng = np.random.default_rng(1)
    for ours, scipys, decide in (
        (matchwood.connected_components, "weak", check.is_connected_components),
        (matchwood.strongly_connected_components, "strong", check.is_strongly_connected_components),
    ):
        labels = ours(A).labels
        count, others = csgraph.connected_components(A, connection=scipys)
        assert decide(A, (count, others), numbering="any")
        other = rng.permutation(max(count, 1)) * 7 - 3
        far = rng.choice(2**62, max(count, 1), replace=False)
        for number in (other, far, -far):
            assert decide(A, number[labels].tolist(), numbering="any")
            assert not decide(A, (count + 1, number[labels]), numbering="any")
        if count > 1:
            assert not decide(A, other[labels])
            joined = np.where(labels == 1, 0, labels)
            assert not decide(A, joined, numbering="any")
            split = labels.copy()
            split[np.flatnonzero(labels == np.bincount(labels).argmax())[0]] = count + 5
            assert not decide(A, split, numbering="any")
    with pytest.raises(ValueError, match="numbering must be one of 'exact', 'any'"):
        decide(A, labels, numbering="some")


def test_components_of_other_libraries():
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph([(3, 0), (0, 3), (3, 1), (2, 4)])
    graph = nx.relabel_nodes(graph, {v: v for v in range(5)})
    A = nx.to_scipy_sparse_array(graph, nodelist=range(5))
    check.check_connected_components(A, nx.weakly_connected_components(graph))
    check.check_strongly_connected_components(A, list(nx.strongly_connected_components(graph)))
    for sets, message in [
        ([{0, 1, 3}, {2}], "vertex 4 is in no set"),
        ([{0, 1, 3}, {2, 4}, {4}], "vertex 4 is in two sets"),
        ([{0, 1, 3}, {2, 5}], "5 is no vertex of 0..4"),
        ([{0, 1, 3, 4}, {2}], "joins labels"),
    ]:
        with pytest.raises(CheckFailed, match=message):
            check.check_connected_components(A, sets)
    import igraph

    other = igraph.Graph(5, [(3, 0), (0, 3), (3, 1), (2, 4)], directed=True)
    for mode, decide in (
        ("weak", check.check_connected_components),
        ("strong", check.check_strongly_connected_components),
    ):
        decide(A, other.connected_components(mode=mode), numbering="any")


def test_a_condensation_in_another_order():
    graph, labels = matchwood.condensation(CYCLE_AND_TAIL)
    perm = np.array([2, 0, 1])
    number = np.argsort(perm)
    other = sp.csr_array(graph.toarray()[perm][:, perm])
    assert check.is_condensation(CYCLE_AND_TAIL, (other, number[labels]), numbering="any")
    assert not check.is_condensation(CYCLE_AND_TAIL, (other, number[labels]))
    assert not check.is_condensation(CYCLE_AND_TAIL, (graph, number[labels]), numbering="any")


def test_members_of_a_set_in_other_forms():
    A = star(5)
    for members in (
        [0, 1, 1, 1, 1], np.array([0, 1, 1, 1, 1], np.uint8), {1, 2, 3, 4},
        frozenset(range(1, 5)), np.array([0, 1, 1, 1, 1], bool), {np.int64(0)},
    ):  # fmt: skip
        assert check.is_maximal_independent_set(A, members)
    assert not check.is_maximal_independent_set(A, {1, 2, 3})
    assert not check.is_maximal_independent_set(A, {1, 2, 3, 9})
    assert not check.is_maximal_independent_set(A, {0, 1})
    assert not check.is_maximal_independent_set(A, {1, 2, 3, 4}, method="lexicographic")
    with pytest.raises(TypeError, match=r"members must hold vertices, got 1\.0"):
        check.is_maximal_independent_set(A, {1.0, 2})


@pytest.mark.parametrize("name", ["equal weights", "few weights", "complete", "disconnected"])
def test_forests_of_other_libraries(name):
    A = ZOO[name]()
    theirs = csgraph.minimum_spanning_tree(A)
    assert check.is_spanning_forest(A, theirs, ties="any")
    assert check.is_spanning_forest(A, theirs + theirs.T, ties="any")
    ours = matchwood.minimum_spanning_forest(A)
    assert check.is_spanning_forest(A, ours.tocsr())
    assert check.is_spanning_forest(A, [tuple(edge) for edge in ours.edges.tolist()])
    lopsided = sp.csr_array(theirs + 2 * theirs.T)
    with pytest.raises(CheckFailed, match="of the matrix differ"):
        check.check_spanning_forest(A, lopsided, ties="any")
    with pytest.raises(CheckFailed, match="the matrix must have shape"):
        check.check_spanning_forest(A, sp.csr_array((2, 2)))
    if ours.edges.shape[0] > 1:
        assert not check.is_spanning_forest(A, ours.edges[1:], ties="any")
    heaviest = matchwood.minimum_spanning_forest(A, maximum=True)
    if heaviest.total != ours.total:
        assert not check.is_spanning_forest(A, heaviest, ties="any")
    with pytest.raises(ValueError, match="ties must be one of 'index', 'any'"):
        check.check_spanning_forest(A, theirs, ties="hash")


# Blocks


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("name", ["star", "grid", "components", "first and last isolated", "rmat"])
def test_blocks_are_the_whole(name, size):
    view = csr.as_graph(ZOO[name](), "test").directed_pattern()
    parts = list(answers.arcs(view, size))
    assert all(0 < u.size <= size and u.size == v.size for _, u, v in parts)
    assert [begin for begin, _, _ in parts] == np.cumsum([0] + [u.size for _, u, _ in parts])[
        :-1
    ].tolist()
    assert np.concatenate([v for _, _, v in parts]).tolist() == view.indices.tolist()
    rows = np.repeat(np.arange(view.n), np.diff(view.indptr))
    assert np.concatenate([u for _, u, _ in parts]).tolist() == rows.tolist()


def test_answers_are_checked_across_blocks(monkeypatch):
    monkeypatch.setattr(answers, "BLOCK", 5)
    A = grid(4, 5)
    found = matchwood.bfs(A, 3)
    check.check_bfs(A, 3, found)
    check.check_condensation(A, matchwood.condensation(A))
    check.check_rcm_order(A, matchwood.rcm_ordering(A))
    forest = matchwood.minimum_spanning_forest(A)
    check.check_spanning_forest(A, forest)
    perm = np.random.default_rng(2).permutation(20)
    B = matchwood.permute(A, perm)
    check.check_permuted(A, perm, B)
    B.data[-1] += 1
    with pytest.raises(CheckFailed, match="but must be"):
        check.check_permuted(A, perm, B)
    for v in range(20):
        for field in ("level", "parent"):
            wrong = getattr(found, field).copy()
            wrong[v] += 1
            assert not check.is_bfs(A, 3, dataclasses.replace(found, **{field: wrong}))


# Ctrl-C

LIMIT = 0.1  # seconds


def _interrupted(call, delay):
    """Seconds from Ctrl-C to its exception; None where the call had ended by then."""
    sent = []

    def send():
        time.sleep(delay)
        sent.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        try:
            sender.start()
            call()
        finally:
            ended = time.perf_counter()
            sender.join()
            time.sleep(0.001)
    except KeyboardInterrupt:
        return ended - sent[0] if ended > sent[0] else None
    return None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no Ctrl-C for a thread here")
def test_ctrl_c_stops_every_check():
    G = matchwood.graph(matchwood.generators.grid((2000, 2000)))
    found = {
        "bfs": (lambda x: check.check_bfs(G, 0, x), matchwood.bfs(G, 0)),
        "connected": (
            lambda x: check.check_connected_components(G, x),
            matchwood.connected_components(G),
        ),
        "strong": (
            lambda x: check.check_strongly_connected_components(G, x),
            matchwood.strongly_connected_components(G),
        ),
        "independent": (
            lambda x: check.check_maximal_independent_set(G, x, method="luby"),
            matchwood.maximal_independent_set(G),
        ),
        "spanning": (
            lambda x: check.check_spanning_forest(G, x),
            matchwood.minimum_spanning_forest(G),
        ),
    }
    for call, answer in found.values():
        begin = time.perf_counter()
        call(answer)
        whole = time.perf_counter() - begin
        for share in (0.2, 0.5, 0.8):
            in_time(lambda c=call, a=answer, s=share * whole: _interrupted(lambda: c(a), s), LIMIT)


# On the GPU


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["components", "directed", "rmat", "grid", "0x0", "star"])
def test_checks_run_where_the_answer_lives(name):
    cupy = pytest.importorskip("cupy")
    A = ZOO[name]()
    G = matchwood.graph(A).on("gpu")
    parts = matchwood.connected_components(G)
    assert isinstance(parts.labels, cupy.ndarray)
    strong, cond = matchwood.strongly_connected_components(G), matchwood.condensation(G)
    members, forest = matchwood.maximal_independent_set(G), matchwood.minimum_spanning_forest(G)
    perm = matchwood.reverse_cuthill_mckee(G)
    sources = [0] if G.n else []
    tree = matchwood.bfs(G, sources)
    for numbering in ("exact", "any"):
        check.check_connected_components(G, parts, numbering=numbering)
        check.check_strongly_connected_components(G, strong, numbering=numbering)
        check.check_condensation(G, cond, numbering=numbering)
        check.check_connected_components(G, parts.labels.get(), numbering=numbering)
        check.check_connected_components(A, parts, numbering=numbering)
    for method in ("luby", None):
        check.check_maximal_independent_set(G, members, method=method)
    check.check_bfs(G, sources, tree)
    check.check_bfs(A, sources, tree)
    check.check_spanning_forest(G, forest)
    check.check_spanning_forest(G, forest.tocsr())
    check.check_rcm_order(G, perm)
    check.check_measures(G, matchwood.order_measures(G, perm), perm)
    check.check_permuted(G, perm, matchwood.permute(G, perm))
    if G.n < 2:
        return
    for v in (0, G.n // 2, G.n - 1):
        assert not check.is_bfs(G, sources, (_with(tree.level, v), tree.parent))
        assert not check.is_bfs(G, sources, (tree.level, _with(tree.parent, v)))
        assert not check.is_connected_components(G, _with(parts.labels, v, G.n))
        alone = int((parts.labels == parts.labels[v]).sum()) == 1
        apart = _with(parts.labels, v, G.n + 9)
        assert check.is_connected_components(G, apart, numbering="any") == alone
        assert not check.is_strongly_connected_components(G, _with(strong.labels, v, -1))
        assert not check.is_maximal_independent_set(G, members ^ (cupy.arange(G.n) == v))
        wrong = dataclasses.replace(cond, levels=_with(cond.levels, min(v, cond.count - 1)))
        assert not check.is_condensation(G, wrong)


def _with(array, at, value=None):
    other = array.copy()
    other[at] = int(other[at]) + 1 if value is None else value
    return other
