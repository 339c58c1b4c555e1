"""Is this an order that was refined?  Its sweeps are replayed with NumPy: replay.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import count, flag, one_of
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.answers import permutation
from matchwood.ordering.gap.check import expected_gaps
from matchwood.ordering.permutation import as_permutation
from matchwood.ordering.refine.plan import METRICS, PARTNERS, chosen_vertices, exact_fraction
from matchwood.ordering.refine.replay import replay as swept

PROBLEM = "refinement"
NUMBERS = ("proposed", "kept", "sweeps")


def check_refinement(
    A: Any,
    answer: Any,
    order: Any = None,
    *,
    metric: str = "log_gap",
    fraction: float = 0.01,
    sweeps: int | None = 1,
    partners: str = "neighbours",
    replay: bool = True,
) -> None:
    """Raise `CheckFailed` unless `answer` is the refinement of that order.

    `before` and `after` are the metric of the order given and of `perm`, each swap kept lowers it,
    and at most two vertices have moved for each.  At last the sweeps are replayed: each vertex must
    have proposed the swap that gains most, and the swaps that still gained, in their order, must
    give `perm`.

    Parameters
    ----------
    A, order, metric, fraction, sweeps, partners : as given to `refine_order`
    answer : Refinement
    replay : bool
        False leaves the replay out.  Then the metrics are right and may be what so many swaps
        gave, but other swaps may have done so: `fraction`, `sweeps` and `partners` are not used.

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError, ValueError
        If the answer has no such numbers, `order` is no permutation, or an option is unknown.

    Notes
    -----
    Runs on the CPU: what lives on a GPU is moved.  The rule has one answer, so a permutation that
    is only as good is wrong.  Swaps are weighed by sums over whole rows, and completed one after
    the other, some 0.3 ms each: nothing else takes as long.  Memory: some 40 bytes for each entry.

    Examples
    --------
    >>> import dataclasses, matchwood
    >>> A = matchwood.generators.grid((4, 4))
    >>> found = matchwood.refine_order(A, fraction=1)
    >>> matchwood.check.check_refinement(A, found, fraction=1)
    >>> matchwood.check.check_refinement(A, dataclasses.replace(found, kept=99), fraction=1)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: refinement: 99 swaps were kept of ...
    """
    caller = "check_refinement"
    one_of(caller, "metric", metric, METRICS)
    one_of(caller, "partners", partners, PARTNERS)
    flag(caller, "replay", replay)
    part = exact_fraction(caller, fraction)
    limit = None if sweeps is None else count(caller, "sweeps", sweeps, 1)
    for name in ("perm", "before", "after", *NUMBERS):
        if not hasattr(answer, name):
            raise TypeError(f"{caller}: answer must be a Refinement, got {type(answer).__name__}")
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    given = np.arange(n) if order is None else as_permutation(order, n, caller, "cpu")
    perm = permutation(caller, PROBLEM, answer, n)
    numbers = [answers.whole(caller, name, getattr(answer, name)) for name in NUMBERS]
    for name, vertices in (("before", given), ("after", perm)):
        right = expected_gaps(view, _places(vertices))[metric]
        value = answers.number(caller, name, getattr(answer, name))
        if type(value) is not type(right) or value != right:
            raise CheckFailed(f"{PROBLEM}: {metric} {name} is {value!r}, but must be {right}")
    _plausible(answer, metric, numbers, int(np.count_nonzero(perm != given)))
    if not replay:
        return
    chosen = chosen_vertices(view, part, None)
    place, *expected = swept(view, _places(given), chosen, metric, partners == "median", limit)
    for name, value, right in zip(NUMBERS, numbers, expected, strict=True):
        if value != right:
            raise CheckFailed(f"{PROBLEM}: {name} is {value}, but must be {right}")
    at = answers.first(place[perm] != np.arange(n))
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: vertex {perm[at]} has place {at}, not {place[perm[at]]}")


def _places(perm: Any) -> Any:
    place = np.empty(perm.size, np.int64)
    place[perm] = np.arange(perm.size)
    return place


def _plausible(answer: Any, metric: str, numbers: list[int], moved: int) -> None:
    """What can be seen without a replay, with messages that say more."""
    proposed, kept, sweeps = numbers
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
    if moved > 2 * kept:
        raise CheckFailed(f"{PROBLEM}: {moved} vertices moved by {kept} swaps")
