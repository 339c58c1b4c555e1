"""Components on a grid of ranks: one machine's labels, few words, few rounds, and their check."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import matchwood
from dist.fake_cupy import play
from dist.test_algorithms_gpu import compare as on_gpus
from graphs import ZOO, grid, path, shuffled
from matchwood import dist
from matchwood.check import check_connected_components, is_connected_components
from matchwood.components.connected.ranks import METHODS
from matchwood.components.connected.ranks import gpu as gpu_ranks
from matchwood.components.connected.ranks.cpu import giant
from matchwood.components.connected.ranks.cpu.giant import largest_tree
from matchwood.errors import CheckFailed
from matchwood.primitives.number.ranks import number_labels
from spread_graphs import CREW, GRIDS, SHAPES, alike, assert_refused, slab, tried, zoo_on
from strategies import graphs
from support import REST

COLOURS = [method for method in METHODS if method != "auto"]
SLOW = ("long path", "shuffled path", "thin grid")  # colours need a round for each step


def spread(comm, A, shape, **options):
    return matchwood.distribute(
        slab(A, comm.rank, comm.size), comm=comm, grid=f"{shape[0]}x{shape[1]}", **options
    )


def by_messages(comm):
    """As between hosts: no memory that all ranks have."""
    comm.shared_array = lambda nbytes: None


def labelled(comm, matrices, shape, methods, options, kind="own", shared=True):
    """For each graph the labels of several methods, gathered."""
    found = []
    if not shared:
        by_messages(comm)
    for A in matrices:
        G = spread(comm, A, shape, **options)
        G.exchange = G.exchange.with_kind(kind)
        answers = [matchwood.connected_components(G, method=method) for method in methods]
        # from the second call on, rows of the largest component are left out
        answers.append(matchwood.connected_components(G, method=methods[0]))
        found.append([(a.count, a.labels.gather(None), a.rounds) for a in answers])
    return found


def compared(matrices, shapes, methods, kind="own", **options):
    expected = [matchwood.connected_components(A) for A in matrices]
    rounds = set()
    ways = (True, False) if "auto" in methods else (True,)
    for shape, shared in itertools.product(shapes, ways):
        ranks = shape[0] * shape[1]
        for found in dist.run(labelled, ranks, matrices, shape, methods, options, kind, shared):
            for answers, right in zip(found, expected, strict=True):
                for count, labels, turns in answers:
                    assert count == right.count, shape
                    assert np.array_equal(labels, right.labels), shape
                    assert labels.dtype == right.labels.dtype
                    rounds.add(turns)
    return rounds


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_labels_are_those_of_one_machine(shape):
    compared(zoo_on(shape), (shape,), ["auto"])


@pytest.mark.slow
def test_all_graphs_on_all_grids():
    compared([make() for make in ZOO.values()], GRIDS, ["auto"])


@pytest.mark.slow
def test_labels_of_hashed_vertices():
    for shape in ((1, 1), (2, 3), (4, 4)):
        compared(zoo_on(shape), (shape,), ["auto"], order="hashed")


@pytest.mark.slow  # compiles every kernel once more
def test_wide_indices():
    """The labels have the type of the graph's indices, as on one machine."""

    def body(comm, A):
        G = spread(comm, A, (2, 2), index_dtype=np.int64)
        found = [matchwood.connected_components(G, method=method) for method in METHODS]
        assert all(each.labels.dtype == np.int64 for each in found)
        return [each.labels.gather(None) for each in found]

    for name in ("disconnected", "rmat, directed"):
        A = ZOO[name]()
        right = matchwood.connected_components(A).labels
        for found in dist.run(body, 4, A):
            assert all(np.array_equal(labels, right) for labels in found)


