"""Right answers of orders that are refined, of rankings and of communities, to be spoiled."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import matchwood
from adversarial.cases import Case, Fields, graphs, matrices, of, parts, replaced, some_order
from matchwood import check

REFINEMENTS = (
    {"fraction": 1.0},
    {"fraction": 0.6, "sweeps": None, "metric": "linear_gap"},
    {"fraction": 1.0, "partners": "median", "sweeps": 3},
)
GAMMAS = (1.0, 0.0, 0.25)


def refinement_cases(engine: str | None = None) -> Iterator[Case]:
    for k, (_, G) in enumerate(graphs()):
        order, options = some_order(G.n), REFINEMENTS[k % 3]
        found = matchwood.refine_order(G, order, engine=engine, **options)
        names = ("perm", "before", "after", "proposed", "kept", "sweeps")
        yield Case(
            G.n, G, of(found, *names), replaced(found),
            lambda x, G=G, p=order, o=options: check.check_refinement(G, x, p, **o),
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Layered:
    """What the check of layers reads of an answer."""

    perm: Any
    layers: Any


def layered_cases(engine: str | None = None) -> Iterator[Case]:
    """Few layers, so that a check is quick."""
    for k, (_, G) in enumerate(graphs()):
        perm, layers = matchwood.ordering.llp.find_layers(
            "layered_label_propagation_order", G, GAMMAS, k, engine, None
        )
        fields = {
            "perm": perm, "labels": layers.labels,
            "gammas": np.array(layers.gammas), "rounds": np.array(layers.rounds),
        }  # fmt: skip

        def build(fields: Fields, layers: Any = layers) -> Any:
            gammas, rounds = (
                tuple(np.asarray(fields[name]).tolist()) for name in ("gammas", "rounds")
            )
            made = dataclasses.replace(
                layers, labels=fields["labels"], gammas=gammas, rounds=rounds
            )
            return Layered(fields["perm"], made)

        yield Case(
            G.n, G, fields, build,
            lambda x, G=G, k=k: check.check_layered_order(G, x, gammas=GAMMAS, rng=k),
        )  # fmt: skip


def positive_graphs() -> Iterator[Any]:
    for A in matrices():
        yield matchwood.graph(A if A.dtype == bool else abs(A))


def whole_weights(G: Any) -> Any:
    """The dense matrix of which a modularity is: both directions, and loops twice."""
    W = np.zeros((G.n, G.n))
    A = np.zeros((G.n, G.n))
    rows = np.repeat(np.arange(G.n), np.diff(G.indptr))
    np.add.at(A, (rows, G.indices), 1.0 if G.data is None else G.data.astype(np.float64))
    W += A if np.array_equal(A, A.T) else A + A.T - np.diag(A.diagonal())
    return W + np.diag(A.diagonal())


def dense_modularity(W: Any, labels: Any, resolution: float) -> float:
    if not W.sum():
        return 0.0
    same = labels[:, None] == labels
    strength = W.sum(axis=1)
    chance = resolution * np.outer(strength, strength) / W.sum()
    return float(((W - chance) * same).sum() / W.sum())


def is_described(W: Any, fields: Fields, resolution: float) -> bool:
    """Labels numbered by smallest vertices, counters that may be, and the modularity."""
    labels = fields["labels"]
    if any(type(fields[name]) is not int for name in ("count", "levels", "rounds")):
        return False
    if fields["levels"] < 1 or fields["rounds"] < 0:
        return False
    groups = parts(labels)  # by their smallest vertices
    if fields["count"] != len(groups):
        return False
    if any(labels[v] != c for c, group in enumerate(groups) for v in group):
        return False
    q = fields["modularity"]
    return isinstance(q, float) and abs(q - dense_modularity(W, labels, resolution)) <= 1.1e-9


def is_connected(W: Any, labels: Any) -> bool:
    for group in parts(labels):
        reached, stack = {group[0]}, [group[0]]
        while stack:
            v = stack.pop()
            more = [u for u in group if W[v, u] > 0 and u not in reached]
            reached.update(more)
            stack += more
        if len(reached) < len(group):
            return False
    return True


def is_settled(W: Any, labels: Any) -> bool:
    """Every label one of the heaviest around, to rounding."""
    if labels.size == 0:
        return True
    around = W - np.diag(W.diagonal())
    weight = np.stack([around[:, labels == c].sum(axis=1) for c in labels], axis=1)
    own = weight.diagonal()
    return bool((weight <= own[:, None] * (1 + 1e-12) + 1e-300).all())


COMMUNITIES = ("count", "labels", "modularity", "levels", "rounds")


def rest_fits(fields: Fields, G: Any, resolution: float) -> Fields:
    """The same parts, numbered by their smallest vertices, and what follows from them."""
    groups = parts(fields["labels"])
    labels = np.zeros(G.n, np.int64)
    for c, group in enumerate(groups):
        labels[group] = c
    quality = matchwood.modularity(G, labels, resolution=resolution)
    return {**fields, "count": len(groups), "labels": labels, "modularity": quality}


def gains(W: Any, labels: Any, resolution: float) -> int:
    """How many vertices gain by moving to a community around them, more than rounding does."""
    around, strength, found = W - np.diag(W.diagonal()), W.sum(axis=1), 0
    for v in range(labels.size):
        worth = {}
        for c in {int(labels[v]), *labels[around[v] > 0].tolist()}:
            others = (labels == c) & (np.arange(labels.size) != v)
            chance = resolution * strength[v] * strength[others].sum() / W.sum()
            worth[c] = around[v, others].sum() - chance
        found += max(worth.values()) > worth[int(labels[v])] + 1e-12 * W.sum()
    return found


def is_quiet(W: Any, labels: Any, resolution: float) -> bool:
    """At most three quarters of the vertices with neighbours gain by moving."""
    tied = np.count_nonzero((W - np.diag(W.diagonal())).any(axis=1)) if labels.size else 0
    return tied == 0 or 4 * gains(W, labels, resolution) <= 3 * tied


def community_cases(replay: bool, engine: str | None = None) -> Iterator[Case]:
    for k, G in enumerate(positive_graphs()):
        resolution = (1.0, 0.5, 2.0)[k % 3]
        function = matchwood.leiden if k % 4 == 0 else matchwood.louvain
        found = function(G, resolution=resolution, rng=k, engine=engine)
        W = whole_weights(G)
        options = {"replay": function.__name__, "rng": k} if replay else {}
        yield Case(
            G.n, G, of(found, *COMMUNITIES), replaced(found),
            lambda x, G=G, r=resolution, o=options: check.check_communities(
                G, x, resolution=r, **o
            ),
            None if replay else lambda fields, W=W, r=resolution: (
                is_described(W, fields, r) and is_connected(W, fields["labels"])
                and is_quiet(W, fields["labels"], r)
            ),
            lambda fields, G=G, r=resolution: rest_fits(fields, G, r),
        )  # fmt: skip


PARTITION = ("cut", "labels", "weights", "limits")


def is_partition(A: Any, fields: Fields, limit: int) -> bool:
    """Labels in 0..k-1, none empty or too heavy; cut, weights and limits are theirs."""
    labels, k = fields["labels"], len(fields["limits"])
    if len(labels) != len(A) or not ((labels >= 0) & (labels < k)).all():
        return False
    sizes = np.bincount(labels, minlength=k)
    cut = A[labels[:, None] != labels].sum() / 2
    return bool(
        (not len(labels) or sizes.min() > 0) and sizes.max(initial=0) <= limit
        and np.isclose(float(fields["cut"]), cut, rtol=1e-9, atol=0)
        and np.array_equal(fields["weights"], sizes)
        and np.array_equal(fields["limits"], np.full(k, limit))
    )  # fmt: skip


def partition_cases(engine: str | None = None) -> Iterator[Case]:
    for number, G in enumerate(positive_graphs()):
        k = min(max(G.n, 1), 2 + number % 3)
        found = matchwood.partition(G, k, rng=number, engine=engine)
        W = whole_weights(G)
        A = W - np.diag(W.diagonal())
        limit = int(found.limits[0])
        yield Case(
            G.n, G, of(found, *PARTITION), replaced(found),
            lambda x, G=G, k=k: check.check_partition(G, x, k=k),
            lambda fields, A=A, limit=limit: is_partition(A, fields, limit),
        )  # fmt: skip


def label_propagation_cases(replay: bool, engine: str | None = None) -> Iterator[Case]:
    for k, G in enumerate(positive_graphs()):
        found = matchwood.label_propagation(G, rng=k, engine=engine)
        W = whole_weights(G)
        options = {"replay": True, "rng": k} if replay else {}
        yield Case(
            G.n, G, of(found, *COMMUNITIES), replaced(found),
            lambda x, G=G, o=options: check.check_label_propagation(G, x, **o),
            None if replay else lambda fields, W=W: (
                is_described(W, fields, 1.0) and is_settled(W, fields["labels"])
            ),
            lambda fields, G=G: rest_fits(fields, G, 1.0),
        )  # fmt: skip


def modularity_cases(engine: str | None = None) -> Iterator[Case]:
    for k, G in enumerate(positive_graphs()):
        resolution = (1.0, 0.0, 3.5)[k % 3]
        labels = np.random.default_rng(k).integers(-3, 4, G.n)
        value = matchwood.modularity(G, labels, resolution=resolution, engine=engine)
        W = whole_weights(G)
        yield Case(
            G.n, G, {"labels": labels, "value": value}, dict,
            lambda x, G=G, r=resolution: check.check_modularity(G, **x, resolution=r),
            lambda fields, W=W, r=resolution: isinstance(fields["value"], float) and abs(
                dense_modularity(W, fields["labels"], r) - fields["value"]) <= 1.1e-9,
        )  # fmt: skip


def surfer_options(n: int, k: int) -> Fields:
    rng = np.random.default_rng(n)
    return [
        {},
        {"damping": 0.5, "tol": 1e-9, "weighted": True},
        {"personalization": rng.random(n) + 0.01, "dangling": rng.random(n) + 0.1, "tol": 0.0},
        {"damping": 0.0, "weighted": True},
    ][k % 4]


MOST = 30  # iterations


def pagerank_cases(replay: bool, engine: str | None = None) -> Iterator[Case]:
    for k, G in enumerate(positive_graphs()):
        options = surfer_options(G.n, k)
        kind = np.float32 if k % 5 == 0 else np.float64
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # not converged
            found = matchwood.pagerank(
                G, max_iterations=MOST, dtype=kind, engine=engine, **options
            )  # fmt: skip

        def right(fields: Fields, G: Any = G, o: Fields = options, found: Any = found) -> bool:
            return is_ranking(G, fields, **o) and (not replay or is_near(fields, found))

        yield Case(
            G.n, G, of(found, "scores", "iterations", "error", "converged"), replaced(found),
            lambda x, G=G, o=options: check.check_pagerank(
                G, x, max_iterations=MOST, replay=replay, **o
            ),
            right,
        )  # fmt: skip


def is_near(fields: Fields, found: Any) -> bool:
    """The numbers of that run, but for rounding."""
    unit = 1e-12 if found.scores.dtype == np.float64 else 1e-4
    same = fields["iterations"] == found.iterations or found.error < unit  # then all is rounding
    return bool(
        same
        and abs(fields["error"] - found.error) <= unit
        and np.abs(fields["scores"] - found.scores).sum() <= unit
    )


def is_ranking(
    G: Any,
    fields: Fields,
    damping: float = 0.85,
    tol: float | None = None,
    personalization: Any = None,
    dangling: Any = None,
    weighted: bool = False,
) -> bool:
    """By the dense matrix of the surfer.  What rounding may have done counts as right."""
    n, x, error = G.n, fields["scores"].astype(np.float64), fields["error"]
    iterations = fields["iterations"]
    if type(iterations) is not int or type(error) is not float:
        return False
    if type(fields["converged"]) is not bool or not 0 <= error < np.inf:
        return False
    if n == 0:
        return iterations == 0 and error == 0 and bool(fields["converged"])
    P, lost = surfer_matrix(G, weighted)
    p = np.full(n, 1 / n) if personalization is None else personalization / personalization.sum()
    q = p if dangling is None else dangling / dangling.sum()
    double = fields["scores"].dtype == np.float64
    unit = 1e-12 if double else 1e-4
    if tol is None:
        tol = 1e-6 if double else 1e-5
    if not (x >= 0).all() or not abs(x.sum() - 1) <= unit:
        return False
    step = damping * (x @ P + x[lost].sum() * q) + (1 - damping) * p
    start = np.full(n, 1 / n)
    first = np.abs(damping * (start @ P + start[lost].sum() * q) + (1 - damping) * p - start).sum()
    most = first * damping ** min(max(iterations, 1) - 1, 10**6)
    return bool(
        np.abs(step - x).sum() <= damping * error + unit
        and fields["converged"] == (error < tol)
        and (1 <= iterations <= MOST if fields["converged"] else iterations == MOST)
        and error <= most + unit
    )


def surfer_matrix(G: Any, weighted: bool) -> tuple[Any, Any]:
    A = np.zeros((G.n, G.n))
    rows = np.repeat(np.arange(G.n), np.diff(G.indptr))
    values = G.data if weighted and G.data is not None else np.ones(G.indices.size)
    np.add.at(A, (rows, G.indices), values.astype(np.float64))
    sums = A.sum(axis=1)
    return A / np.where(sums > 0, sums, 1)[:, None], sums == 0
