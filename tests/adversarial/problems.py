"""Every problem with right answers to spoil: its fields, how to put them together, its check."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from adversarial import (
    analytics_cases,
    cases,
    elimination_cases,
    join_cases,
    sensing_problems,
)
from adversarial.cases import Case, Fields, graphs, matrices, of, parts, replaced, some_order
from adversarial.spoiling import equal
from matchwood import check


def bfs_cases(engine: str | None = None) -> Iterator[Case]:
    for k, (_, G) in enumerate(graphs()):
        if G.n == 0:
            continue
        sources = [k % G.n] if k % 2 else sorted({0, G.n // 2, G.n - 1})
        options = {"directed": k % 3 > 0, "depth_limit": None if k % 4 else 2}
        found = matchwood.bfs(G, sources, engine=engine, **options)
        yield Case(
            G.n, G, of(found, "level", "parent", "rounds"), replaced(found),
            lambda x, G=G, s=sources, o=options: check.check_bfs(G, s, x, **o),
        )  # fmt: skip


def root_cases(engine: str | None = None) -> Iterator[Case]:
    for k, (_, G) in enumerate(graphs()):
        if G.n == 0:
            continue
        parent = matchwood.bfs(G, sorted({k % G.n, G.n // 2}), directed=False).parent
        found = matchwood.forest_roots(parent, engine=engine)
        yield Case(
            G.n, parent, {"root": found}, lambda fields: fields["root"],
            lambda x, parent=parent: check.check_forest_roots(parent, x),
        )  # fmt: skip


def label_cases(
    function: Any, decide: Any, numbering: str, engine: str | None = None
) -> Iterator[Case]:
    for _, G in graphs():
        found = function(G, engine=engine)
        expected = parts(found.labels)
        yield Case(
            G.n, G, of(found, "count", "labels"), replaced(found),
            lambda x, G=G: decide(G, x, numbering=numbering),
            None if numbering == "exact" else lambda fields, e=expected: (
                fields["count"] == len(e) and parts(fields["labels"]) == e
            ),
        )  # fmt: skip


def with_matrix(found: Any, name: str) -> tuple[Fields, Callable[[Fields], Any]]:
    """The arrays of a sparse matrix among the fields; put back without SciPy's own checks."""
    matrix = getattr(found, name)
    fields = {f"{name}.{part}": getattr(matrix, part) for part in ("indptr", "indices", "data")}

    def build(fields: Fields) -> Any:
        rest = {key: value for key, value in fields.items() if not key.startswith(f"{name}.")}
        return dataclasses.replace(found, **rest, **{name: put_together(matrix, fields, name)})

    return fields, build


def put_together(matrix: Any, fields: Fields, name: str) -> Any:
    made = matrix.copy()
    for part in ("indptr", "indices", "data"):
        setattr(made, part, fields[f"{name}.{part}"])
    return made


def condensation_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        found = matchwood.condensation(G, engine=engine)
        fields, build = with_matrix(found, "graph")
        yield Case(
            G.n, G, {**fields, **of(found, "labels", "levels")}, build,
            lambda x, G=G: check.check_condensation(G, x),
            lambda fields, f=found: is_same_condensation(fields, f),
        )  # fmt: skip


def is_same_condensation(fields: Fields, found: Any) -> bool:
    """The order of the arcs within a row, all of value one, means nothing."""
    if not all(equal(fields[name], getattr(found, name)) for name in ("labels", "levels")):
        return False
    indptr, indices, data = (fields[f"graph.{part}"] for part in ("indptr", "indices", "data"))
    if not equal(indptr, found.graph.indptr) or not equal(data, found.graph.data):
        return False
    rows = zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
    return all(sorted(indices[a:b]) == sorted(found.graph.indices[a:b]) for a, b in rows)