@pytest.mark.slow
def test_colours_on_all_grids_orders_and_layouts():
    matrices = [make() for name, make in ZOO.items() if name not in SLOW]
    compared(matrices, ((3, 2),), COLOURS)
    few = [ZOO[name]() for name in ("disconnected", "rmat, directed", "0x0", "one edge")]
    compared(few, GRIDS, COLOURS)
    compared(few, ((2, 3),), COLOURS, kind="thesis")
    compared(few, ((4, 4),), COLOURS, order="hashed")
    compared(few, ((2, 3), (4, 4)), COLOURS, layout="ranges")
    compared(few, ((3, 2),), COLOURS, layout="ranges", kind="thesis")


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
def test_right_answers_pass_their_check(rest):
    matrices = [make() for name, make in ZOO.items() if name not in SLOW]

    def body(comm, order):
        for A in matrices[(order == "hashed") != rest :: 2]:
            G = spread(comm, A, (2, 2), order=order)
            answer = matchwood.connected_components(G)
            check_connected_components(G, answer)
            check_connected_components(G, answer.labels, numbering="any")

    for order in ("given", "hashed"):
        dist.run(body, 4, order)


@pytest.mark.slow
@given(graphs(max_n=40))
@settings(max_examples=25)
def test_random_graphs(A: sp.csr_array) -> None:
    compared([A], ((2, 2), (1, 5), (3, 2)), ["auto", "colour"])


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("together", [0, None])
def test_ranks_with_several_threads(monkeypatch, together, shared):
    """Also where members share what is small.  The second call leaves out the largest component."""
    if together is not None:
        monkeypatch.setattr(CREW, "TOGETHER", together)
    A = shuffled(sp.csr_array(matchwood.graph(matchwood.generators.rmat(12)).sparse()), isolated=9)
    B = shuffled(sp.block_diag([grid(7, 90), path(300), A], "csr"), isolated=50)
    for graph in (A, B):
        expected = matchwood.connected_components(graph)

        def body(comm, graph=graph):
            if not shared:
                by_messages(comm)
            G = spread(comm, graph, (2, 2))
            answers = [matchwood.connected_components(G, threads=3) for _ in range(4)]
            return [(found.count, found.labels.gather(None)) for found in answers]

        for answers in dist.run(body, 4, threads=3):
            for count, labels in answers:
                assert count == expected.count
                assert np.array_equal(labels, expected.labels)


def connected_members(comm, A, threads):
    """What a sample finds is in one component, and how much it is, call after call."""
    G = spread(comm, A, (2, 2))
    ids = G.ids
    found = []
    for _ in range(4):
        bits = np.unpackbits(giant.members(G, threads).own.view(np.uint8), bitorder="little")
        found.append(ids[np.flatnonzero(bits[: ids.size])])
    return found


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_sample_by_a_team_is_connected(threads):
    """Members may lose a join to each other; then fewer vertices are known, never wrong ones."""
    R = sp.csr_array(matchwood.graph(matchwood.generators.rmat(13)).sparse())
    A = shuffled(sp.block_diag([R, R, grid(40, 40)], "csr"))
    labels = matchwood.connected_components(A).labels
    alone = dist.run(connected_members, 4, A, 1)
    most = sum(each[0].size for each in alone)
    for k, ranks in enumerate(zip(*dist.run(connected_members, 4, A, threads), strict=True)):
        known = np.concatenate(ranks)
        assert np.unique(labels[known]).size == 1, k
        assert known.size > 0.9 * most


def numbered(comm, labels, n):
    """The numbers of labels that are the smallest vertices of their sets."""
    G = spread(comm, sp.csr_array((n, n)), (1, comm.size))
    count, numbers = number_labels(G, labels[G.ids], smallest=True)
    return count, G.vector(numbers).gather(None)


