"""Is this a partition, with no block empty, and is all that it says of itself right?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from matchwood import answers, arguments, engines
from matchwood.arguments import shown
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.partitioning.kway import multilevel
from matchwood.partitioning.kway.task import Task, cut_as_given, task_of

PROBLEM = "partition"


def check_partition(
    A: Any,
    answer: Any,
    *,
    k: int | None = None,
    imbalance: float = 0.03,
    vertex_weights: Any = None,
    block_weights: Any = None,
    fixed: Any = None,
    balanced: bool = False,
    replay: bool = False,
    **options: Any,
) -> None:
    """Raise `CheckFailed` unless `answer` is a partition of `A` into k blocks, rightly described.

    Labels lie in 0..k-1, no block is empty, fixed vertices are where they must be; cut, weights,
    limits, excess, boundary, volume, pieces and quotient of a `Partition` are those of its labels.
    Where all vertices weigh 1 and none is fixed, no block is too heavy.

    What it does not decide: whether the cut is small, or whether it is the answer of a call.
    `replay` decides that.

    Parameters
    ----------
    A : as given to `partition`
    answer : Partition, (cut, labels) or labels
    k : int or None
        Number of blocks; None takes that of the answer, or one more than the largest label.
    imbalance, vertex_weights, block_weights, fixed
        As given to `partition`.
    balanced : bool
        True: no block may be too heavy, whatever the weights are.
    replay : bool
        The reference finds the partition once more, with the `options` of the call (`effort`,
        `connected`, `rng`); labels, and the levels of a `Partition`, must be the same.  In plain
        Python, some microseconds for an edge and iteration.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError, ValueError
        If it cannot be an answer: labels do not hold integers; if the arguments are refused, or
        `A` has negative weights.

    Notes
    -----
    A look at every edge.  Memory: some arrays of the entries.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_partition(A, [0, 0, 1, 1])
    >>> matchwood.check.check_partition(A, (2, [0, 0, 1, 1]))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: partition: the cut is 1, got 2
    >>> matchwood.check.check_partition(A, [0, 0, 0, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: partition: block 0 weighs 3, more than its limit 2
    >>> matchwood.check.check_partition(A, [0, 0, 2, 2])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: partition: block 1 is empty
    """
    caller = "check_partition"
    arguments.flag(caller, "balanced", balanced)
    if not arguments.flag(caller, "replay", replay):
        for name in options:
            raise TypeError(f"{caller}: {name} is for a replay; pass replay=True too")
    for name in options:
        arguments.one_of(caller, "an option of a replay", name, ("effort", "connected", "rng"))
    G = csr.as_graph(A, caller).on("cpu")
    if G.weighted:
        G.undirected_weights(caller, negative="error")
    cut, given = _taken_apart(answer)
    labels = engines.moved(answers.integers(caller, PROBLEM, "labels", given, (G.n,), "cpu"), "cpu")
    if k is None:
        k = answer.k if _is_ours(answer) else int(labels.max(initial=0)) + 1
    task = task_of(caller, G.n, k, imbalance, vertex_weights, block_weights, fixed)
    at = answers.first((labels < 0) | (labels >= task.k))
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: vertex {at} has label {labels[at]}, not in 0..{task.k - 1}")
    weights = _check_blocks(labels, task, G.n, balanced or (vertex_weights is None))
    if cut is not None or _is_ours(answer):
        _check_cut(G, labels, cut)
    if _is_ours(answer):
        _check_description(G, answer, labels, task, weights)
    if replay:
        task = task_of(
            caller, G.n, k, imbalance, vertex_weights, block_weights, fixed,
            **{name: value for name, value in options.items() if name != "connected"},
        )  # fmt: skip
        run = multilevel.begin(G, task, caller, "reference")
        right = multilevel.partitioned(run, options.get("connected", False))
        v = answers.first(labels != right)
        if v is not None:
            raise CheckFailed(
                f"{PROBLEM}: vertex {v} has label {labels[v]}, but the replay gives {right[v]}"
            )
        if _is_ours(answer) and [tuple(x)[:4] for x in answer.levels] != [x[:4] for x in run.log]:
            raise CheckFailed(f"{PROBLEM}: levels must be the {len(run.log)} of the replay")


def _is_ours(answer: Any) -> bool:
    """Whether it is a `Partition`, which says more than its labels."""
    return all(hasattr(answer, name) for name in ("cut", "labels", "weights", "limits", "graph"))


def _taken_apart(answer: Any) -> tuple[Any, Any]:
    """The cut, or None, and the labels."""
    if _is_ours(answer):
        return answer.cut, answer.labels
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    return None, answer


def _check_blocks(labels: Any, task: Task, n: int, balanced: bool) -> Any:
    """None is empty, fixed vertices are where they must be, limits are kept; the weights."""
    if n:
        fixed = labels[:0] if task.fixed is None else task.fixed[task.fixed >= 0]
        at = answers.first(np.bincount(labels, minlength=task.k) == 0)
        # those that may move fill at least the blocks that have nothing fixed
        if at is not None and n - fixed.size >= task.k - np.unique(fixed).size:
            raise CheckFailed(f"{PROBLEM}: block {at} is empty")
    if task.fixed is not None:
        at = answers.first((task.fixed >= 0) & (task.fixed != labels))
        if at is not None:
            raise CheckFailed(
                f"{PROBLEM}: vertex {at} is fixed to block {task.fixed[at]}, but is in {labels[at]}"
            )
    weights = np.zeros(task.k, np.int64)
    np.add.at(weights, labels, task.weights)
    at = answers.first(weights > task.limits)
    if balanced and at is not None:
        raise CheckFailed(
            f"{PROBLEM}: block {at} weighs {task.given(int(weights[at]))}, more than its limit "
            f"{task.given(int(task.limits[at]))}"
        )
    return weights


def _check_cut(G: csr.Graph, labels: Any, cut: Any) -> None:
    if not (arguments.is_integer(cut) or isinstance(cut, (float, np.floating))):
        raise TypeError(f"check_partition: cut must be a number, got {shown(cut)}")
    right = cut_as_given(G, labels)
    if not math.isclose(float(cut), right, rel_tol=1e-9, abs_tol=1e-300):
        raise CheckFailed(f"{PROBLEM}: the cut is {right:.12g}, got {shown(cut)}")


def _check_description(G: csr.Graph, answer: Any, labels: Any, task: Task, weights: Any) -> None:
    """All that a `Partition` says of itself is that of its labels."""
    wanted = {"weights": task.given(weights), "limits": task.given(task.limits)}
    for name, right in wanted.items():
        value = answers.reals("check_partition", PROBLEM, name, getattr(answer, name),
                              (task.k,), "cpu")  # fmt: skip
        at = answers.first(np.asarray(value) != right)
        if at is not None:
            raise CheckFailed(f"{PROBLEM}: {name}[{at}] is {right[at]}, got {value[at]}")
    if answer.graph is None:
        return
    view = G.undirected_weights() if G.weighted else G.undirected_pattern()
    rows = np.repeat(np.arange(G.n), np.diff(view.indptr))
    across = labels[rows] != labels[view.indices]
    u, v = rows[across], view.indices[across]
    boundary = np.flatnonzero(np.bincount(u, minlength=G.n))
    if not np.array_equal(answer.boundary, boundary):
        raise CheckFailed(
            f"{PROBLEM}: boundary must be the {boundary.size} vertices with neighbours elsewhere"
        )
    data = np.ones(u.size) if view.data is None else view.data[across].astype(np.float64)
    volume = coo_array((data, (u, labels[v])), shape=(G.n, task.k)).tocsr().nnz
    if answer.volume != volume:
        raise CheckFailed(f"{PROBLEM}: volume is {volume}, got {shown(answer.volume)}")
    right = coo_array((data, (labels[u], labels[v])), shape=(task.k, task.k)).tocsr()
    found = answer.quotient()
    if not (
        np.array_equal(found.indptr, right.indptr)
        and np.array_equal(found.indices, right.indices)
        and np.allclose(found.data, right.data, rtol=1e-6, atol=0)
    ):
        raise CheckFailed(f"{PROBLEM}: quotient() is not the matrix of the weights between blocks")
    inside = coo_array(
        ((~across)[~across], (rows[~across], view.indices[~across])), shape=(G.n, G.n)
    )
    count, piece = connected_components(inside, directed=False)
    block = np.zeros(count, np.int64)
    block[piece] = labels
    pieces = np.bincount(block, minlength=task.k)
    value = answers.integers("check_partition", PROBLEM, "pieces", answer.pieces, (task.k,), "cpu")
    at = answers.first(value != pieces)
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: pieces[{at}] is {pieces[at]}, got {value[at]}")


def is_partition(A: Any, answer: Any, **options: Any) -> bool:
    """Whether this is a partition, rightly described; `check_partition` says why not.

    Its options are those of `check_partition`.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.partitioning import is_partition
    >>> A = matchwood.generators.path(4)
    >>> is_partition(A, [0, 0, 1, 1]), is_partition(A, [0, 1, 1, 1])
    (True, False)
    """
    return answers.holds(check_partition, A, answer, **options)