def independent_cases(method: str | None, engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        found = matchwood.maximal_independent_set(G, method=method or "luby", rng=3, engine=engine)
        neighbours = dense_neighbours(G)
        yield Case(
            G.n, G, {"members": found}, lambda fields: fields["members"],
            lambda x, G=G: check.check_maximal_independent_set(G, x, method=method, rng=3),
            None if method else lambda fields, N=neighbours: is_maximal_set(N, fields["members"]),
        )  # fmt: skip


def dense_neighbours(G: Any) -> Any:
    view = G.undirected_pattern()
    ones = np.ones(view.nnz, np.int64)
    return sp.csr_array((ones, view.indices, view.indptr), shape=(G.n, G.n)).toarray()


def is_maximal_set(neighbours: Any, members: Any) -> bool:
    if members.dtype != bool or members.shape != neighbours.shape[:1]:
        return False
    beside = neighbours @ members.astype(np.int64) > 0
    return bool((beside != members).all())


def spanning_cases(maximum: bool, whole: bool, engine: str | None = None) -> Iterator[Case]:
    for A in matrices():
        if A.dtype == bool:
            continue
        if whole:
            A = A.copy()
            A.data = np.ceil(5 * np.abs(A.data)).astype(np.int64) + (1 << 60)
            if A.has_canonical_format is False and A.nnz > 100:  # sums of duplicates overflow
                continue
        G = matchwood.graph(A)
        try:
            found = matchwood.minimum_spanning_forest(G, maximum=maximum, engine=engine)
        except ValueError:  # sums of duplicates that do not fit
            continue
        yield Case(
            G.n, G, of(found, "edges", "weights", "total", "components", "n"), replaced(found),
            lambda x, G=G: check.check_spanning_forest(G, x, maximum=maximum),
            (lambda fields, f=found: same_sums(fields, f)) if not whole else None,
        )  # fmt: skip


def same_sums(fields: Fields, found: Any) -> bool:
    """A total that differs by rounding alone is right."""
    others = {name: fields[name] for name in fields if name != "total"}
    if not all(equal(value, getattr(found, name)) for name, value in others.items()):
        return False
    total = fields["total"]
    size = float(np.abs(found.weights).sum(dtype=np.float64))
    return isinstance(total, float) and abs(total - found.total) <= 1e-12 * size


def order_cases(engine: str | None = None) -> Iterator[Case]:
    for k, (_, G) in enumerate(graphs()):
        start = None if k % 2 or G.n == 0 else [G.n - 1]
        found = matchwood.reverse_cuthill_mckee(G, start=start, engine=engine)
        yield Case(
            G.n, G, {"perm": found}, lambda fields: fields["perm"],
            lambda x, G=G, s=start: check.check_rcm_order(G, x, start=s),
        )  # fmt: skip


def key_order_cases(
    order: Callable[..., Any], verify: Callable[..., None], engine: str | None = None
) -> Iterator[Case]:
    for _, G in graphs():
        yield Case(
            G.n, G, {"perm": order(G, engine=engine)}, lambda fields: fields["perm"],
            lambda x, G=G: verify(G, x),
        )  # fmt: skip


def rabbit_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        found = matchwood.locality_ordering(G, "rabbit", engine=engine)
        fields = {"perm": found.perm, "parent": found.tree.parent, "round": found.tree.round}

        def build(fields: Fields, found: Any = found) -> Any:
            tree = dataclasses.replace(found.tree, parent=fields["parent"], round=fields["round"])
            return dataclasses.replace(found, perm=fields["perm"], tree=tree)

        yield Case(G.n, G, fields, build, lambda x, G=G: check.check_rabbit_order(G, x))


def gap_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        perm = some_order(G.n)
        found = matchwood.gaps(G, perm, engine=engine)
        names = ("linear_arrangement", "log_arrangement", "linear_gap", "log_gap")
        yield Case(
            G.n, G, of(found, *names), replaced(found),
            lambda x, G=G, p=perm: check.check_gaps(G, x, p),
        )  # fmt: skip


def measure_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        perm = some_order(G.n)
        found = matchwood.order_measures(G, perm, engine=engine)
        names = ("bandwidth", "profile", "max_wavefront", "rms_wavefront")
        yield Case(
            G.n, G, of(found, *names), replaced(found),
            lambda x, G=G, p=perm: check.check_measures(G, x, p),
        )  # fmt: skip


def permuted_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in graphs():
        perm = some_order(G.n)
        B = matchwood.permute(G, perm, engine=engine)
        yield Case(
            G.n, G, {f"B.{part}": getattr(B, part) for part in ("indptr", "indices", "data")},
            lambda fields, B=B: put_together(B, fields, "B"),
            lambda x, G=G, p=perm: check.check_permuted(G, p, x),
        )  # fmt: skip


def weighted_graphs() -> Iterator[tuple[sp.csr_array, Any]]:
    for A in matrices():
        if A.dtype != bool and A.nnz and A.shape[0] <= 20:
            yield A, matchwood.graph(A)


def matching_cases(decide: Any, engine: str | None = None) -> Iterator[Case]:
    """The greedy matching, which is unique, or any matching."""
    for _, G in weighted_graphs():
        found = matchwood.weighted_matching(G, method="greedy", rng=2, engine=engine)
        if decide is check.check_locally_dominant:
            yield Case(
                G.n, G, of(found, "mate"), lambda fields: fields["mate"],
                lambda x, G=G: decide(G, x, rng=2),
            )  # fmt: skip
        else:
            weights = dense_weights(G)
            yield Case(
                G.n, G, of(found, "mate", "weight"), replaced(found),
                lambda x, G=G: decide(G, x),
                lambda fields, W=weights: is_matching(W, fields["mate"], fields["weight"]),
            )  # fmt: skip


def dense_weights(G: Any) -> Any:
    view = G.undirected_weights()
    return sp.csr_array((view.data, view.indices, view.indptr), shape=(G.n, G.n)).toarray()


def is_mutual(weights: Any, mate: Any) -> bool:
    n = weights.shape[0]
    if mate.shape != (n,) or mate.min(initial=0) < -1 or mate.max(initial=-1) >= n:
        return False
    pairs = [(v, int(u)) for v, u in enumerate(mate) if u >= 0]
    return all(mate[u] == v and weights[v, u] > 0 for v, u in pairs)


def is_matching(weights: Any, mate: Any, weight: Any) -> bool:
    if not is_mutual(weights, mate):
        return False
    own = sum(float(weights[v, u]) for v, u in enumerate(mate) if u > v)
    return isinstance(weight, float) and abs(weight - own) <= 1e-9 * own


def maximal_matching_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in weighted_graphs():
        found = matchwood.maximal_matching(G, rng=2, engine=engine)
        neighbours = dense_neighbours(G)

        def right(fields: Fields, N: Any = neighbours) -> bool:
            mate = fields["mate"]
            free = is_mutual(N, mate) and np.flatnonzero(mate < 0)
            return free is not False and not N[np.ix_(free, free)].any()

        yield Case(
            G.n, G, of(found, "mate"), lambda fields: fields["mate"],
            lambda x, G=G: check.check_maximal_matching(G, x), right,
        )  # fmt: skip


def bound_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in weighted_graphs():
        found = matchwood.matching_bound(G)
        weights = dense_weights(G)

        def right(fields: Fields, W: Any = weights) -> bool:
            value, dual = fields["value"], fields["dual"]
            if dual.shape != W.shape[:1] or not (dual >= 0).all():
                return False
            return bool((dual[:, None] + dual >= W).all()) and bool(
                abs(value - dual.sum()) <= 1e-8 * dual.sum()
            )

        yield Case(
            G.n, G, of(found, "value", "dual"), replaced(found),
            lambda x, G=G: check.check_bound(G, x), right,
        )  # fmt: skip


def coarsening_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in weighted_graphs():
        mate = matchwood.weighted_matching(G, method="greedy").mate
        found = matchwood.coarsen(G, mate, engine=engine)
        fields, build = with_matrix(found, "matrix")
        yield Case(
            G.n, G, {**fields, **of(found, "map", "vertex_weights")}, build,
            lambda x, G=G, m=mate: check.check_coarsening(G, m, x),
            lambda fields, f=found: nearly(in_order(fields, f), f),
        )  # fmt: skip


def augmented_cases(engine: str | None = None) -> Iterator[Case]:
    """Other matchings may keep the promise too: they are held against all exchanges, one by one."""
    for _, G in weighted_graphs():
        found = matchwood.weighted_matching(G, method="augmented", rng=2, engine=engine)
        weights = dense_weights(G)
        least = matchwood.weighted_matching(G, method="greedy", rng=2).weight
        yield Case(
            G.n, G, of(found, "mate", "weight"), replaced(found),
            lambda x, G=G: check.check_augmented(G, x, rng=2),
            lambda fields, W=weights, low=least: (
                is_matching(W, fields["mate"], fields["weight"])
                and float(fields["weight"]) >= low * (1 - 1e-12)
                and no_exchange(W, np.asarray(fields["mate"]))
            ),
        )  # fmt: skip


def no_exchange(W: Any, mate: Any) -> bool:
    """No matching edge can be given up for one or two heavier ones at its ends, nor two for two."""
    n = W.shape[0]
    edges = [(u, int(mate[u])) for u in range(n) if u < mate[u]]
    free = [u for u in range(n) if mate[u] < 0]
    for gone in [(), *((e,) for e in edges), *itertools.combinations(edges, 2)]:
        ends = sorted({u for e in gone for u in e})
        before = sum(W[u, v] for u, v in gone)
        others = [u for u in range(n) if u not in ends] if len(gone) < 2 else []
        if len(gone) == 2:
            (a, b), (c, d) = gone
            best = max(W[a, c] + W[b, d], W[a, d] + W[b, c])
        elif gone:
            best = _two_arms(W, mate, ends, others)
        else:
            best = max((W[u, v] for u, v in itertools.combinations(free, 2)), default=0.0)
        if best > before * (1 + 1e-9) + 1e-300:
            return False
    return True


def _two_arms(W: Any, mate: Any, ends: list[int], others: list[int]) -> float:
    """The most that arms at both ends of an edge win, less the edges that they push out."""
    u, v = ends

    def arm(x: int, y: int) -> float:
        return W[x, y] - (W[y, mate[y]] if mate[y] >= 0 else 0.0)

    arms = (
        [(arm(u, y), y) for y in others if W[u, y] > 0],
        [(arm(v, y), y) for y in others if W[v, y] > 0],
    )
    best = max((gain for side in arms for gain, _ in side), default=0.0)
    for (gain, x), (more, y) in itertools.product(*arms):
        if x != y and mate[x] != y:
            best = max(best, gain + more)
    return best


def maximum_matching_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in weighted_graphs():
        found = matchwood.maximum_matching(G, engine=None if engine == "gpu" else engine)
        stored = dense_weights(G) != 0
        yield Case(
            G.n, G, of(found, "mate"), lambda fields: fields["mate"],
            lambda x, G=G: check.check_maximum_matching(G, x),
            lambda fields, S=stored, k=found.cardinality: (
                is_matching(S.astype(float), fields["mate"], float(k))
            ),
        )  # fmt: skip


def hierarchy_cases(engine: str | None = None) -> Iterator[Case]:
    """The first level is spoiled; which vertices are paired is not judged."""
    for _, G in weighted_graphs():
        found = matchwood.coarsening_hierarchy(G, until=2, engine=engine)
        if not found.levels:
            continue
        first = found.levels[0]
        fields, replace = with_matrix(first, "matrix")

        def build(fields: Fields, found: Any = found, replace: Any = replace) -> Any:
            return dataclasses.replace(found, levels=(replace(fields), *found.levels[1:]))

        yield Case(
            G.n, G, {**fields, **of(first, "vertex_weights")}, build,
            lambda x, G=G: check.check_hierarchy(G, x),
            lambda fields, f=first: nearly({**in_order(fields, f), "map": f.map}, f),
        )  # fmt: skip


def in_order(fields: Fields, found: Any) -> Fields:
    """With ascending columns in each row: their order, with the values, means nothing."""
    indptr, indices, data = (fields[f"matrix.{part}"] for part in ("indptr", "indices", "data"))
    if not equal(indptr, found.matrix.indptr) or indices.size != data.size:
        return fields
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    if rows.size != indices.size:
        return fields
    order = np.lexsort((indices, rows))
    return {**fields, "matrix.indices": indices[order], "matrix.data": data[order]}


def nearly(fields: Fields, found: Any) -> bool:
    """Sums of weights may differ by rounding."""
    for name, value in fields.items():
        true = found
        for part in name.split("."):
            true = getattr(true, part)
        if value.shape != true.shape:
            return False
        near = value == true if true.dtype.kind in "iu" else np.isclose(value, true, 1e-6, 0)
        if not near.all():
            return False
    return True


def factor_cases(maximal: bool, engine: str | None = None) -> Iterator[Case]:
    """Whole results, which say how they were made; or their tables alone."""
    for k, (_, G) in enumerate(weighted_graphs()):
        found = matchwood.degree_factor(G, 1 + k % 3, rounds=None, rng=k, engine=engine)
        weights = dense_weights(G)
        if maximal:
            yield Case(
                G.n, G, of(found, "neighbours"), lambda fields: fields["neighbours"],
                lambda x, G=G: check.check_maximal_factor(G, x),
                lambda fields, W=weights: is_maximal_factor(W, fields["neighbours"]),
            )  # fmt: skip
        else:
            yield Case(
                G.n, G, of(found, "neighbours", "weights"), replaced(found),
                lambda x, G=G: check.check_factor(G, x),
                lambda fields, W=weights: is_factor(W, fields["neighbours"], fields["weights"]),
            )  # fmt: skip


def is_factor(W: Any, table: Any, own: Any) -> bool:
    if table.shape[0] != W.shape[0] or (own is not None and table.shape != own.shape):
        return False
    if table.min(initial=0) < -1 or table.max(initial=-1) >= W.shape[0]:
        return False
    listed = [sorted(row[row >= 0].tolist()) for row in table]
    pairs = {(v, u) for v, row in enumerate(listed) for u in row}
    return (
        all(len(set(row)) == len(row) for row in listed)
        and all((u, v) in pairs and W[v, u] > 0 for v, u in pairs)
        and bool(
            own is None or (own == np.where(table >= 0, np.take_along_axis(W, table, 1), 0)).all()
        )
    )


def is_maximal_factor(W: Any, table: Any) -> bool:
    if not is_factor(W, table, None):
        return False
    free = np.flatnonzero((table < 0).any(axis=1))
    beside = {(v, int(u)) for v in free for u in table[v]}
    return all(W[u, v] == 0 or (u, v) in beside for u in free for v in free)


def forest_cases(engine: str | None = None) -> Iterator[Case]:
    for _, G in weighted_graphs():
        found = matchwood.linear_forest(G, engine=engine)
        yield Case(
            G.n, G, of(found, "perm", "path", "position", "place"), replaced(found),
            lambda x, G=G: check.check_linear_forest(G, x),
        )  # fmt: skip


def _solution(n: int, system: tuple[Any, ...], x: Any) -> Case:
    """A solution; one that differs in the last digits only counts as the same."""
    return Case(
        n,
        None,
        {"x": x},
        lambda fields: fields["x"],
        lambda x: check.check_tridiagonal_solution(*system, x),
        lambda fields: (
            fields["x"].shape == x.shape and bool((np.abs(fields["x"] - x) <= 1e-9).all())
        ),
    )


def block_cases(engine: str | None = None) -> Iterator[Case]:
    """Well-conditioned systems of 2x2 blocks, with one and with several right-hand sides."""
    rng = np.random.default_rng(4)
    for n in (1, 2, 3, 8, 20):
        for columns in ((), (1,), (3,)):
            dl, du = rng.uniform(-1, 1, (2, n, 2, 2))
            d = rng.uniform(-1, 1, (n, 2, 2)) + 6 * np.eye(2)
            b = rng.uniform(0.5, 1, (n, 2, *columns))
            x = matchwood.block_tridiagonal.solve(dl, d, du, b, engine=engine)
            yield _solution(n, (dl, d, du, b), np.asarray(x))


def tridiagonal_cases(engine: str | None = None) -> Iterator[Case]:
    """Well-conditioned systems, of which each row has a scale of its own."""
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 8, 30):
        for spread in (0, 20):
            scale = 10.0 ** rng.uniform(-spread, spread, n)
            dl, du = scale * rng.uniform(-1, 1, n), scale * rng.uniform(-1, 1, n)
            d, b = 3 * scale, scale * rng.uniform(0.5, 1, n)
            x = matchwood.tridiagonal.solve(dl, d, du, b, engine=engine)
            yield _solution(n, (dl, d, du, b), np.asarray(x))