@pytest.mark.parametrize(("ranks", "threads"), [(1, 3), (2, 1), (3, 3), (5, 2)])
def test_numbers_of_smallest_vertices(ranks, threads):
    """Many sets, few, and one that has nearly all; some begin at vertices that no sample sees."""
    rng = np.random.default_rng(5)
    for n, sets in ((1, 1), (7, 7), (3000, 2), (3000, 40), (3000, 2900), (40_000, 30_000)):
        chosen = rng.integers(0, sets, n)
        for common in (0.0, 0.95):
            sides = np.where(rng.random(n) < common, 0, chosen)
            _, first, back = np.unique(sides, return_index=True, return_inverse=True)
            labels = first[back.reshape(-1)]
            count, right = np.unique(labels, return_inverse=True)
            for found in dist.run(numbered, ranks, labels, n, threads=threads):
                assert found[0] == count.size
                assert np.array_equal(found[1], right.reshape(-1))


# The largest component


def places(bits, owned):
    """The places whose bits are set."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), count=owned, bitorder="little"))


def known_and_read(comm, A, shape):
    """Entries of the block, and how many of them are read where the pattern is symmetric."""
    G = spread(comm, A, shape)
    grid = G.grid
    lengths = np.diff(G.entries().indptr)
    members = giant.members(G, 1)
    whole = np.zeros(G.n, bool)
    whole[places(members.own, grid.owned) * grid.p + grid.rank] = True
    whole = comm.allreduce(whole, "or")
    for c, bits in enumerate(members.rows):  # all ranks know the same
        of_rank = G.original_local[c : grid.n_rows : grid.C]
        assert np.array_equal(places(bits, of_rank.size), np.flatnonzero(whole[of_rank]))
    labels = matchwood.connected_components(A).labels
    assert np.unique(labels[whole]).size == (1 if whole.any() else 0)
    rest = giant.rest(G, members, 1)
    if rest is not None:
        assert not (members.own & ~rest.own).any()
        assert rest.head <= (int(whole.argmax()) if whole.any() else G.n)
        own = labels[G.ids[places(rest.own, grid.owned)]]
        assert (own == labels[whole][0]).all() if own.size else True
        highs, lows = rest.pairs
        assert (lows < highs).all()
        assert np.array_equal(labels[highs], labels[lows])
    sampled = lengths[(grid.c + 1) % grid.C : grid.n_rows : grid.C]
    read = np.minimum(sampled, 2).sum() + lengths[~whole[G.original_local]].sum()
    return int(lengths.sum()), int(read), rest is not None


def test_most_entries_are_not_read():
    """Of R-MAT a rank of 16 reads a fifth of its block, or less, and no trees are reported."""
    A = sp.csr_array(matchwood.graph(matchwood.generators.rmat(14)).sparse())
    for block, read, few in dist.run(known_and_read, 16, A, (4, 4)):
        assert read < block / 5, (read, block)
        assert few


def sampled_turns(comm, A, shape):
    """Turns that were needed, own vertices that are known, and all own vertices.

    A second call, with all turns at once, finds the same; one on more threads nearly the same.
    """
    G = spread(comm, A, shape)
    first, second = giant.members(G, 1), giant.members(G, 1)
    turns = G.keep("turns of a sample", list)[0]
    marks, size, _ = largest_tree(G.entries(), G.grid, (G.grid.c + 1) % G.grid.C, 64, 1)
    again, other, _ = largest_tree(G.entries(), G.grid, (G.grid.c + 1) % G.grid.C, 64, 1, turns)
    assert size == other
    assert np.array_equal(marks, again)
    assert np.array_equal(first.own, second.own)
    known = np.unpackbits(first.own.view(np.uint8)).sum()
    assert np.unpackbits(giant.members(G, 3).own.view(np.uint8)).sum() >= 0.9 * known
    return turns, int(known), G.grid.owned


def test_more_entries_are_sampled_where_no_vertex_has_many():
    """Of a random graph two entries of a row leave small trees; then hardly a vertex is known."""
    A = sp.csr_array(matchwood.graph(matchwood.generators.erdos_renyi(1 << 14, 1 << 18)).sparse())
    for turns, known, owned in dist.run(sampled_turns, 16, A, (4, 4)):
        assert turns == 2
        assert known > 0.9 * owned
    A = sp.csr_array(matchwood.graph(matchwood.generators.rmat(14)).sparse())
    for turns, known, _ in dist.run(sampled_turns, 16, A, (4, 4)):
        assert turns == 1
        assert known > 0
    for shape in ((2, 2), (3, 1), (1, 3)):  # rows without more entries
        for turns, _, _ in dist.run(sampled_turns, shape[0] * shape[1], path(3000), shape):
            assert turns == 1


def test_what_is_known_of_the_largest_component():
    for make in (ZOO["components"], ZOO["disconnected"], ZOO["no edges"], ZOO["0x0"], ZOO["star"]):
        for shape in ((1, 2), (2, 2), (3, 2), (1, 5)):
            dist.run(known_and_read, shape[0] * shape[1], make(), shape)


# Words and rounds, counted


def measured(comm, A, method, kind="own", symmetric=False):
    by_messages(comm)
    G = spread(comm, A, (4, 4))
    G.exchange = G.exchange.with_kind(kind)
    assert not symmetric or G.has_symmetric_pattern
    before = comm.traffic.bytes_received
    found = matchwood.connected_components(G, method=method)
    return found.rounds, (comm.traffic.bytes_received - before) / 4


def counts(A, method="auto", kind="own", symmetric=False):
    """Rounds, and words that a rank receives over n / sqrt(p), on 4x4 ranks."""
    found = dist.run(measured, 16, A, method, kind, symmetric)
    return found[0][0], max(words for _, words in found) / (A.shape[0] / 4)


@pytest.mark.slow
def test_words_and_rounds():
    """The thesis' exchange needs 10.0 words at first and 5.6 at best."""
    A = sp.csr_array(matchwood.graph(matchwood.generators.rmat(18)).sparse())
    rounds, words = counts(A)
    assert rounds <= 3
    assert words <= 0.25
    rounds, words = counts(A, symmetric=True)
    assert rounds <= 3
    assert words <= 0.35
    rounds, words = counts(grid(256, 256))
    assert rounds <= 10
    assert words <= 1.0
    rounds, words = counts(grid(256, 256), symmetric=True)
    assert rounds <= 10
    assert words <= 1.2
    rounds, _ = counts(path(1 << 16))
    assert rounds <= 20


