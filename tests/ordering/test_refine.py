"""Refinement: the sequence's result at any number of threads, and the thesis's numbers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, grid, path, rmat, shuffled
from matchwood.check import check_refinement
from matchwood.ordering import refine_order
from strategies import graphs
from support import REST, some

KINDS = (
    {"fraction": 1.0},
    {"fraction": 0.3, "sweeps": 3, "metric": "linear_gap"},
    {"fraction": 1.0, "partners": "median", "sweeps": 2},
)


def numbers(found: matchwood.Refinement) -> tuple:
    names = ("before", "after", "proposed", "kept", "sweeps")
    return (*found.perm.tolist(), *(getattr(found, name) for name in names))


SMALL = [name for name in ZOO if ZOO[name]().nnz <= 520]


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("place", "name"), some(enumerate(SMALL)))
def test_equals_the_reference(place: int, name: str, rest: bool) -> None:
    """Each graph has half of the kinds, the next one the others."""
    A = ZOO[name]()
    order = np.random.default_rng(2).permutation(A.shape[0])
    for kind in KINDS[(place + rest) % 2 :: 2]:
        expected = refine_order(A, order, engine="reference", **kind)
        check_refinement(A, expected, order, **kind)
        for threads in (1, 2, 3, 7):
            assert numbers(refine_order(A, order, threads=threads, **kind)) == numbers(expected)


def test_hubs_with_leaves() -> None:
    """Hubs of more than 64 neighbours, most of which have no other: their rows are left out."""
    hubs, leaves = 3, 270
    ends = [(v % hubs, hubs + v) for v in range(leaves)] + [(0, 1), (1, 2)]
    ends += [(0, hubs + v) for v in range(1, leaves, 9)]
    A = (hubs + leaves, ends)
    order = np.random.default_rng(5).permutation(hubs + leaves)
    for metric in ("log_gap", "linear_gap"):
        kind = {"fraction": 0.4, "sweeps": 2, "metric": metric}
        expected = refine_order(A, order, engine="reference", **kind)
        for threads in (1, 3):
            assert numbers(refine_order(A, order, threads=threads, **kind)) == numbers(expected)


@pytest.mark.gpu
def test_the_gpu_gives_the_same(zoo_graph: sp.csr_array) -> None:
    for kind in KINDS:
        expected = refine_order(zoo_graph, **kind)
        assert numbers(refine_order(zoo_graph, engine="gpu", **kind)) == numbers(expected)


@pytest.mark.gpu
def test_the_gpu_gives_the_same_on_larger_graphs() -> None:
    for A in (grid(70, 80), shuffled(grid(70, 80)), shuffled(rmat(10, 6)), path(5000)):
        for kind in KINDS:
            expected = refine_order(A, **kind)
            assert numbers(refine_order(A, engine="gpu", **kind)) == numbers(expected)


@given(graphs(max_n=16, max_m=40))
def test_random_graphs(A: sp.csr_array) -> None:
    for kind in KINDS:
        found = refine_order(A, threads=2, **kind)
        assert numbers(found) == numbers(refine_order(A, engine="reference", **kind))
        assert found.after <= found.before


@pytest.mark.slow
def test_many_threads_follow_the_sequence() -> None:
    """Large enough that windows grow, shrink and are followed by one member."""
    for A in (grid(90, 100), shuffled(grid(90, 100)), shuffled(rmat(11, 4))):
        expected = numbers(refine_order(A, fraction=1.0, threads=1))
        for threads in (2, 3, 7):
            assert numbers(refine_order(A, fraction=1.0, threads=threads)) == expected


def test_until_nothing_gains() -> None:
    A = shuffled(grid(9, 9))
    found = refine_order(A, sweeps=None, fraction=1.0)
    again = refine_order(A, found.perm, fraction=1.0)
    assert found.sweeps > 1
    assert again.proposed == 0
    assert np.array_equal(again.perm, found.perm)


def test_the_part_that_is_looked_at() -> None:
    """A tenth of 30 vertices is 3; isolated vertices do not count."""
    from fractions import Fraction

    from matchwood.ordering.refine import chosen_vertices, exact_fraction

    A = matchwood.graph(shuffled(path(30), isolated=7)).undirected_pattern()
    degree = np.diff(A.indptr)
    right = sorted(np.flatnonzero(degree), key=lambda v: (degree[v], v))
    for value, size in ((0.1, 3), (0.1001, 4), (1, 30), (1e-9, 1)):
        fraction = exact_fraction("refine_order", value)
        assert chosen_vertices(A, fraction, None).tolist() == right[:size]
    assert exact_fraction("refine_order", 0.1) == Fraction(1, 10)


def change(A: object, **options: object) -> float:
    found = refine_order(A, fraction=1.0, **options)
    return round(100 * (found.after / found.before - 1), 3)


@pytest.mark.slow
def test_numbers_of_the_grid() -> None:
    A = matchwood.generators.grid((1000, 1000))
    assert change(A, metric="linear_gap") == -0.100


@pytest.mark.slow
def test_numbers_of_the_grid_by_logarithms() -> None:
    assert change(matchwood.generators.grid((1000, 1000))) == -47.572


@pytest.mark.slow
def test_numbers_of_usroads(data_folder) -> None:
    A = matchwood.graph(matchwood.io.read(data_folder / "matrices" / "usroads.mtx.gz"))
    assert change(A) == -6.663
    assert change(A, metric="linear_gap") == -3.329


def test_no_edges() -> None:
    for A in (sp.csr_array((0, 0)), sp.csr_array((3, 3)), sp.eye_array(4, format="csr")):
        found = refine_order(A)
        assert found.perm.tolist() == list(range(A.shape[0]))
        assert (found.before, found.after, found.proposed, found.kept) == (0, 0, 0, 0)
        check_refinement(A, found)


def test_the_check_finds_every_fault() -> None:
    A = grid(6, 7)
    right = refine_order(A, fraction=1.0)
    assert right.kept > 0
    perm = right.perm.copy()
    perm[[0, 1]] = perm[[1, 0]]
    for name, value, message in [
        ("before", right.before + 1, "log_gap before is"),
        ("after", right.after - 1, "log_gap after is"),
        ("perm", perm, "log_gap after is"),
        ("perm", np.zeros(42, int), "is missing"),
        ("kept", right.proposed + 1, "swaps were kept of"),
        ("kept", 0, "vertices moved by 0 swaps"),
        ("proposed", 0, "swaps were kept of"),
        ("sweeps", 0, "sweeps is 0"),
        ("sweeps", 2, "sweeps is 2, but must be 1"),
        ("proposed", right.proposed + 1, "proposed is"),
        ("kept", right.kept - 1, "vertices moved by"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_refinement(A, dataclasses.replace(right, **{name: value}), fraction=1.0)
    with pytest.raises(TypeError, match="answer must be a Refinement"):
        check_refinement(A, right.perm)


def test_an_order_that_is_as_good_is_not_the_one() -> None:
    """Mirrored, all gaps are the same; and a refinement of other vertices lowers them too."""
    A = shuffled(grid(7, 7))
    right = refine_order(A, fraction=1.0)
    for wrong in (
        dataclasses.replace(right, perm=right.perm[::-1].copy(), kept=right.proposed),
        refine_order(A, fraction=0.9),
        refine_order(A, fraction=1.0, partners="median"),
        refine_order(A, fraction=1.0, sweeps=2),
    ):
        with pytest.raises(matchwood.CheckFailed):
            check_refinement(A, wrong, fraction=1.0)
        check_refinement(A, wrong, fraction=1.0, replay=False)  # what it says is right
        with pytest.raises(matchwood.CheckFailed, match="log_gap after is"):
            check_refinement(A, dataclasses.replace(wrong, after=0.0), fraction=1.0, replay=False)


def test_every_way_to_leave_out_a_swap_is_seen() -> None:
    """Answers that are right but for one swap: valid, better than before, and wrong."""
    from matchwood.ordering.refine import chosen_vertices, exact_fraction, reference

    A = matchwood.graph(shuffled(grid(5, 6)))
    view = A.undirected_pattern()
    chosen = chosen_vertices(view, exact_fraction("refine_order", 1.0), None)
    seen = 0
    for k in range(chosen.size):
        fewer = np.delete(chosen, k)
        place, proposed, kept, done = reference.refine(
            view, np.arange(view.n), fewer, "log_gap", False, 1
        )
        perm = np.argsort(place)
        after = matchwood.log_gap(A, perm)
        right = refine_order(A, fraction=1.0)
        if np.array_equal(perm, right.perm):
            continue
        wrong = dataclasses.replace(
            right, perm=perm, after=after, proposed=proposed, kept=kept, sweeps=done
        )
        seen += 1
        with pytest.raises(matchwood.CheckFailed):
            check_refinement(A, wrong, fraction=1.0)
    assert seen > 5


def test_bad_arguments() -> None:
    A = path(5)
    for options, error, message in [
        ({"fraction": 0}, ValueError, "refine_order: fraction must be above 0 and at most 1"),
        (
            {"fraction": 1.5},
            ValueError,
            "fraction must be finite and between 0 and 1",
        ),
        ({"fraction": math.nan}, ValueError, "fraction must be finite"),
        ({"fraction": "1"}, TypeError, "fraction must be a number"),
        ({"metric": "gap"}, ValueError, "refine_order: metric must be one of 'log_gap'"),
        ({"partners": "all"}, ValueError, "refine_order: partners must be one of"),
        ({"sweeps": 0}, ValueError, "sweeps must be at least 1"),
        ({"order": [0, 1, 2, 3, 3]}, ValueError, "refine_order: perm must hold every row once"),
        ({"order": [0, 1, 2]}, ValueError, "refine_order: perm must have shape"),
    ]:
        with pytest.raises(error, match=message):
            refine_order(A, **options)
