"""Strongly connected components.  Read on in reference.py, check.py, then in an engine.

cpu/             the methods; largest.py is the step with which all but Tarjan's begin, steps.py
                 what they share
gpu/             largest.cu, then propagation.cu, for all methods
condensation/    the graph of the components
"""

from __future__ import annotations

from typing import Any

from matchwood import calls
from matchwood.arguments import one_of
from matchwood.components.connected import Components, connected_components

METHODS = ("auto", "tarjan", "forward_backward", "multistep", "propagation")
ONLY_ON = {"tarjan": "cpu", "propagation": "gpu"}


@calls.of_first_rank
def strongly_connected_components(
    A: Any,
    *,
    method: str = "auto",
    engine: str | None = None,
    threads: int | None = None,
) -> Components:
    """Find the strongly connected components of a directed graph.

    Two vertices are in one component when each can be reached from the other along arcs.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: a stored ``A[i, j]``, zero or not, is an arc from i to j.
        Of a `DistributedGraph` the first rank finds the answer, with the whole graph.
    method : {"auto", "tarjan", "forward_backward", "multistep", "propagation"}
        ``"tarjan"`` is one depth-first search [1]_, by one thread; CPU only.
        ``"forward_backward"`` takes a pivot: what it reaches and what reaches it have its component
        in common, and the three sets that remain are searched independently [2]_.
        ``"multistep"`` takes away vertices without arcs to or from them, finds the largest
        component by one search each way, others by colours, and leaves the rest to one
        thread [3]_.
        ``"propagation"`` sends the largest (hashed) vertex along all arcs, both ways, and drops
        the arcs between vertices that differ; GPU only [4]_.
        ``"auto"`` looks for a largest component as multistep does, as long as that goes quickly,
        and does the rest like Tarjan on the CPU, by propagation on the GPU.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Components
        With `count`, `labels` and `rounds`; labels live where `A` lives, and have the index type
        of the graph.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or the method is unknown or not there on this engine.

    Notes
    -----
    Deterministic: components are numbered 0, 1, ... by their smallest vertex, so every method
    and engine, at any number of threads, returns the same labels.

    All methods but ``"tarjan"`` need the transposed pattern, which a `Graph` makes once and keeps;
    for a raw matrix on the CPU ``"auto"`` is ``"tarjan"``, which is quicker than to transpose.
    A `Graph` with a symmetric pattern has its connected components found.

    Work O(n + m) for Tarjan; expected O((n + m) log n) for tasks of forward-backward search and
    for propagation.  Every method ends: rounds of the parallel steps are limited, and what
    they leave is done by Tarjan's search (on the GPU by propagation, in which every
    round finishes a component).  Memory on the CPU: four arrays of n for Tarjan, six and a byte a
    vertex for ``"auto"``, eight for the others, nothing for each arc beside the transpose; on the
    GPU twelve arrays of n, a byte a vertex, and an index for every 64 arcs.

    References
    ----------
    .. [1] R. Tarjan. Depth-first search and linear graph algorithms. SIAM J. Comput. 1(2), 1972.
       doi:10.1137/0201010
    .. [2] L. K. Fleischer, B. Hendrickson, A. Pinar. On identifying strongly connected components
       in parallel. IPDPS workshops 2000. doi:10.1007/3-540-45591-4_68
    .. [3] G. M. Slota, S. Rajamanickam, K. Madduri. BFS and coloring-based parallel algorithms for
       strongly connected components and related problems. IPDPS 2014. doi:10.1109/IPDPS.2014.64
    .. [4] G. Alabandi, W. Sands, G. Biros, M. Burtscher. A GPU algorithm for detecting strongly
       connected components. SC 2023. doi:10.1145/3581784.3607071

    Examples
    --------
    >>> import matchwood
    >>> arcs = [[0, 3], [3, 0], [3, 1], [1, 2], [2, 4], [4, 1]]
    >>> count, labels = matchwood.strongly_connected_components((6, arcs))
    >>> count, labels.tolist()
    (3, [0, 1, 1, 0, 1, 2])

    A path has as many components as vertices, a cycle one:

    >>> matchwood.strongly_connected_components((3, [[0, 1], [1, 2]])).count
    3
    >>> matchwood.strongly_connected_components((3, [[0, 1], [1, 2], [2, 0]])).count
    1
    """
    caller = "strongly_connected_components"
    one_of(caller, "method", method, METHODS)
    call = calls.enter(A, caller, engine, threads)
    chosen, H = call.engine, call.graph
    if chosen != "reference" and ONLY_ON.get(method, chosen) != chosen:
        raise ValueError(
            f"{caller}: method {method!r} is for the {ONLY_ON[method]!r} engine, "
            f"this call runs on {chosen!r}"
        )
    method = quickest(method, call)
    view, inward, loops = H.directed_pattern(), None, True
    if method != "tarjan" and chosen != "reference":
        if method == "auto" and H.has_symmetric_pattern:
            return connected_components(call.given, engine=engine, threads=threads)
        inward, loops = H.transposed_pattern(), H.loops > 0
    run = call.load(__name__).label
    count, labels, rounds = run(view, inward, loops, method, threads=threads)
    return Components(count, call.back(labels), rounds)


def quickest(method: str, call: calls.Call) -> str:
    """The method for a call: "auto" on a CPU is Tarjan's where nothing about the graph is kept.

    A matrix that is passed once would have to be transposed, which takes longer than his search.
    """
    once = method == "auto" and call.engine == "cpu" and not call.prepared
    return "tarjan" if once else method