@pytest.mark.slow
def test_each_switch_of_the_thesis_saves_words():
    """Its exchange, and ours: a fold and an expand instead of an allreduce and broadcasts."""
    A = sp.csr_array(matchwood.graph(matchwood.generators.rmat(14)).sparse())
    words = {method: counts(A, method, "thesis")[1] for method in COLOURS}
    assert words["colour/base"] > words["colour/+SP+SW"] >= words["colour/+SP+SW+VQ"] * 0.99
    for method in COLOURS:
        assert counts(A, method)[1] < words[method]
    assert counts(A)[1] < 0.1 * min(words.values())


@pytest.mark.slow
def test_a_colour_takes_a_round_for_each_step():
    assert compared([path(40)], ((2, 2),), COLOURS) == {40}
    assert compared([grid(8, 8)], ((2, 3),), COLOURS) == {15}


# What is refused


def test_wrong_arguments_are_refused_on_all_ranks():
    A = path(10)

    def body(comm):
        G = spread(comm, A, (2, 2))
        call = matchwood.connected_components
        return [
            tried(lambda: call(G, method="afforest")),
            tried(lambda: call(G, method="colour" if comm.rank else "auto")),
            tried(lambda: call(G, engine="reference")),
            tried(lambda: call(G, threads=0)),
            tried(lambda: matchwood.condensation(G)),
        ]

    found = alike(body, 4)
    assert found[0].startswith("ValueError: connected_components: method must be one of")
    assert "'colour'" in found[0]
    assert "method must be the same on all ranks" in found[1]
    assert found[2].startswith("EngineUnavailable: connected_components: engine must be None")
    assert found[3].startswith("ValueError: connected_components: threads must be")
    assert found[4].startswith("EngineUnavailable: condensation")


