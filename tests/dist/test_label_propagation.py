"""Label propagation on a grid of ranks: the labels of one machine, on every grid."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from dist.bodies import refused
from graphs import ZOO, grid, random_graph, rmat
from matchwood import dist
from matchwood.check import check_label_propagation
from matchwood.communities import is_label_propagation, subrounds
from matchwood.communities.propagation import cpu as one_machine
from matchwood.communities.propagation import ranks as spread_engine
from matchwood.communities.propagation.ranks import gpu as sorted_lists
from matchwood.errors import CheckFailed
from spread_graphs import FEW_GRIDS, GRIDS, USUAL_GRIDS, alike, slab
from strategies import graphs
from support import some

EVERYWHERE = ("0x0", "self loops", "rmat, directed", "first and last isolated")


@pytest.fixture(autouse=True)
def _few_subrounds(monkeypatch):
    """Small graphs have up to 256 sub-rounds, of some exchanges each; here they have 6."""
    monkeypatch.setattr(subrounds, "MOST_SUBROUNDS", 6)


@pytest.fixture
def careful(monkeypatch):
    """Rounds in which no two neighbours move begin with the third, not with the 21st."""
    for module in (one_machine, spread_engine):
        monkeypatch.setattr(module, "SPLIT_ROUNDS", 2)


@pytest.fixture
def tracked(monkeypatch):
    """Who is active is told in small graphs too."""
    monkeypatch.setattr(spread_engine, "tracks", lambda n: True)


def spread(comm, A, shape, **options):
    return matchwood.distribute(
        slab(A, comm.rank, comm.size), comm=comm, grid=f"{shape[0]}x{shape[1]}", **options
    )


def labelled(comm, A, shape, cases, options):
    """The answers of several calls on one graph, gathered; each is checked where it is."""
    G = spread(comm, A, shape, **options)
    found = []
    for case in cases:
        answer = matchwood.label_propagation(G, **case)
        settled = not case.get("tol") and "max_rounds" not in case
        check_label_propagation(G, answer, settled=settled)
        found.append(dataclasses.replace(answer, labels=answer.labels.gather(None)))
    return found


def compared(A, shapes, cases=({},), **options):
    expected = [matchwood.label_propagation(A, **case) for case in cases]
    for shape in shapes:
        for answers in dist.run(labelled, shape[0] * shape[1], A, shape, cases, options):
            for found, right in zip(answers, expected, strict=True):
                assert np.array_equal(found.labels, right.labels), shape
                assert found.labels.dtype == right.labels.dtype
                assert (found.count, found.rounds) == (right.count, right.rounds), shape
                assert found.modularity == right.modularity


@pytest.mark.parametrize(("turn", "name"), some(enumerate(ZOO)))
def test_labels_are_those_of_one_machine(turn, name):
    A = abs(ZOO[name]())
    compared(A, FEW_GRIDS if name in EVERYWHERE else (((2, 3), (1, 2), (3, 1))[turn % 3],))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERYWHERE)
def test_labels_on_more_grids(name):
    compared(abs(ZOO[name]()), [shape for shape in USUAL_GRIDS if shape not in FEW_GRIDS])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["few weights", "rmat, directed", "shuffled grid"])
def test_where_active_vertices_are_told(name, tracked):
    compared(abs(ZOO[name]()), ((1, 1), (3, 2), (4, 4)), [{}, {"rng": 7}])


@pytest.mark.slow
def test_careful_rounds(careful, tracked):
    for A in (abs(ZOO["few weights"]()), ZOO["shuffled path"](), abs(ZOO["rmat"]())):
        compared(A, ((1, 1), (2, 3), (3, 1)))


def test_careful_rounds_where_all_look(careful):
    compared(grid(9, 9), ((2, 2), (1, 3)))
    compared(ZOO["shuffled path"](), ((2, 3),))


@pytest.mark.slow
def test_arguments_mean_the_same():
    A = abs(ZOO["equal weights"]())
    cases = [
        {"rng": 3}, {"rng": None}, {"tol": 0.1}, {"tol": 1.0},
        {"max_rounds": 0}, {"max_rounds": 1}, {"max_rounds": 3, "rng": 2**64 - 1},
    ]  # fmt: skip
    compared(A, ((2, 3),), cases)


@pytest.mark.slow
def test_other_orders_and_layouts(tracked):
    for A in (abs(ZOO["rmat, directed"]()), ZOO["few weights"]()):
        for options in ({"order": "hashed"}, {"layout": "ranges"}):
            compared(A, ((2, 3), (4, 4)), **options)


@pytest.mark.slow
def test_sorted_lists_decide_alike(monkeypatch, careful, tracked):
    """What ranks with a GPU do, by sorts, here on NumPy arrays."""
    monkeypatch.setattr(spread_engine, "engine_of", lambda G: sorted_lists)
    for A in (abs(ZOO["few weights"]()), abs(ZOO["rmat, directed"]()), ZOO["one edge"]()):
        compared(A, ((1, 1), (2, 3)), [{}, {"rng": 5}])


def test_as_many_subrounds_as_one_machine_has(monkeypatch):
    monkeypatch.undo()
    compared(grid(5, 6), ((2, 2),))


@pytest.mark.slow
def test_large_graphs():
    compared(rmat(14, 4), ((2, 2),))  # weighted
    A = random_graph(1 << 14, 1 << 15)
    A.data[:] = 1
    compared(A, ((1, 3),))


@pytest.mark.slow
def test_weights_of_very_different_sizes():
    A = random_graph(60, 150)
    for scale in (1e-300, 1e290, 1.0):
        B = sp.csr_array(A * scale)
        B.data[::7] *= 1e-12
        compared(sp.csr_array(B + B.T), ((2, 2), (1, 3)))


@pytest.mark.slow
@settings(max_examples=25)
@given(graphs(weights="few"), st.sampled_from(GRIDS), st.booleans(), st.integers(0, 3))
def test_random_graphs(A, shape, careful, rng):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subrounds, "MOST_SUBROUNDS", 4)
        if careful:
            for module in (one_machine, spread_engine):
                patch.setattr(module, "SPLIT_ROUNDS", 1)
            patch.setattr(spread_engine, "tracks", lambda n: True)
        compared(A, (shape,), [{"rng": rng}])


def test_bad_arguments_are_refused_on_all_ranks():
    A = grid(5, 5)
    B = A.copy()
    B.data[5] = -1.0

    def call(comm):
        G, H = spread(comm, A, (2, 2)), spread(comm, B, (2, 2))
        one = comm.rank == 1
        label = matchwood.label_propagation
        return [
            refused(comm, lambda: label(G, rng=int(one))),
            refused(comm, lambda: label(G, tol=0.5 if one else 0)),
            refused(comm, lambda: label(G, max_rounds=5 + one)),
            refused(comm, lambda: label(H)),
        ]

    errors = alike(call, 4)
    assert {kind for kind, _ in errors} == {"ValueError"}
    with pytest.raises(ValueError) as caught:
        matchwood.label_propagation(B)
    assert errors[-1][1] == str(caught.value)


def broken(G, found):
    """Answers that are wrong, each on one rank or in one number."""
    last = G.comm.rank == G.comm.size - 1
    one = partial(dataclasses.replace, found)

    def labels(change):
        local = found.labels.local.copy()
        if last and local.size:
            change(local)
        return one(labels=G.vector(local))

    def put(value):
        def change(local):
            local[0] = value

        return change

    yield labels(put(-1))
    yield labels(put(G.n))
    yield labels(put(2**31 - 1))
    yield labels(put(found.count))  # a new label, out of order
    yield labels(put((int(found.labels.local[0]) + 1) % found.count))
    yield one(labels=G.vector(found.count - 1 - found.labels.local))  # the order turned round
    yield one(labels=G.vector(found.labels.local + 1))
    yield one(labels=G.vector(found.labels.local * 0), count=1)
    yield one(labels=G.vector(G.ids.copy()), count=G.n)
    yield one(count=found.count + last)
    yield one(modularity=found.modularity + 1e-6 * last)
    yield one(modularity=float("nan")) if last else found
    yield one(rounds=-1) if last else found
    yield one(levels=0) if last else found


@pytest.mark.slow
def test_every_way_of_breaking_an_answer_is_refused_on_all_ranks():
    A = abs(ZOO["few weights"]())

    def call(comm):
        G = spread(comm, A, (2, 3))
        found = matchwood.label_propagation(G)
        assert found.count > 2
        assert is_label_propagation(G, found)
        assert is_label_propagation(G, found, numbering="any")
        told = []
        for bad in broken(G, found):
            told.append(refused(comm, lambda bad=bad: check_label_propagation(G, bad)))
        wide = found.labels.local.astype(np.int64)
        for turned in (found.count - 1 - wide, 10**12 * wide - 5):
            vector = G.vector(turned)
            check_label_propagation(G, (found.count, vector), numbering="any")
            told.append(refused(comm, lambda vector=vector: check_label_propagation(G, vector)))
        loose = wide * 10**9
        if comm.rank == 2:
            loose[-1] += 1
        told.append(
            refused(comm, lambda: check_label_propagation(G, G.vector(loose), numbering="any"))
        )
        return told

    told = alike(call, 6)
    assert {kind for kind, _ in told} == {"CheckFailed"}
    assert all(text.startswith("label propagation: ") for _, text in told)


def test_unsettled_labels_are_named_as_on_one_machine():
    A = matchwood.generators.path(4)

    def call(comm, labels):
        G = spread(comm, A, (2, 1))
        vector = G.vector(np.array(labels)[G.ids])
        check_label_propagation(G, vector, settled=False)
        return refused(comm, lambda: check_label_propagation(G, vector))

    with pytest.raises(CheckFailed) as caught:
        check_label_propagation(A, [0, 1, 1, 1])
    assert set(dist.run(call, 2, [0, 1, 1, 1])) == {("CheckFailed", str(caught.value))}


def test_answers_of_another_kind_are_no_answers():
    A = grid(4, 4)

    def call(comm):
        G = spread(comm, A, (2, 2))
        found = matchwood.label_propagation(G)
        own = found.labels.local
        wrong = [
            G.vector(own * 1.0), G.vector(own.astype(str)), "labels", found.labels.gather(None),
            dataclasses.replace(found, count=1.0), dataclasses.replace(found, rounds="7"),
        ]  # fmt: skip
        return [refused(comm, lambda bad=bad: check_label_propagation(G, bad)) for bad in wrong]

    told = alike(call, 4)
    assert {kind for kind, _ in told} == {"TypeError"}
