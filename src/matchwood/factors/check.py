"""Is this a [0,n]-factor, is it maximal?  Decided from the definition, by sorting pairs.

A factor lists every edge twice, once at each end.  So the pairs (v, w) that it lists must be
edges, no pair may occur twice, and the pairs (w, v) must be the same set.  The second half of the
file decides whether it is the factor that `degree_factor` gives for its arguments.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import answers, calls, engines
from matchwood.errors import CheckFailed
from matchwood.factors.plan import directed_magnitudes, in_words, make_plan
from matchwood.factors.result import Plan, origin_of
from matchwood.gate import graph as csr
from matchwood.primitives.hashing import hash2, round_number
from matchwood.primitives.hashing.reference import quarter_md5_array

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

    asked(1)  # without a method the other arguments are not used, but must be valid
    view, n, _listed, table = _pairs(A, answer, directed=directed if method is not None else None)
    plan = origin_of(answer).plan if method is None else asked(n)
    if plan is not None:
        if not isinstance(plan, Plan):
            raise TypeError(f"check_factor: plan must be a Plan, got {type(plan).__name__}")
        said = bool(getattr(answer, "directed", plan.directed))
        if (plan.n, plan.directed) != (n, said):
            raise CheckFailed(
                f"factor: the plan is for n={plan.n}, directed={plan.directed}; "
                f"the answer has n={n}, directed={said}"
            )
        _check_by_plan(view, plan, table, answer)


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
    addable = ~within(u * view.n + v, listed)
    if getattr(answer, "directed", False):  # an edge needs both directions
        addable &= within(v * view.n + u, _rows(view) * view.n + view.indices)
    if (k := answers.first(addable)) is not None:
        i, j = int(u[k]), int(v[k])
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


def within(keys: Array, ascending: Array) -> Array:
    """Which keys occur in an ascending list."""
    if ascending.size == 0:
        return np.zeros(keys.size, bool)
    found: Array = ascending[np.searchsorted(ascending, keys).clip(max=ascending.size - 1)] == keys
    return found


def _pairs(A: Any, answer: Any, directed: bool | None = None) -> tuple[csr.View, int, Array, Array]:
    """The graph, n, the pairs v N + w that the factor lists, ascending, and its table; checked."""
    G = calls.enter(A, "check_factor", "cpu").graph
    directed = bool(getattr(answer, "directed", False)) if directed is None else directed
    view = directed_magnitudes(G, "check_factor") if directed else G.undirected_weights()
    return view, *pairs_of(view, answer)


def pairs_of(view: csr.View, answer: Any) -> tuple[int, Array, Array]:
    """`_pairs` of a view, which lives on the CPU; `CheckFailed` unless `answer` is its factor."""
    N = view.n
    table = _table(answer, N)
    v, slot = np.nonzero(table >= 0)
    w = table[v, slot]
    keys = v * N + w
    at = np.searchsorted(edges := _rows(view) * N + view.indices, keys)
    if (k := answers.first(~within(keys, edges))) is not None:
        raise CheckFailed(f"factor: vertex {v[k]} lists {w[k]}, but ({v[k]}, {w[k]}) is no edge")
    listed = np.sort(keys)
    if (k := answers.first(listed[1:] == listed[:-1])) is not None:
        i, j = divmod(int(listed[k]), N)
        raise CheckFailed(f"factor: vertex {i} lists {j} twice")
    if (k := answers.first(~within(w * N + v, listed))) is not None:
        raise CheckFailed(f"factor: vertex {v[k]} lists {w[k]}, but {w[k]} does not list {v[k]}")
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
    if (k := answers.first(weights[v, slot] != data[at])) is not None:
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


# Is it the factor that the arguments give?  Decided from the definition, with NumPy.


def _check_by_plan(view: Any, plan: Plan, table: Array, answer: Any) -> None:
    """Raise `CheckFailed` unless `table`, a factor of the view, is what the plan gives."""
    u, v = _rows(view), view.indices.astype(np.int64)
    order = _order(u, v, view.data, plan)
    position = np.empty(u.size, np.int64)
    position[order] = np.arange(u.size)
    taken = (table[u] == v[:, None]).any(axis=1)
    if plan.method == "greedy":
        _check_greedy(u, v, position, taken, plan.n)
    else:
        _check_rounds(view.n, u, v, order, taken, plan, answer)
    if hasattr(answer, "neighbours"):
        _check_places(table, u, v, position, taken)


def _order(u: Array, v: Array, w: Array, plan: Plan) -> Array:
    """The entries by preference: among all for the greedy rule, else within each row."""
    low, high = np.minimum(u, v), np.maximum(u, v)
    bits = -w.astype(np.float64).view(np.int64)  # magnitudes ascend as their bits do
    ties = []
    if plan.by_hash:
        hashes = hash2(low, high, plan.seed, engine="reference")
        ties = [(~hashes ^ np.uint64(1 << 63)).view(np.int64)]  # in the order of unsigned numbers
    rows = np.zeros_like(u) if plan.method == "greedy" else u
    return _sorted(rows, bits, *ties, low, high)


def _sorted(rows: Array, *keys: Array) -> Array:
    """The order by rows, which ascend, then by the keys, all int64.

    As ``np.lexsort((*keys[::-1], rows))`` gives it, in a tenth of the time: SciPy sorts each row
    for itself, and the next key has to sort no more than what is still level.
    """
    order = np.arange(rows.size)
    differs = rows[1:] != rows[:-1]
    for key in keys:
        if differs.all():
            break
        indptr = np.concatenate([[0], np.flatnonzero(differs) + 1, [rows.size]])
        shape = indptr.size - 1, np.iinfo(np.int64).max
        level = sp.csr_array((order, key[order], indptr), shape=shape)
        level.sort_indices()
        order = level.data
        differs |= level.indices[1:] != level.indices[:-1]
    return order


def _check_places(table: Array, u: Array, v: Array, position: Array, taken: Array) -> None:
    """Raise `CheckFailed` unless neighbours are listed by preference."""
    chosen = np.flatnonzero(taken)
    chosen = chosen[np.lexsort((position[chosen], u[chosen]))]
    expected = np.full_like(table, -1)
    expected[u[chosen], _place_in_row(u[chosen])] = v[chosen]
    if (i := answers.first((table != expected).any(axis=1))) is not None:
        raise CheckFailed(
            f"factor: vertex {i} lists {table[i].tolist()}, by preference {expected[i].tolist()}"
        )


def _check_greedy(u: Array, v: Array, position: Array, taken: Array, n: int) -> None:
    """Raise `CheckFailed` unless the entries (u, v) that are `taken` are the greedy factor.

    That is the one in which every edge outside has an end that is full with edges before it.
    """
    size = int(u.max(initial=-1)) + 1
    degree = np.bincount(u[taken], minlength=size)
    weakest = np.full(size, -1)
    np.maximum.at(weakest, u[taken], position[taken])
    blocked_by_tail = (degree[u] == n) & (weakest[u] < position)
    blocked_by_head = (degree[v] == n) & (weakest[v] < position)
    if (k := answers.first(~taken & ~blocked_by_tail & ~blocked_by_head)) is not None:
        raise CheckFailed(
            f"factor: edge ({u[k]}, {v[k]}) comes before an edge of each of its ends, or fits"
        )


def _check_rounds(
    n: int, u: Array, v: Array, order: Array, taken: Array, plan: Plan, answer: Any
) -> None:
    """Raise `CheckFailed` unless the entries (u, v) that are `taken` are those of the rounds.

    With random charges they depend on the order of the proposals, so no property of the answer
    alone decides.  The rounds are repeated, all vertices at once, with the entries of the matrix in
    the order of preference.  Nothing but the hashes is shared with the engines.
    """
    expected, rounds, maximal = _proposed(n, u, v, order, plan)
    if (k := answers.first(taken != expected)) is not None:
        what = "is not confirmed in any round" if taken[k] else "is confirmed by the rounds"
        where = "in" if taken[k] else "missing from"
        raise CheckFailed(f"factor: edge ({u[k]}, {v[k]}) {what}, but {where} the factor")
    for name, right in (("rounds", rounds), ("maximal", maximal)):
        said = getattr(answer, name, right)
        if said != right:
            raise CheckFailed(f"factor: {name} is {said}, must be {right}")


def _proposed(n: int, u: Array, v: Array, order: Array, plan: Plan) -> tuple[Array, int, bool]:
    """The entries that the rounds confirm, the number of rounds, and whether it is maximal."""
    keys = u * n + v  # ascending, as rows are sorted
    # sorted before they are looked for: that reads the keys in order
    turned = sp.csr_array((np.arange(u.size), v, np.searchsorted(u, np.arange(n + 1))), (n, n))
    entry = turned.tocsc().data
    back = np.empty(u.size, np.int64)
    back[entry] = np.searchsorted(keys, (v * n + u)[entry]).clip(max=max(keys.size - 1, 0))
    mirrored = keys[back] == v * n + u if keys.size else np.zeros(0, bool)
    confirmed, degree = np.zeros(u.size, bool), np.zeros(n, np.int64)
    proposes = np.zeros(u.size, bool)
    live, idle = order, 0
    vertices = np.arange(n)
    for k in itertools.count():
        if k == plan.limit or (plan.limit < 0 and idle == plan.period):
            return confirmed, k, False
        asked = live
        if plan.charged(k):
            charge = quarter_md5_array(vertices, round_number(plan.seed, k)) < plan.barrier
            asked = live[charge[u[live]] != charge[v[live]]]
        proposed = asked[_place_in_row(u[asked]) < plan.n - degree[u[asked]]]
        if not plan.charged(k) and proposed.size == 0:
            return confirmed, k + 1, True
        proposes[proposed] = True
        mutual = proposed[mirrored[proposed] & proposes[back[proposed]]]
        proposes[proposed] = False
        confirmed[mutual] = True
        degree += np.bincount(u[mutual], minlength=n)
        room = degree < plan.n
        live = live[~confirmed[live] & room[u[live]] & room[v[live]]]
        idle = 0 if mutual.size else idle + 1
    raise AssertionError("unreachable")


def _place_in_row(rows: Array) -> Array:
    """0, 1, ... within each run of equal rows."""
    at = np.arange(rows.size)
    starts = np.ones(rows.size, bool)
    starts[1:] = rows[1:] != rows[:-1]
    return at - np.maximum.accumulate(np.where(starts, at, 0))
