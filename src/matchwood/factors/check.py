"""Is this a [0,n]-factor, is it maximal?  Decided from the definition, by sorting pairs.

Whether it is the one that `degree_factor` gives for its arguments: check_method.py.

A factor lists every edge twice, once at each end.  So the pairs (v, w) that it lists must be
edges, no pair may come twice, and the pairs (w, v) must be the same set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, calls, engines
from matchwood.errors import CheckFailed
from matchwood.factors.check_method import check_by_plan
from matchwood.factors.plan import make_plan
from matchwood.factors.renamed import in_words
from matchwood.factors.result import Plan, origin_of
from matchwood.factors.views import directed_magnitudes
from matchwood.gate import graph as csr

Array = np.ndarray[Any, Any]


def check_factor(
    A: Any,
    answer: Any,
    *,
    method: str | None = None,
    rounds: int | None = 5,
    period: int = 5,
    uncharged: int = 0,
    charge_probability: float = 0.5,
    rng: Any = 0,
    ties: str = "hash",
    directed: bool = False,
    **letters: Any,
) -> None:
    """Raise `CheckFailed` unless `answer` is a [0,n]-factor of the graph of `A`.

    A graph has many factors.  A `Factor` that `degree_factor` made keeps its arguments, and must be
    the one factor that these give; so must any answer when `method` is given here.

    Parameters
    ----------
    A : as given to `degree_factor`
    answer : Factor, or an (N, n) array of neighbours with -1 for none
        Of a `Factor` the weights and their order are checked as well.
    method : {None, "auto", "parallel", "greedy"}
        None checks against the arguments that the `answer` keeps, if any.
    rounds, period, uncharged, charge_probability, rng, ties, directed : as for `degree_factor`
        Read only if `method` is given.  A `Generator` gives another number now; pass the seed that
        it gave.

    Notes
    -----
    A greedy factor is checked in a pass over the edges.  The result of rounds with charges cannot
    be checked from the answer alone, so the rounds are repeated, by other code than the engines':
    work as for `degree_factor`, and memory for some ten arrays of the size of the matrix.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.factors import check_factor
    >>> A = matchwood.generators.path(3)
    >>> check_factor(A, [[1], [0], [-1]])
    >>> check_factor(A, [[1], [2], [1]])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: factor: vertex 0 lists 1, but 1 does not list 0
    """
    options = in_words("check_factor", letters, {
        "rounds": rounds, "period": period, "uncharged": uncharged,
        "charge_probability": charge_probability,
    })  # fmt: skip

    def asked(n: int) -> Plan:
        chosen = "auto" if method is None else method
        return make_plan(
            "check_factor", n, method=chosen, rng=rng, ties=ties, directed=directed, **options
        )

    asked(1)  # without a method the others do not count, but must make sense
    view, n, _listed, table = _pairs(A, answer, directed=directed if method is not None else None)
    plan = origin_of(answer).plan if method is None else asked(n)
    if plan is not None:
        _check_plan(plan, n, answer)
        check_by_plan(view, plan, table, answer)


def _check_plan(plan: Any, n: int, answer: Any) -> None:
    if not isinstance(plan, Plan):
        raise TypeError(f"check_factor: plan must be a Plan, got {type(plan).__name__}")
    said = getattr(answer, "directed", plan.directed)
    if plan.n != n or bool(said) != plan.directed:
        raise CheckFailed(
            f"factor: the plan is for n={plan.n}, directed={plan.directed}; "
            f"the answer has n={n}, directed={bool(said)}"
        )


def check_maximal_factor(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is a [0,n]-factor to which no edge can be added.

    Parameters
    ----------
    A : as given to `degree_factor`
    answer : Factor, or an (N, n) array of neighbours with -1 for none

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.factors import check_maximal_factor
    >>> A = matchwood.generators.path(4)
    >>> check_maximal_factor(A, [[-1], [2], [1], [-1]])
    >>> check_maximal_factor(A, [[1], [0], [-1], [-1]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: factor: edge (2, 3) could be added: ...
    """
    with answers.in_the_name_of("check_maximal_factor"):
        check_factor(A, answer)
    view, n, listed, _table = _pairs(A, answer)
    degree = np.bincount(listed // max(view.n, 1), minlength=view.n)
    u, v = _rows(view), view.indices.astype(np.int64)
    room = (degree[u] < n) & (degree[v] < n) & (u < v)
    u, v = u[room], v[room]
    addable = ~_within(u * view.n + v, listed)
    if getattr(answer, "directed", False):  # an edge needs both directions
        addable &= _within(v * view.n + u, _rows(view) * view.n + view.indices)
    if addable.any():
        at = int(addable.argmax())
        i, j = int(u[at]), int(v[at])
        raise CheckFailed(
            f"factor: edge ({i}, {j}) could be added: its ends have {degree[i]} and {degree[j]} "
            f"of {n} neighbours"
        )


def is_factor(A: Any, answer: Any) -> bool:
    """Whether `answer` is a [0,n]-factor; `check_factor` says at which vertices it is not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.factors import is_factor
    >>> is_factor(matchwood.generators.path(3), [[1], [2], [1]])
    False
    """
    return answers.holds(check_factor, A, answer)


def is_maximal_factor(A: Any, answer: Any) -> bool:
    """Whether `answer` is a maximal [0,n]-factor; `check_maximal_factor` says where it is not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.factors import is_maximal_factor
    >>> is_maximal_factor(matchwood.generators.path(3), [[1], [0], [-1]])
    True
    """
    return answers.holds(check_maximal_factor, A, answer)


def _rows(view: csr.View) -> Array:
    return np.repeat(np.arange(view.n), np.diff(view.indptr))


def _within(keys: Array, ascending: Array) -> Array:
    """Which keys occur in an ascending list."""
    if ascending.size == 0:
        return np.zeros(keys.size, bool)
    found: Array = ascending[np.searchsorted(ascending, keys).clip(max=ascending.size - 1)] == keys
    return found


def factor_fault(view: csr.View, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is a factor of the view, which lives on the CPU."""
    _pairs_of(view, answer)


def _pairs(
    A: Any, answer: Any, directed: bool | None = None
) -> tuple[csr.View, int, Array, Array]:  # fmt: skip
    """The graph, n, the pairs v N + w that the factor lists, ascending, and its table; checked."""
    G = calls.enter(A, "check_factor", "cpu").graph
    directed = bool(getattr(answer, "directed", False)) if directed is None else directed
    view = directed_magnitudes(G, "check_factor") if directed else G.undirected_weights()
    return view, *_pairs_of(view, answer)


def _pairs_of(view: csr.View, answer: Any) -> tuple[int, Array, Array]:
    N = view.n
    table = _table(answer, N)
    v, slot = np.nonzero(table >= 0)
    w = table[v, slot]
    keys = v * N + w
    at = np.searchsorted(edges := _rows(view) * N + view.indices, keys)
    missing = ~_within(keys, edges)
    if missing.any():
        i, j = int(v[missing.argmax()]), int(w[missing.argmax()])
        raise CheckFailed(f"factor: vertex {i} lists {j}, but ({i}, {j}) is no edge")
    listed = np.sort(keys)
    twice = listed[1:] == listed[:-1]
    if twice.any():
        i, j = divmod(int(listed[:-1][twice][0]), N)
        raise CheckFailed(f"factor: vertex {i} lists {j} twice")
    alone = ~_within(w * N + v, listed)
    if alone.any():
        i, j = int(v[alone.argmax()]), int(w[alone.argmax()])
        raise CheckFailed(f"factor: vertex {i} lists {j}, but {j} does not list {i}")
    if hasattr(answer, "neighbours"):
        _check_weights(_numbers(answer.weights), table, view.data, v, slot, at)
    return table.shape[1], listed, table


def _table(answer: Any, N: int) -> Array:
    """The neighbours as int64, within -1..N - 1; floats and truth values are no vertices."""
    table = getattr(answer, "neighbours", answer)
    table = np.asarray(engines.moved(table, "cpu"))
    if table.ndim != 2 or table.shape[0] != N or table.shape[1] < 1:
        raise CheckFailed(f"factor: neighbours must have shape ({N}, n), got {table.shape}")
    if table.dtype.kind not in "iu" and table.size:
        raise TypeError(f"check_factor: neighbours must hold integers, got dtype {table.dtype}")
    outside = (table < -1) | (table >= N)
    if outside.any():
        v, slot = np.argwhere(outside)[0].tolist()
        raise CheckFailed(
            f"factor: vertex {v} lists {table[v, slot]}, no vertex of 0..{N - 1} and not -1"
        )
    return table.astype(np.int64)


def _numbers(weights: Any) -> Array:
    array = np.asarray(engines.moved(weights, "cpu"))
    if array.dtype.kind not in "iuf":
        raise TypeError(f"check_factor: weights must hold numbers, got dtype {array.dtype}")
    return array


def _check_weights(
    weights: Array, table: Array, data: Array, v: Array, slot: Array, at: Array
) -> None:
    if weights.shape != table.shape:
        raise CheckFailed(f"factor: weights must have shape {table.shape}, got {weights.shape}")
    wrong = weights[v, slot] != data[at]
    if wrong.any():
        k = int(wrong.argmax())
        i, j = int(v[k]), int(table[v[k], slot[k]])
        raise CheckFailed(
            f"factor: edge ({i}, {j}) weighs {data[at[k]]}, got {weights[i, slot[k]]}"
        )
    idle = (table < 0) & (weights != 0)
    if idle.any():
        i, s = np.argwhere(idle)[0].tolist()
        raise CheckFailed(f"factor: vertex {i} has no neighbour {s}, but a weight {weights[i, s]}")
    rising = weights[:, 1:] > weights[:, :-1]
    if rising.any():
        i, s = np.argwhere(rising)[0].tolist()
        raise CheckFailed(f"factor: vertex {i} must list its heaviest edge first, got {weights[i]}")
