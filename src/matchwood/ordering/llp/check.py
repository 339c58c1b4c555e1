"""Is this the order of these layers?  Layers from worst to best, each put on top of the last."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, csr
from matchwood.errors import CheckFailed
from matchwood.ordering.answers import permutation
from matchwood.ordering.gap.check import expected_gaps

PROBLEM = "layered order"


def check_layered_order(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless the order of `answer` is that of its layers.

    Labels must be vertices; layers must come from the largest log_gap to the least; and the order
    must be the one that they give.  Whether the labels are those of label propagation is not
    looked at: that takes as long as finding them.

    Parameters
    ----------
    A : as given to `layered_label_propagation_order`
    answer : what ``locality_ordering(A, "llp")`` returns
        Its `perm` and its `layers` are looked at.

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError
        If the answer has no layers, or an array does not hold integers.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.cycle(8)
    >>> matchwood.check.check_layered_order(A, matchwood.locality_ordering(A, "llp"))
    """
    caller = "check_layered_order"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    layers: Any = getattr(answer, "layers", None)
    if not all(hasattr(layers, name) for name in ("gammas", "labels")):
        raise TypeError(
            f"{caller}: answer must be a LocalityOrdering with layers, got {type(answer).__name__}"
        )
    perm = permutation(caller, PROBLEM, answer, n)
    count = len(layers.gammas)
    labels = answers.integers(caller, PROBLEM, "labels", layers.labels, (count, n), "cpu")
    if bool(((labels < 0) | (labels >= n)).any()):
        raise CheckFailed(f"{PROBLEM}: labels must be vertices, 0..{n - 1}")
    worth = []
    place = np.arange(n)
    for row in labels:
        worth.append(expected_gaps(view, _after(np.arange(n), row))["log_gap"])
        place = _after(place, row)
    at = answers.first(np.diff(np.array(worth)) > 0)
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: layer {at} has a smaller log_gap than layer {at + 1}")
    at = answers.first(place[perm] != np.arange(n))
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: vertex {perm[at]} has place {at}, not {place[perm[at]]}")


def _after(place: Any, labels: Any) -> Any:
    """Places after a layer: by the place of the label, then by the own."""
    new = np.empty_like(place)
    new[np.lexsort((place, place[labels]))] = np.arange(place.size)
    return new
