"""Attacks on factors and linear forests: odd teams, spoiled answers, arrays that are none."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial.clock import attempts
from adversarial.spoiling import refused
from matchwood.factors import (
    Factor,
    check_factor,
    check_maximal_factor,
    coverage_of_order,
    degree_factor,
    is_factor,
    is_maximal_factor,
)
from matchwood.factors.result import Origin, origin_of
from matchwood.forests import LinearForest, check_linear_forest, linear_forest, tridiagonal_of

THREADS = (1, 2, 3, 5, 6, 7, 16)
EXTREMES = (5e-324, 1e-310, 2.3e-308, 1.0, 3.0, 1e300, 4e307, 1e308, 1.7e308)


def random_graph(rng: np.random.Generator, weights: Any = (1.0, 1.0, 2.0, 3.0)) -> Any:
    """Few vertices, directed edges; half of the time the other direction as well."""
    n = int(rng.integers(1, 11))
    A = sp.lil_array((n, n))
    both = rng.random() < 0.5
    for _ in range(int(rng.integers(0, 3 * n))):
        u, v = rng.integers(0, n, 2)
        A[u, v] = rng.choice(weights)
        if both:
            A[v, u] = A[u, v]
    return matchwood.graph(A.tocsr())


def random_options(rng: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {
        "n": int(rng.integers(1, 4)),
        "rounds": [None, None, 0, 1, 5, 20][rng.integers(6)],
        "period": int(rng.integers(1, 6)),
        "rng": int(rng.integers(1000)),
        "charge_probability": float(rng.choice([0.0, 0.3, 0.5, 1.0])),
        "ties": str(rng.choice(["index", "hash"])),
        "directed": bool(rng.random() < 0.6),
    }
    if not options["directed"] and rng.random() < 0.3:
        options["method"] = "greedy"
    return options


def facts(found: Factor) -> Any:
    return found.neighbours.tolist(), found.weights.tolist(), found.rounds, found.maximal


def test_a_vertex_that_lost_its_turn_keeps_its_charge_up_to_date() -> None:
    """Who has an arc to a vertex that no longer proposes still looks at its charge."""
    A = (5, [[4, 3], [0, 0], [0, 2], [2, 1], [2, 4], [3, 4], [2, 0], [0, 1], [4, 0]])
    for threads in range(1, 9):
        found = degree_factor(
            A, 1, rounds=None, period=3, rng=80, directed=True, ties="index", threads=threads
        )
        assert found.cardinality == 2


def test_one_factor_at_odd_numbers_of_threads() -> None:
    rng = np.random.default_rng(1)
    for _ in attempts(0.3):
        G, options = random_graph(rng), random_options(rng)
        expected = facts(degree_factor(G, engine="reference", **options))
        for threads in rng.choice(THREADS, 3, replace=False).tolist():
            assert facts(degree_factor(G, threads=threads, **options)) == expected, (
                threads,
                options,
            )


def test_one_forest_at_odd_numbers_of_threads() -> None:
    rng = np.random.default_rng(2)
    for _ in attempts(0.2):
        G = random_graph(rng)
        options = {"rounds": None, "rng": int(rng.integers(99)), "directed": bool(rng.integers(2))}
        expected = linear_forest(G, engine="reference", **options)
        method = str(rng.choice(["auto", "splitters", "ranges", "doubling", "walk"]))
        for threads in rng.choice(THREADS, 3, replace=False).tolist():
            found = linear_forest(G, method=method, threads=threads, **options)
            for name in ("perm", "path", "position", "place", "removed"):
                assert np.array_equal(getattr(found, name), getattr(expected, name)), method
            check_linear_forest(G, found)
            for one, other in zip(
                tridiagonal_of(G, found, threads=threads), tridiagonal_of(G, expected), strict=True
            ):
                assert np.array_equal(one, other)


def spoiled_table(rng: np.random.Generator, table: Any) -> Any:
    table = table.astype(np.int64)
    N, n = table.shape
    for _ in range(int(rng.integers(1, 3))):
        v, w = (int(x) for x in rng.integers(0, N, 2))
        slot, other = (int(x) for x in rng.integers(0, n, 2))
        kind = rng.integers(5)
        if kind == 0:
            table[v, slot] = rng.integers(-2, N + 2)
        elif kind == 1 and 0 <= table[v, slot] < N:
            back = table[table[v, slot]]
            back[back == v] = -1
            table[v, slot] = -1
        elif kind == 2:
            table[v, slot], table[w, other] = w, v
        elif kind == 3:
            table[v] = table[v, ::-1]
        else:
            table[[v, w]] = table[[w, v]]
    return table


def is_factor_by_definition(table: Any, view: Any) -> tuple[bool, bool]:
    """A factor, a maximal one?"""
    N, n = table.shape
    rows = [
        set(view.indices[a:b].tolist()) for a, b in zip(view.indptr, view.indptr[1:], strict=False)
    ]
    lists = [[w for w in row if w != -1] for row in table.tolist()]
    for v, row in enumerate(lists):
        if len(set(row)) < len(row) or not set(row) <= rows[v]:
            return False, False
        if any(v not in lists[w] for w in row):
            return False, False
    room = [len(row) < n for row in lists]
    for v in range(N):
        for w in rows[v]:
            if v in rows[w] and room[v] and room[w] and w not in lists[v]:
                return True, False
    return True, True


def test_checks_decide_about_spoiled_factors() -> None:
    """As plain tables by the definition; held to the arguments, only the one answer passes."""
    rng = np.random.default_rng(3)
    for _ in attempts(0.3):
        G, options = random_graph(rng), random_options(rng)
        found = degree_factor(G, threads=1, **options)
        found.check(G)
        plain = Factor(found.neighbours, found.weights, directed=found.directed)
        view = origin_of(found).view
        for _ in range(6):
            table = spoiled_table(rng, found.neighbours)
            answer = table.astype(rng.choice(["i2", "i4", "i8"]))
            if not found.directed:
                right = is_factor_by_definition(table, view)
                assert (is_factor(G, answer), is_maximal_factor(G, answer)) == right
            same = bool((np.sort(table, axis=1) == np.sort(found.neighbours, axis=1)).all())
            exact = {k: v for k, v in options.items() if k != "n"}
            exact.setdefault("method", "auto")
            assert refused(check_factor, G, answer, **exact) != same
            assert refused(check_factor, G, dataclasses.replace(found, neighbours=answer)) or (
                np.array_equal(answer, found.neighbours)
            )
            weights = found.weights.copy()
            v, slot = int(rng.integers(G.n)), int(rng.integers(found.n))
            weights[v, slot] = rng.choice([np.nan, np.inf, -1.0, 17.0])
            for base in (found, plain):
                assert refused(check_factor, G, dataclasses.replace(base, weights=weights))
        assert refused(dataclasses.replace(found, rounds=found.rounds + 1).check, G) or (
            options.get("method") == "greedy"
        )
        assert refused(check_factor, G, found.neighbours.astype(float))
        assert refused(check_factor, G, found.neighbours >= 0)
        assert refused(check_factor, G, found.neighbours[:-1])


def test_a_factor_that_wraps_is_none() -> None:
    A = matchwood.generators.path(3)
    wraps = np.full((3, 1), 2**64 - 1, np.uint64)  # -1 as an int64
    assert not is_factor(A, wraps)
    with pytest.raises(ValueError, match="linear_forest: the factor must be one of A"):
        linear_forest(A, factor=wraps)


def test_spoiled_forests_are_refused() -> None:
    """Another array than the right one is refused: each follows from the factor."""
    rng = np.random.default_rng(4)
    for _ in attempts(0.3):
        G = random_graph(rng)
        right = linear_forest(G, rounds=None, directed=bool(rng.integers(2)), threads=1)
        check_linear_forest(G, right)
        for _ in range(6):
            name = str(rng.choice(["perm", "path", "position", "place"]))
            array = getattr(right, name).astype(np.int64)
            at, other = rng.integers(0, G.n, 2)
            if rng.random() < 0.5:
                array[[at, other]] = array[[other, at]]
            else:
                array[at] = rng.choice([-1, 0, 1, G.n - 1, G.n, 10**9])
            wrong = dataclasses.replace(right, **{name: array})
            same = np.array_equal(array, getattr(right, name))
            assert refused(check_linear_forest, G, wrong) != same
            if name != "path":  # not read
                with contextlib.suppress(ValueError):
                    assert len(tridiagonal_of(G, wrong)[0]) == G.n
            assert refused(check_linear_forest, G, dataclasses.replace(
                right, **{name: array.astype(float)}
            ))  # fmt: skip
            assert refused(check_linear_forest, G, dataclasses.replace(
                right, **{name: array[:-1]}
            ))  # fmt: skip


def test_wrong_factors_reach_no_kernel() -> None:
    """Given factors are those of the graph, whatever object they come in."""
    rng = np.random.default_rng(5)
    for _ in attempts(0.3):
        G, other = random_graph(rng), random_graph(rng)
        directed = bool(rng.integers(2))
        found = degree_factor(G, 2, rounds=None, directed=directed, threads=1)
        strange = degree_factor(other, 2, rounds=None, directed=directed, threads=1)
        origin = Origin(origin_of(found).view, None)
        given: list[Any] = [strange, dataclasses.replace(found)]
        for _ in range(3):
            table = spoiled_table(rng, found.neighbours)
            table[rng.integers(G.n), 0] = rng.choice([-1, 0, 10**9, 2**40, -(10**9)])
            given.append(dataclasses.replace(found, neighbours=table))
            given.append(Factor(table, np.ones(table.shape), directed=directed, _origin=origin))
            given.append(table)
        for answer in given:
            method = str(rng.choice(["splitters", "ranges", "doubling", "walk"]))
            try:
                forest = linear_forest(G, factor=answer, method=method, threads=2)
            except (ValueError, TypeError):
                continue
            check_linear_forest(G, dataclasses.replace(
                forest, factor=dataclasses.replace(forest.factor, _origin=None)
            ))  # fmt: skip


def test_forests_made_by_hand_reach_no_kernel() -> None:
    """`tridiagonal_of` refuses them, or gives what is its own: zeros or entries of the matrix."""
    rng = np.random.default_rng(6)
    for _ in attempts(0.3):
        G = random_graph(rng)
        right = linear_forest(G, threads=1)
        arrays = [getattr(right, name).copy() for name in ("perm", "path", "position", "place")]
        at = rng.integers(4)
        arrays[at][rng.integers(G.n)] = rng.choice([-1, G.n, 10**9, -(2**31)])
        found: Any = right._found
        table = right.factor.neighbours.copy()
        table[rng.integers(G.n), 0] = rng.choice([-5, G.n, 10**9])
        for wrong in (
            LinearForest(*arrays, right.factor, _found=found),
            LinearForest(*arrays, right.factor, _found=found._replace(
                perm=arrays[0], path=arrays[1], position=arrays[2], place=arrays[3]
            )),
            dataclasses.replace(right, factor=Factor(table, right.factor.weights)),
            dataclasses.replace(right, place=right.place.astype(float)),
            dataclasses.replace(right, place=None),
            None,
        ):  # fmt: skip
            try:
                values = tridiagonal_of(G, wrong)  # type: ignore[arg-type]
            except (ValueError, TypeError):
                continue
            stored = {0.0, *G.directed_weights().data.tolist()}
            assert all(set(array.tolist()) <= stored for array in values)


@contextlib.contextmanager
def named_error() -> Any:
    """Sums that are no numbers may be refused, with a way out."""
    try:
        yield
    except ValueError as error:
        if not re.search("divide the weights by a power of two", str(error)):
            raise


def test_weights_at_the_ends_of_double_precision() -> None:
    """Shares of the weight are numbers within 0..1; sums that are none are refused by name."""
    rng = np.random.default_rng(7)
    for k in attempts(0.3):
        few = rng.choice(EXTREMES, 2) if k % 2 else EXTREMES
        G = random_graph(rng, few)
        try:
            G.undirected_weights()
        except ValueError:
            continue  # two directions together are too much: the gate says so
        if not np.isfinite(G.undirected_weights().data).all():
            continue
        for directed in (False, True):
            found = degree_factor(G, 2, rounds=None, directed=directed, threads=1)
            found.check(G)
            forest = linear_forest(G, rounds=None, directed=directed, threads=1)
            forest.check(G)
            assert 0 <= forest.coverage <= found.coverage * (1 + 1e-12) <= 1 + 1e-9
            for made in (found, forest):
                with named_error():
                    assert 0 <= made.weight < np.inf
        assert 0 <= coverage_of_order(G) <= 1
        check_maximal_factor(G, degree_factor(G, 2, rounds=None, method="greedy", threads=1))
