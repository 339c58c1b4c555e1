"""Is this an order that was refined?  Its metric is worked out with NumPy's passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, csr
from matchwood.arguments import one_of
from matchwood.errors import CheckFailed
from matchwood.ordering.answers import permutation
from matchwood.ordering.gap.check import expected_gaps
from matchwood.ordering.permutation import as_permutation
from matchwood.ordering.refine.plan import METRICS

PROBLEM = "refinement"


def check_refinement(A: Any, answer: Any, order: Any = None, *, metric: str = "log_gap") -> None:
    """Raise `CheckFailed` unless `answer` is a refinement of that order.

    Its `perm` is a permutation; `before` and `after` are the metric of the order given and of
    `perm`; each swap kept lowers it, so after <= before - kept (in steps of the metric), and at
    most two vertices have moved for each.  Whether all swaps are those that the rule asks for is
    not looked at: that takes as long as refining.

    Parameters
    ----------
    A, order, metric : as given to `refine_order`
    answer : Refinement

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError, ValueError
        If the answer has no such numbers, `order` is no permutation, or the metric is unknown.

    Examples
    --------
    >>> import dataclasses, matchwood
    >>> A = matchwood.generators.grid((4, 4))
    >>> found = matchwood.refine_order(A, fraction=1)
    >>> matchwood.check.check_refinement(A, found)
    >>> matchwood.check.check_refinement(A, dataclasses.replace(found, kept=99))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: refinement: 99 swaps were kept of ...
    """
    caller = "check_refinement"
    one_of(caller, "metric", metric, METRICS)
    for name in ("perm", "before", "after", "proposed", "kept", "sweeps"):
        if not hasattr(answer, name):
            raise TypeError(f"{caller}: answer must be a Refinement, got {type(answer).__name__}")
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    given = np.arange(n) if order is None else as_permutation(order, n, caller, "cpu")
    perm = permutation(caller, PROBLEM, answer, n)
    proposed, kept, sweeps = (
        answers.whole(caller, name, getattr(answer, name))
        for name in ("proposed", "kept", "sweeps")
    )
    for name, numbers in (("before", given), ("after", perm)):
        place = np.empty(n, np.int64)
        place[numbers] = np.arange(n)
        right = expected_gaps(view, place)[metric]
        value = answers.number(caller, name, getattr(answer, name))
        if value != right:
            raise CheckFailed(f"{PROBLEM}: {metric} {name} is {value}, but must be {right}")
    if not 0 <= kept <= proposed:
        raise CheckFailed(f"{PROBLEM}: {kept} swaps were kept of {proposed} proposed")
    if sweeps < 1:
        raise CheckFailed(f"{PROBLEM}: sweeps is {sweeps}, but must be at least 1")
    step = 1 if metric == "linear_gap" else 2.0**-20
    if not answer.before - answer.after >= kept * step:
        raise CheckFailed(
            f"{PROBLEM}: {kept} swaps were kept, but {metric} went from {answer.before} to "
            f"{answer.after}"
        )
    moved = int(np.count_nonzero(perm != given))
    if moved > 2 * kept:
        raise CheckFailed(f"{PROBLEM}: {moved} vertices moved by {kept} swaps")
