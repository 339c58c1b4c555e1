"""Are these the measures of an order?  Decided by whole arrays, without the kernels."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.errors import CheckFailed


def check_measures(A: Any, answer: Any, perm: Any = None) -> None:
    """Raise `CheckFailed` unless `answer` is what `measures` must return.

    Parameters
    ----------
    A, perm : as given to `measures`
    answer : Measures

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_measures(A, matchwood.measures(A))
    >>> matchwood.check.check_measures(A, matchwood.Measures(1, 4, 2, 1.5))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: measures: profile is 4, but must be 3
    """
    view = csr.as_graph(A, "check_measures").on("cpu").undirected_pattern()
    n = view.n
    place = np.arange(n)
    if perm is not None:
        place[np.asarray(engines.moved(getattr(perm, "perm", perm), "cpu"))] = np.arange(n)
    first = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(view.indptr))
    np.minimum.at(first, place[rows], place[view.indices])
    # row j is active from first[j] to j
    begun = np.cumsum(np.bincount(first, minlength=n))
    fronts = begun - np.arange(n)
    expected = {
        "bandwidth": int((np.arange(n) - first).max(initial=0)),
        "profile": int((np.arange(n) - first).sum()),
        "max_wavefront": int(fronts.max(initial=0)),
        "rms_wavefront": float(np.sqrt(np.mean(fronts.astype(float) ** 2))) if n else 0.0,
    }
    for name, value in asdict(answer).items():
        if not np.isclose(value, expected[name], rtol=1e-12, atol=0):
            raise CheckFailed(f"measures: {name} is {value}, but must be {expected[name]}")
