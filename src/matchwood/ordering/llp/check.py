"""Is this the order of these layers?  Each layer is propagated anew and put on top of the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import flag, seed
from matchwood.communities.propagation.check import replayed_layer
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.gap.check import expected_gaps
from matchwood.ordering.llp import GAMMAS, MAX_ROUNDS, STILL_SHARE, checked_gammas
from matchwood.ordering.permutation.check import permutation

PROBLEM = "layered order"


def check_layered_order(
    A: Any, answer: Any, *, gammas: Sequence[float] = GAMMAS, rng: Any = 0, replay: bool = True
) -> None:
    """Raise `CheckFailed` unless the order of `answer` is that of its layers, and they are right.

    Labels must be vertices; layers must go from the largest log_gap to the least; and the order
    must be the one that they give.  Last, every layer is replayed: its labels and its rounds must
    be those of label propagation.

    Parameters
    ----------
    A, gammas, rng : as given to `layered_label_propagation_order`
    answer : what ``locality_ordering(A, "llp")`` returns
        Its `perm` and its `layers` are checked.
    replay : bool
        False leaves the replay out.  Then the order is that of its layers, but their labels may be
        any, and `rng` is not used.

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError, ValueError
        If the answer has no layers, an array does not hold integers, or an argument is wrong.

    Notes
    -----
    Runs on the CPU: what lives on a GPU is moved.  Replaying takes longer than ordering did: NumPy
    sorts the entries of the active vertices in each sub-round.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.cycle(8)
    >>> found = matchwood.locality_ordering(A, "llp")
    >>> matchwood.check.check_layered_order(A, found)
    >>> matchwood.check.check_layered_order(A, found, gammas=(1, 0.5))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: layered order: gammas must be 1.0, 0.5 in some order, got ...
    """
    caller = "check_layered_order"
    asked, number = checked_gammas(caller, gammas), seed(caller, rng)
    flag(caller, "replay", replay)
    graph = csr.as_graph(A, caller, weight=None).on("cpu")
    view = graph.undirected_pattern()
    n = view.n
    layers: Any = getattr(answer, "layers", None)
    if not all(
        hasattr(getattr(layers, name, None), "__iter__") for name in ("gammas", "labels", "rounds")
    ):
        raise TypeError(
            f"{caller}: answer must be a LocalityOrdering with layers, got {type(answer).__name__}"
        )
    perm = permutation(caller, PROBLEM, answer, n)
    found, rounds = _numbers(caller, layers, asked)
    labels = answers.integers(caller, PROBLEM, "labels", layers.labels, (len(found), n), "cpu")
    if bool(((labels < 0) | (labels >= n)).any()):
        raise CheckFailed(f"{PROBLEM}: labels must be vertices, 0..{n - 1}")
    _put_together(view, found, labels, asked, perm)
    if not replay:
        return
    for k, gamma in enumerate(found):
        right, done = replayed_layer(
            graph, gamma, caller=caller, max_rounds=MAX_ROUNDS, tol=STILL_SHARE, seed=number
        )
        v = answers.first(labels[k] != right)
        if v is not None:
            raise CheckFailed(
                f"{PROBLEM}: vertex {v} has label {labels[k, v]} in layer {k}, not {right[v]}"
            )
        if rounds[k] != done:
            raise CheckFailed(f"{PROBLEM}: layer {k} took {done} rounds, not {rounds[k]}")


def _numbers(
    caller: str, layers: Any, asked: tuple[float, ...]
) -> tuple[tuple[float, ...], list[int]]:
    """The gammas of the layers, which must be those that were asked for, and their rounds."""
    found = tuple(answers.number(caller, "gammas", value) for value in layers.gammas)
    rounds = [answers.whole(caller, "rounds", value) for value in layers.rounds]
    if sorted(found) != sorted(asked):
        numbers = ", ".join(str(value) for value in asked)
        raise CheckFailed(f"{PROBLEM}: gammas must be {numbers} in some order, got {found}")
    if len(rounds) != len(found):
        raise CheckFailed(f"{PROBLEM}: {len(rounds)} rounds of {len(found)} layers")
    return found, rounds


def _put_together(
    view: csr.View, gammas: tuple[float, ...], labels: Any, asked: tuple[float, ...], perm: Any
) -> None:
    """Check that the log_gap of layers never rises, and the order that they give."""
    n, worth = view.n, []
    place = np.arange(n)
    for row in labels:
        worth.append(expected_gaps(view, _after(np.arange(n), row))["log_gap"])
        place = _after(place, row)
    for k in range(len(gammas) - 1):
        if worth[k] < worth[k + 1]:
            raise CheckFailed(f"{PROBLEM}: layer {k} has a smaller log_gap than layer {k + 1}")
        early, late = asked.index(gammas[k]), asked.index(gammas[k + 1])
        if worth[k] == worth[k + 1] and early > late:
            raise CheckFailed(
                f"{PROBLEM}: layers {k} and {k + 1} have one log_gap, and must keep the order of "
                f"the gammas"
            )
    at = answers.first(place[perm] != np.arange(n))
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: vertex {perm[at]} has place {at}, not {place[perm[at]]}")


def _after(place: Any, labels: Any) -> Any:
    """Places after a layer: by the place of the label, then by the vertex's own place."""
    new = np.empty_like(place)
    new[np.lexsort((place, place[labels]))] = np.arange(place.size)
    return new