def dominant_matrices() -> Iterator[sp.csr_array]:
    """Small systems that every method solves, on two scales."""
    rng = np.random.default_rng(6 + cases.drawn())
    for n in (1, 2, 5, 12, 20):
        for scale in (1.0, 1e-5):
            A = sp.random_array((n, n), density=min(1.0, 3 / n), rng=rng, format="csr")
            A = sp.csr_array(A + A.T)
            yield sp.csr_array(scale * (A + sp.diags_array(1 + A.sum(axis=1))))


def solution_cases(engine: str | None = None) -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for A in dominant_matrices():
        b = rng.uniform(0.5, 1, A.shape[0])
        for method in ("bicgstab", "cg", "gmres"):
            found = matchwood.solve(A, b, method=method, preconditioner="jacobi",
                                    engine=None if engine == "reference" else engine)  # fmt: skip
            yield Case(
                A.shape[0], None, of(found, "x", "residuals", "iterations", "info"),
                replaced(found), lambda x, A=A, b=b: check.check_solution(A, b, x),
                lambda fields, A=A, b=b: is_solution(A.toarray(), b, fields),
            )  # fmt: skip


def is_solution(A: Any, b: Any, fields: Fields) -> bool:
    """By the definition.  Residuals before the last are the method's own: any are possible."""
    x, history, rounds = fields["x"], fields["residuals"], fields["iterations"]
    if fields["info"] != 0 or rounds < 0 or history.shape not in ((rounds + 1,), (2,)):
        return False
    if not (np.isfinite(x).all() and np.isfinite(history).all() and (history >= 0).all()):
        return False
    residual, size = np.linalg.norm(b - A @ x), np.linalg.norm(b)
    differs = abs(history[-1] * size - residual)
    return bool(residual <= 1e-8 * size and differs <= 1e-3 * max(residual, 1e-8 * size))