def broken(comm, A, shape, order):
    """What the check says of answers with one wrong number, on one rank."""
    G = spread(comm, A, shape, order=order)
    right = matchwood.connected_components(G)
    whole = right.labels.gather(None)
    said = []
    for v in range(G.n):
        for wrong in {-1, 0, int(whole[v]), int(whole[v]) + 1, G.n, 1 << 40}:
            local = right.labels.local.astype(np.int64)
            local[G.ids == v] = wrong
            answer = dataclasses.replace(right, labels=G.vector(local))
            said.append(tried(lambda answer=answer: check_connected_components(G, answer)))
            assert (said[-1] is None) == (wrong == whole[v]), (v, wrong)
    assert is_connected_components(G, right)
    assert not is_connected_components(G, G.vector(np.full_like(local, G.n)))
    for rank in range(comm.size):
        count = right.count + (comm.rank == rank)
        said.append(tried(lambda count=count: check_connected_components(G, (count, right.labels))))
        assert said[-1] is not None
    merged = np.where(right.labels.local == whole.max(), 0, right.labels.local)
    said.append(tried(lambda: check_connected_components(G, G.vector(merged), numbering="any")))
    assert said[-1] is None or "no path joins" in said[-1]
    return said


@pytest.mark.slow
def test_the_check_finds_every_change_on_all_ranks():
    A = ZOO["first and last isolated"]()
    for k, shape in enumerate(((1, 1), (2, 2), (1, 3), (3, 2))):
        found = alike(broken, shape[0] * shape[1], A, shape, ("given", "hashed")[k % 2])
        assert "no path joins" in found[-1]


def test_what_is_no_answer():
    A = path(10)

    def body(comm):
        G, other = spread(comm, A, (2, 2)), spread(comm, A, (1, 4))
        right = matchwood.connected_components(G).labels
        floats = G.vector(right.local.astype(float)) if comm.rank == 3 else right
        check = check_connected_components
        return [
            tried(lambda: check(G, right.local)),
            tried(lambda: check(G, floats)),
            tried(lambda: check(G, matchwood.connected_components(other))),
            tried(lambda: check(G, (1, right, right))),
            tried(lambda: check(G, (1.0, right))),
            tried(lambda: check(G, right, numbering="some")),
            tried(lambda: check(G, right)),  # the communicator goes on
        ]

    found = alike(body, 4)
    texts = [
        "TypeError: check_connected_components: labels must be a DistributedVector, got ndarray",
        "TypeError: check_connected_components: labels must hold integers, got dtype float64",
        "CheckFailed: components: labels must be spread over 2x2 ranks",
        "TypeError: check_connected_components: answer must be Components",
        "TypeError: check_connected_components: count must be an integer, got float",
        "ValueError: check_connected_components: numbering must be one of",
    ]
    assert_refused(found, texts)


def test_a_wrong_answer_is_a_check_that_failed():
    def body(comm):
        G = spread(comm, path(6), (2, 1))
        with pytest.raises(CheckFailed, match=r"components: edge \(2, 3\) joins labels 0 and 1"):
            check_connected_components(G, G.vector((G.ids > 2).astype(np.int32)))

    dist.run(body, 2)


@pytest.mark.slow
def test_ranks_with_gpus(monkeypatch):
    """Kernels run on the host: fake_cupy.py.  Few pairs go through the host, or all by the GPU."""
    play(monkeypatch)
    for turn, name in enumerate(("few weights", "path", "self loops", "int64 indices", "one edge")):
        monkeypatch.setattr(gpu_ranks, "FEW_PAIRS", (0, 1 << 14)[turn % 2])
        order, sides = ("given", "hashed")[turn // 2 % 2], [(2, 2), (2, 3), (3, 1)][turn % 3]
        dist.run(on_gpus, sides[0] * sides[1], ZOO[name](), order, sides, ("components",))
