"""Connected components on a grid of ranks.

Two methods.  "auto": every rank joins the edges of its block by the engine of a single machine,
reports to the owners under which vertex each of theirs is, and the owners make one forest of these:
forest.py, then cpu/ or gpu.py + gpu.cu.  Ranks of one host share one array of parents instead and
send nothing (the end of cpu/__init__.py), unless the first of them does it all (gate/distributed/
one_host).  Where the ranks share a GPU, the first of them finds the
components for all (gate/distributed).  "colour": the smallest number goes one edge further in each
round, as in the thesis: cpu/colour.py.  Both find for each vertex the smallest of its component,
and components are numbered by these at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.components.connected import Components
from matchwood.components.connected import connected_components as one_machine_labels
from matchwood.components.connected.ranks.check import check_components as check_components
from matchwood.components.connected.ranks.cpu import colour
from matchwood.engines.ranks.agreement import any_of, same
from matchwood.gate.distributed import one_host, whole
from matchwood.primitives.number.ranks import number_labels

PACKAGE = __name__.rpartition(".")[0]
CALLER = "connected_components"
METHODS = ("auto", *colour.VARIANTS)
AGAIN = "components before"  # kept in a graph whose components were asked for


def label(G: Any, method: str, threads: int | None = None) -> Components:
    """See matchwood.components.connected.connected_components."""
    same(G.comm, CALLER, method=method)
    arguments.one_of(CALLER, "method", method, METHODS)

    def work(graph: Any, members: int) -> Any:
        count, labels = one = one_machine_labels(graph, threads=members)
        return (labels,), (count, one.rounds)

    referred = None if method != "auto" else one_host.referred(G, CALLER, work, threads, pays=False)
    if referred is not None:
        (labels,), (count, rounds) = referred
        return Components(count, G.vector(labels.astype(_kind(G), copy=False)), rounds)
    threads = G.threads if threads is None else threads
    if method == "auto" and G.comm.size == 1 and G.order is None:
        return _alone(G, threads)
    striped = G.grid.layout == "stripes"
    if method == "auto" and striped and G.engine == "gpu":
        shared = whole.gathered(G, CALLER, entries=G.entries())
        return _on_gpus(G, threads) if shared is None else _by_first(G, shared)
    if method == "auto":
        one_machine, ours = engines.load(PACKAGE, "cpu"), engines.load(__name__, "cpu")
        parent = ours.shared_parents(G) if G.engine == "cpu" else None
        if parent is not None:
            return _shared(G, ours, parent, threads)
        if not striped:
            found = label(G.in_stripes().on(G.engine), method, threads)
            G.stats[CALLER] += ", in a copy of the graph in stripes"
            return Components(found.count, G.adopted(found.labels), found.rounds)
        roots, rounds = ours.smallest(G, one_machine, _is_symmetric(G), threads)
    else:
        roots, rounds = colour.smallest(G, colour.VARIANTS[method], threads)
    return _numbered(G, roots, rounds)


def _is_symmetric(G: Any) -> bool:
    """Whether the pattern is known to be symmetric, on all ranks.

    The test is a pass over the entries, which pays only for a graph that is used again: the first
    call does not make it.
    """
    before = G.has_kept("symmetry") or G.has_kept(AGAIN)
    G.keep(AGAIN, lambda: True)
    return not any_of(G.comm, not before) and G.has_symmetric_pattern


def _kind(G: Any) -> Any:
    return np.promote_types(G.index_dtype, arguments.index_type(max(G.n, G.nnz)))


def _numbered(G: Any, roots: Any, rounds: int) -> Components:
    users = roots if G.order is None else G.order.user(roots)
    count, labels = number_labels(G, np.ascontiguousarray(users, _kind(G)), smallest=True)
    return Components(count, G.vector(engines.moved(labels, G.engine)), rounds)


def _shared(G: Any, ours: Any, parent: Any, threads: int | None) -> Components:
    """Label on ranks of one host, in one array of parents."""
    counts = ours.join_shared(G, parent, _is_symmetric(G), threads)
    count, labels = ours.number_shared(G, parent, counts, _kind(G), threads)
    return Components(count, G.vector(labels), ours.SHARED_ROUNDS)


def _on_gpus(G: Any, threads: int | None) -> Components:
    """Label on GPUs.  Where the order is hashed, a root is not the user's smallest vertex."""
    run = engines.load(__name__, "gpu").Run(G, _is_symmetric(G), threads)
    rounds = run.join()
    if G.order is not None:
        return _numbered(G, engines.moved(run.roots(), "cpu"), rounds)
    count, labels = run.number()
    return Components(count, G.vector(labels.astype(_kind(G), copy=False)), rounds)


def _by_first(G: Any, shared: whole.Whole) -> Components:
    """Label on the first rank, which has the whole graph."""
    symmetric = _is_symmetric(G)

    def work(view: Any) -> Any:
        count, labels, rounds = engines.load(PACKAGE, "gpu").label(view, symmetric, "auto")
        return [labels], (count, rounds)

    (labels,), (count, rounds) = shared.answer(work)
    G.comm.report(rounds)
    return Components(count, G.vector(labels.astype(_kind(G), copy=False)), rounds)


def _alone(G: Any, threads: int | None) -> Components:
    """Label on a single rank: its block is the graph, and its vertices are in their own order."""
    count, labels, rounds = engines.load(PACKAGE, G.engine).label(
        G.entries(), G.has_symmetric_pattern, "auto", threads=threads
    )
    return Components(count, G.vector(labels), rounds)