class TwoMatrices(sp.linalg.LinearOperator):
    """An operator by what it and its adjoint do to vectors; the two need not fit."""

    def __init__(self, there: Any, back: Any, coverage: Any, definite: Any) -> None:
        kind = np.result_type(np.asarray(there), np.asarray(back))
        shape = there.shape if there.ndim == 2 else (there.size, there.size)
        super().__init__(kind, shape)
        self._there, self._back = there, back
        self.coverage, self.definite = coverage, definite

    def _matvec(self, x: Any) -> Any:
        return self._there @ x

    def _rmatvec(self, x: Any) -> Any:
        return self._back @ x


def preconditioner_cases(engine: str | None = None) -> Iterator[Case]:
    """Each as two dense matrices, its own and that of its adjoint."""
    for A in dominant_matrices():
        for name in (
            "jacobi",
            "tridiagonal",
            "algebraic_tridiagonal",
            "algebraic_block_tridiagonal",
        ):
            M = getattr(matchwood.preconditioners, name)(A)
            whole = np.eye(A.shape[0])
            yield Case(
                A.shape[0], None,
                {"there": M @ whole, "back": M.H @ whole, "coverage": float(M.coverage)},
                lambda fields, M=M: TwoMatrices(**fields, definite=M.definite),
                lambda x, A=A: check.check_preconditioner(A, x),
                lambda fields: is_preconditioner(**fields),
            )  # fmt: skip


