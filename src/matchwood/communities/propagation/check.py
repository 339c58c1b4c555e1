"""Are these labels settled: does every vertex have one of the heaviest around it?"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments, calls
from matchwood.communities.answers import (
    counted,
    float_modularity,
    graph_and_level,
    no_replay,
    replayed,
    stated,
    weights_around,
)
from matchwood.communities.propagation import label_propagation
from matchwood.communities.propagation.reference import SPLIT_ROUNDS, Plan
from matchwood.communities.subrounds import subrounds_of
from matchwood.communities.weights import Level, level_of
from matchwood.components.answers import numbered
from matchwood.errors import CheckFailed
from matchwood.primitives.hashing import hash2, mix64

PACKAGE = __name__.rpartition(".")[0]


def check_label_propagation(
    A: Any,
    answer: Any,
    *,
    settled: bool = True,
    numbering: str = "exact",
    replay: bool = False,
    **options: Any,
) -> None:
    """Raise `CheckFailed` unless no vertex has a heavier label around it than its own.

    That is how label propagation ends.  Many labels are settled, all in one among them where the
    graph is connected; which of them a seed leads to, `replay` decides.

    Parameters
    ----------
    A : as given to `label_propagation`
    answer : Communities, (count, labels), labels or sets of vertices
        Where it has a `modularity`, that must be the one of the labels, to 1e-9.
    settled : bool
        False: only numbers and modularity are looked at, for runs that were cut short by
        `max_rounds` or `tol`.
    numbering : {"exact", "any"}
        As for `check_communities`.
    replay : bool
        Also let the reference find the labels once more, with the `options` of the call
        (`max_rounds`, `tol`, `rng`); labels, modularity and rounds must be its.  In plain Python,
        some microseconds for an edge and round.  `settled` is not asked then.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError, ValueError
        If it cannot be an answer: labels do not hold integers; or `A` has negative weights.

    Notes
    -----
    Runs where `A` lives.  Entries are sorted by vertex and label: memory for some arrays of them.

    Of a `DistributedGraph` all ranks call it, each with its part of the answer.  Nothing is
    gathered, and what one rank finds wrong, all raise.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_label_propagation(A, [0, 0, 1, 1])
    >>> matchwood.check.check_label_propagation(A, [0, 1, 1, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: label propagation: vertex 0 has label 0 of weight 0, but label \
1 around it weighs 1
    """
    caller = "check_label_propagation"

    def checked() -> None:
        arguments.flag(caller, "settled", settled)
        if not arguments.flag(caller, "replay", replay):
            no_replay(caller, options)
        elif calls.is_distributed(A):
            raise ValueError(f"{caller}: replay must be False for a DistributedGraph, got True")

    calls.agreed(A, checked)
    call = calls.enter(A, caller)
    if call.engine == "ranks":
        call.load_check(PACKAGE).check(A, answer, caller, settled, numbering)
        return
    G, level = graph_and_level(A, caller)
    labels, _, given = numbered(caller, "label propagation", answer, G.n, G.engine, numbering)
    if settled and not replay and G.n:
        _heaviest(level, labels, given)
    counted(caller, "label propagation", answer)
    if hasattr(answer, "modularity") and not callable(answer.modularity):
        right = float_modularity(level, labels, 1.0)
        stated("label propagation", right, answer.modularity)
    if replay:
        replayed(caller, "label propagation", answer, labels, G, label_propagation, options)


def _heaviest(level: Any, labels: Any, given: Any) -> None:
    """Compare the weights of all labels around each vertex."""
    own, vertex, label, sums = weights_around(level, labels)
    worse = answers.first(sums > own[vertex])
    if worse is not None:
        v, c = int(vertex[worse]), int(label[worse])
        other = given[int((labels == c).argmax())]
        raise CheckFailed(
            f"label propagation: vertex {v} has label {given[v]} of weight {own[v]}, "
            f"but label {other} around it weighs {sums[worse]}"
        )


def is_label_propagation(A: Any, answer: Any, **options: Any) -> bool:
    """Whether these labels are settled; `check_label_propagation` says why not.

    Its options are those of `check_label_propagation`.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.communities import is_label_propagation
    >>> A = matchwood.generators.path(4)
    >>> is_label_propagation(A, [0, 0, 1, 1]), is_label_propagation(A, [0, 1, 1, 1])
    (True, False)
    """
    return answers.holds(check_label_propagation, A, answer, **options)


# Label propagation once more, with NumPy: what checks compare labels with.
#
# The rule is that of reference.py; the vertices of a sub-round are taken together.  Their entries
# are sorted by (vertex, label), equal ones added up, and of each vertex the best is the last one by
# (value, hash).


class Labels:
    """The labels of vertices, how many have each, and who is active."""

    def __init__(self, level: Level, gamma: float) -> None:
        n = level.n
        self.level, self.gamma = level, gamma
        self.labels = np.arange(n)
        self.size = np.ones(n, np.int64)
        self.active = np.ones(n, bool)
        self.hash = mix64(np.arange(n, dtype=np.uint64), engine="cpu")

    def entries(self, vertices: Any) -> tuple[Any, Any]:
        """The entries of the rows of these vertices, and the vertex that each belongs to."""
        begin = self.level.indptr[vertices].astype(np.int64)
        size = self.level.indptr[vertices + 1] - begin
        which = np.repeat(np.arange(vertices.size), size)
        return np.arange(which.size) + np.repeat(begin - np.cumsum(size) + size, size), which

    def targets(self, turn: Any) -> Any:
        """The label that each of these takes; they are no longer active."""
        self.active[turn] = False
        n, own = self.level.n, self.labels[turn]
        at, which = self.entries(turn)
        data = self.level.data
        weight = np.ones(at.size, np.int64) if data is None else data[at]
        at, which, weight = at[weight > 0], which[weight > 0], weight[weight > 0]
        keys = which * n + self.labels[self.level.indices[at]]
        keys = np.concatenate([keys, np.arange(turn.size) * n + own])  # its own counts in any case
        distinct, where = np.unique(keys, return_inverse=True)
        sums = np.zeros(distinct.size, np.int64)
        np.add.at(sums, where.reshape(-1)[: weight.size], weight)
        which, label = distinct // n, distinct % n
        others = self.size[label] - (label == own[which])
        value = (1.0 + self.gamma) * sums.astype(np.float64) - self.gamma * others
        order = np.lexsort((~self.hash[label], value, which))
        return label[order[np.flatnonzero(np.diff(which[order], append=-1))]]

    def go(self, vertices: Any, target: Any) -> None:
        """Give all of them their new labels; their neighbours become active."""
        np.subtract.at(self.size, self.labels[vertices], 1)
        np.add.at(self.size, target, 1)
        self.labels[vertices] = target
        self.active[self.level.indices[self.entries(vertices)[0]]] = True

    def split_round(self, number: int, seed: int) -> int:
        """A round of sub-rounds; returns how many labels changed."""
        n, moved = self.level.n, 0
        parts = subrounds_of(n)
        hashes = hash2(np.arange(n), np.full(n, number), seed, engine="cpu")
        turn_of = (hashes % np.uint64(parts)).astype(np.int64)
        order = np.argsort(turn_of, kind="stable")
        for turn in np.split(order, np.cumsum(np.bincount(turn_of, minlength=parts))[:-1]):
            turn = turn[self.active[turn]]
            if turn.size == 0:
                continue
            target = self.targets(turn)
            moves = target != self.labels[turn]
            self.go(turn[moves], target[moves])
            moved += int(moves.sum())
        return moved

    def careful_round(self) -> int:
        """A round in which of neighbours that want to move the first by hash does."""
        turn = np.flatnonzero(self.active)
        if turn.size == 0:
            return 0
        target = self.targets(turn)
        wants = target != self.labels[turn]
        turn, target = turn[wants], target[wants]
        wish = np.zeros(self.level.n, bool)
        wish[turn] = True
        at, which = self.entries(turn)
        u = self.level.indices[at]
        late = np.zeros(turn.size, bool)
        late[which[wish[u] & (self.hash[u] < self.hash[turn][which])]] = True
        self.active[turn[late]] = True
        self.go(turn[~late], target[~late])
        return int((~late).sum())


def replayed_layer(
    graph: Any, gamma: float, *, caller: str, max_rounds: int, tol: float, seed: int
) -> tuple[Any, int]:
    """What `layer` must return, by NumPy alone; for checks.  `graph` lives on the CPU."""
    level, plan = level_of(graph, caller), Plan(gamma, max_rounds, tol, seed)
    state = Labels(level, plan.gamma)
    if level.indices.size == 0:
        return state.labels, 0
    for number in range(plan.max_rounds):
        early = number < SPLIT_ROUNDS
        moved = state.split_round(number, plan.seed) if early else state.careful_round()
        if moved <= plan.enough(level.n):
            return state.labels, number + 1
    return state.labels, plan.max_rounds
