"""The condensation of a graph.  Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import one_of
from matchwood.components.strong import METHODS, quickest, strongly_connected_components
from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.contract import trusted_contract_pattern


@dataclass(frozen=True)
class Condensation:
    """What `condensation` returns; unpacks as ``graph, labels``.

    Attributes
    ----------
    graph : (count, count) sparse matrix of ones
        Arcs between components, each once, no loops; all lead from a smaller to a larger number.
    labels : (n,) integer array
        The component of each vertex, in the numbering of `graph`.
    levels : (count,) integer array
        The number of arcs on the longest way to each component; ascending.
    """

    graph: Any
    labels: Any
    levels: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.graph, self.labels))

    @property
    def count(self) -> int:
        """Number of components."""
        return int(self.graph.shape[0])


def condensation(
    A: Any,
    *,
    method: str = "auto",
    engine: str | None = None,
    threads: int | None = None,
) -> Condensation:
    """Contract every strongly connected component to a vertex: a graph without cycles.

    Components are numbered in a topological order, by

        (arcs on the longest way that leads to the component, its smallest vertex)

    so that every arc of the condensation leads from a smaller to a larger number.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: a stored ``A[i, j]``, zero or not, is an arc from i to j.
    method, engine, threads
        As for `strongly_connected_components`.

    Returns
    -------
    Condensation
        With `graph`, `labels` and `levels`; they live where `A` lives.  Unpacks as
        ``graph, labels``.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or the method is unknown.

    Notes
    -----
    Deterministic: the order above has no ties, so all engines give the same graph and labels.

    Memory: two indices for each arc between different components, and as many to sort them.  On
    the GPU a level of the order costs a round, so a condensation that is one long path takes as
    many rounds as it has vertices.

    Examples
    --------
    >>> import matchwood
    >>> graph, labels = matchwood.condensation((5, [[3, 0], [0, 4], [4, 0], [1, 3], [1, 2]]))
    >>> labels.tolist()
    [3, 0, 1, 2, 3]
    >>> graph.toarray().astype(int).tolist()
    [[0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    """
    one_of("condensation", "method", method, METHODS)
    call = calls.enter(A, "condensation", engine, threads)
    H = call.graph
    count, labels = strongly_connected_components(
        H, method=quickest(method, call), engine=call.engine, threads=threads
    )
    arcs = H.directed_pattern()
    indptr, indices = trusted_contract_pattern(
        arcs.indptr, arcs.indices, labels, count, threads=threads
    )
    level = call.load(__name__).levels(indptr, indices, threads=threads)
    xp = engines.xp(labels)
    perm = xp.argsort(level, kind="stable")  # perm[new] = old
    number = xp.empty(count, labels.dtype)
    number[perm] = xp.arange(count, dtype=labels.dtype)
    # each label has one component: this only changes their numbers
    indptr, indices = trusted_contract_pattern(indptr, indices, number, count, threads=threads)
    return _result(count, *call.back(indptr, indices, number[labels], level[perm]))


def arcs_between(tails: Any, heads: Any, count: int) -> tuple[Any, Any]:
    """CSR arrays of a graph of `count` vertices with these arcs, each once."""
    indptr, indices, _ = assemble(count, count, tails, heads)
    return indptr, indices


def levels(indptr: Any, indices: Any, *, threads: int | None = None) -> Any:
    """Arcs on the longest way to each vertex; -1 for those on a cycle or behind one."""
    engine = engines.load(__name__, engines.location(indices))
    return engine.levels(indptr, indices, threads=threads)


def _result(count: int, indptr: Any, indices: Any, labels: Any, level: Any) -> Condensation:
    if engines.location(indices) == "gpu":
        from cupyx.scipy import sparse as gpu_sparse

        ones = engines.cupy().ones(indices.shape[0], np.float32)
        graph = gpu_sparse.csr_matrix((ones, indices, indptr), shape=(count, count))
    else:
        from scipy import sparse

        ones = np.ones(indices.shape[0], np.float32)
        graph = sparse.csr_array((ones, indices, indptr), shape=(count, count))
    return Condensation(graph, labels, level)