def is_preconditioner(there: Any, back: Any, coverage: Any) -> bool:
    """Each matrix the other's transpose.  A millionth of the largest number is not looked at."""
    if not (np.isfinite(there).all() and np.isfinite(back).all()):
        return False
    size = max(abs(there).max(), abs(back).max())
    return bool(abs(there - back.T).max() <= 1e-6 * size and 0 <= coverage <= 1)


PROBLEMS: dict[str, Callable[..., Iterator[Case]]] = {
    "bfs": bfs_cases,
    "forest roots": root_cases,
    "connected components": functools.partial(
        label_cases, matchwood.connected_components, check.check_connected_components, "exact"
    ),
    "connected components, any numbering": functools.partial(
        label_cases, matchwood.connected_components, check.check_connected_components, "any"
    ),
    "strongly connected components": functools.partial(
        label_cases,
        matchwood.strongly_connected_components,
        check.check_strongly_connected_components,
        "exact",
    ),
    "strongly connected components, any numbering": functools.partial(
        label_cases,
        matchwood.strongly_connected_components,
        check.check_strongly_connected_components,
        "any",
    ),
    "condensation": condensation_cases,
    "maximal independent set, luby": functools.partial(independent_cases, "luby"),
    "maximal independent set, lexicographic": functools.partial(independent_cases, "lexicographic"),
    "maximal independent set, any": functools.partial(independent_cases, None),
    "spanning forest, minimum": functools.partial(spanning_cases, False, False),
    "spanning forest, maximum": functools.partial(spanning_cases, True, False),
    "spanning forest, large integers": functools.partial(spanning_cases, False, True),
    "rcm order": order_cases,
    "measures": measure_cases,
    "gaps": gap_cases,
    "rabbit order": rabbit_cases,
    "shingle order": functools.partial(
        key_order_cases, matchwood.shingle_order, check.check_shingle_order
    ),
    "degree order": functools.partial(
        key_order_cases, matchwood.degree_order, check.check_degree_order
    ),
    "hub order": functools.partial(key_order_cases, matchwood.hub_order, check.check_hub_order),
    **elimination_cases.CASES,
    "permuted": permuted_cases,
    "matching": functools.partial(matching_cases, check.check_matching),
    "locally dominant": functools.partial(matching_cases, check.check_locally_dominant),
    "maximal matching": maximal_matching_cases,
    "bound": bound_cases,
    "coarsening": coarsening_cases,
    "factor": functools.partial(factor_cases, False),
    "maximal factor": functools.partial(factor_cases, True),
    "linear forest": forest_cases,
    "tridiagonal solution": tridiagonal_cases,
    "tridiagonal solution, blocks": block_cases,
    "solution": solution_cases,
    "preconditioner": preconditioner_cases,
    "refinement": analytics_cases.refinement_cases,
    "layered order": analytics_cases.layered_cases,
    "partition": analytics_cases.partition_cases,
    "communities": functools.partial(analytics_cases.community_cases, False),
    "communities, replay": functools.partial(analytics_cases.community_cases, True),
    "label propagation": functools.partial(analytics_cases.label_propagation_cases, False),
    "label propagation, replay": functools.partial(analytics_cases.label_propagation_cases, True),
    "modularity": analytics_cases.modularity_cases,
    "pagerank": functools.partial(analytics_cases.pagerank_cases, False),
    "pagerank, replay": functools.partial(analytics_cases.pagerank_cases, True),
    "hierarchy": hierarchy_cases,
    "augmented": augmented_cases,
    "maximum matching": maximum_matching_cases,
    "fuzzy join": join_cases.fuzzy_join_cases,
    **sensing_problems.cases(Case),
}

CHECKS = {f"check_{name.partition(',')[0].replace(' ', '_')}" for name in PROBLEMS}
"""The checks that these ask: a name begins with that of its check."""
