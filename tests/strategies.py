"""Hypothesis strategies: random small graphs of every kind that the gate accepts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from graphs import raw_csr

WEIGHTS = {
    "ones": st.just(1.0),
    "few": st.sampled_from([1.0, 2.0, 3.0]),  # many ties
    "positive": st.floats(2.0**-10, 2.0**10, width=32),
    "any": st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-1e3, 1e3, width=32)),
}
"""Kinds of values: "any" has zeros and both signs; all are exact in float32."""


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    max_n: int = 24,
    max_m: int = 72,
    symmetric: bool | None = None,
    canonical: bool | None = None,
    weights: str | None = None,
) -> sp.csr_array:
    """A square `csr_array` with 0 to `max_n` rows and up to `max_m` drawn entries.

    symmetric : True stores every entry both ways with one value, False leaves it to chance,
        None draws.
    canonical : True gives sorted rows without duplicates, False whatever came, None draws.
    weights : a key of `WEIGHTS`, or None to draw one.

    Index and value types are drawn: int32 or int64, float32 or float64.  Self loops, isolated
    vertices, duplicates and (with "any") stored zeros occur.
    """
    n = draw(st.integers(0, max_n))
    vertex = st.integers(0, max(n - 1, 0))
    kind = weights if weights is not None else draw(st.sampled_from(sorted(WEIGHTS)))
    m = max_m if n else 0
    edges = draw(st.lists(st.tuples(vertex, vertex, WEIGHTS[kind]), max_size=m))
    if symmetric is None:
        symmetric = draw(st.booleans())
    if canonical is None:
        canonical = draw(st.booleans())
    if symmetric:
        edges = edges + [(v, u, w) for u, v, w in edges if u != v]
    if canonical:
        edges = sorted({(u, v): (u, v, w) for u, v, w in edges}.values())
        if symmetric:  # of several values for one edge, the one of its smaller direction
            value = {(u, v): w for u, v, w in edges}
            edges = [(u, v, value[min(u, v), max(u, v)]) for u, v, _ in edges]
    index_dtype = draw(st.sampled_from([np.int32, np.int64]))
    data_dtype = draw(st.sampled_from([np.float32, np.float64]))
    u, v, w = (np.array([edge[k] for edge in edges]) for k in range(3))
    return raw_csr(
        n, u.astype(np.int64), v.astype(np.int64), w.astype(data_dtype), index_dtype=index_dtype
    )


def threads() -> st.SearchStrategy[int]:
    """Team sizes, from one to more than any machine that runs the tests has cores for us."""
    return st.sampled_from([1, 2, 3, 5])
