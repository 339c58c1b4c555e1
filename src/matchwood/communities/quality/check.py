"""Is this the modularity?  Decided with floating sums, the definition as it stands."""

from __future__ import annotations

from typing import Any

from matchwood import answers, arguments
from matchwood.communities.answers import float_modularity, graph_and_level, stated


def check_modularity(A: Any, labels: Any, value: float, *, resolution: float = 1.0) -> None:
    """Raise `CheckFailed` unless `value` is the modularity of these communities, to 1e-9.

    Parameters
    ----------
    A, labels, resolution : as given to `modularity`
    value : float

    Raises
    ------
    CheckFailed
        If the value is wrong.
    TypeError, ValueError
        If the arguments are none of `modularity`: `A` has negative weights, for one.

    Examples
    --------
    >>> import matchwood
    >>> A = (4, [[0, 1], [2, 3]])
    >>> matchwood.check.check_modularity(A, [0, 0, 1, 1], 0.5)
    >>> matchwood.check.check_modularity(A, [0, 1, 1, 1], 0.5)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: modularity: modularity is -0.125, got 0.5
    """
    caller = "check_modularity"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    G, level = graph_and_level(A, caller)
    given = getattr(labels, "labels", labels)
    found = answers.integers(caller, "modularity", "labels", given, (G.n,), G.engine)
    named = answers.module(found).unique(found, return_inverse=True)[1].reshape(-1)
    right = float_modularity(level, named, resolution)
    stated("modularity", right, answers.number(caller, "value", value))
