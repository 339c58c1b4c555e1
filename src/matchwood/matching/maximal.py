"""Maximal matching: the public function.  Both methods are in proposal/."""

from __future__ import annotations

from typing import Any

from matchwood import calls
from matchwood.arguments import flag, in_words, one_of, real, seed, shown
from matchwood.matching.methods import Origin, settled_weight
from matchwood.matching.proposal import PREFER
from matchwood.matching.result import Matching
from matchwood.primitives.hashing import bit_barrier
from matchwood.stopwatch import Stopwatch

METHODS = ("auto", "proposal", "serial")
# Probability of blue that matches most vertices in the first round of a random graph: equation 2
# of [1].
BEST_PROBABILITY = 0.53406


def maximal_matching(
    A: Any,
    *,
    method: str = "auto",
    rng: Any = 0,
    blue_probability: float = BEST_PROBABILITY,
    weighted: bool = False,
    prefer: str = "random",
    engine: str | None = None,
    threads: int | None = None,
    **letters: Any,
) -> Matching:
    """Find a matching to which no edge can be added, by random choices.

    It has at least half as many edges as the largest matching.  The method ``"proposal"`` [1]_
    works in rounds.  In each, free vertices become blue with probability `blue_probability`, else
    red.  Every blue vertex proposes to one red free neighbour.  Every red vertex accepts one
    proposal, and the two are matched.  A vertex without free neighbours is dead: it takes part in
    no later round.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        i and j are joined when ``A[i, j]`` or ``A[j, i]`` is stored and ``i != j``.  Values are
        read only with `weighted`, as by `weighted_matching`: zeros are no edges then.
    method : {"auto", "proposal", "serial"}
        ``"proposal"`` is algorithm 3 of [1]_, and what ``"auto"`` takes.  ``"serial"`` is its
        algorithm 1: vertices are visited one by one in random order, and each that is free takes
        a free neighbour.
    rng : int, Generator or None
        Seed of the colours and of the order; None is 0.
    blue_probability : float
        The paper's p, between 0 and 1.  The default matches most vertices in the first round.
    weighted : bool
        Vertices choose the heaviest edge instead of a random one: blue vertices when they
        propose, red ones when they accept.
    prefer : {"random", "hash", "degree"}
        Which of the possible neighbours a vertex chooses.  ``"random"``: another one in each round.
        ``"hash"``: the first in a random order of the vertices that is the same in all rounds; as
        the paper does in a shuffled graph.  ``"degree"``: the one of least degree, and of those as
        with ``"hash"``.  Over 38 real graphs and matrices the matching has 0.9 (hash) and 5 percent
        (degree) more edges, at most 9 and 15 percent.  Rounds read whole rows then, which takes
        about twice as long.  Not with `weighted`.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.  ``"serial"`` uses
        one.
    **letters
        ``p``: the name of `blue_probability` in version 0.1.  Deprecated.

    Returns
    -------
    Matching
        With `mate`, `weight` (the number of edges unless `weighted`), `rounds`, `edges()` and
        `matched_by_round`: the number of vertices matched after each round.  `mate` lives where
        `A` lives.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, an argument is unknown or out of range, or a weight that is
        read is not finite; if the weights of the edges found add up to more than double precision
        holds.
    EngineUnavailable
        If `method` is ``"serial"`` on the GPU.

    Notes
    -----
    Deterministic: all choices follow from the seed s, so every engine, at any number of threads,
    returns the same `mate` and the same rounds.

    - A vertex v is blue in round k = 0, 1, ... when its random bit (quarter MD5 [1]_) for the
      round's number ``round_number(s, k)`` is set.
    - A blue vertex searches its sorted row from a random place on, the
      ``(hash2(k, v, s) >> 32) * degree >> 32``-th, and from the row's end on at its beginning.  It
      proposes to the first red free neighbour.  (The paper searches from the row's beginning, in
      a graph with shuffled rows.)  With `prefer` it proposes to the red free neighbour u of least
      ``(d << 32 | hash2(u, 1, s) >> 32, u)``, where d is 0, or the degree of u.
      With `weighted` it takes the first edge in the order of `matchwood.primitives.edge_order`.
    - A red vertex accepts the proposer with the smallest index; with `weighted` the first edge,
      with `prefer` the one that it would propose to.
    - Vertices without neighbours take no part.  A blue vertex without a free neighbour dies.

    The method always ends.  Colours alone do not guarantee that: vertex 0 has the same colour in
    all rounds, by the definition of the hash, and so have others in graphs of more than 2^30
    vertices; and `blue_probability` may be close to 0.  So a round that matched no vertex is
    followed by one without colours.  There every free vertex points at its first free edge in the
    order of edges, and edges pointed at from both ends are matched.  (Unless `weighted`, all
    weights are equal in that order.)  At least the first of all free edges is matched.  Hence every
    two rounds match an edge or find that none is left, and there are at most n + 2 rounds; in
    practice 10 to 25.

    Memory besides the graph and `mate`: 9 bytes a vertex with 32-bit indices, 17 with 64-bit; with
    `prefer` 8 more or 16, and 24 for a while.

    References
    ----------
    .. [1] B. O. Fagginger Auer, R. H. Bisseling. A GPU algorithm for greedy graph matching.
       Facing the Multicore-Challenge II, 2012. doi:10.1007/978-3-642-30397-5_10

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching import maximal_matching
    >>> A = matchwood.generators.path(4)
    >>> found = maximal_matching(A)
    >>> found.edges().tolist()
    [[0, 1], [2, 3]]

    In a star one edge is all there can be, whatever the colours:

    >>> star = matchwood.generators.star(5)
    >>> [maximal_matching(star, rng=seed).cardinality for seed in range(4)]
    [1, 1, 1, 1]
    """
    caller = "maximal_matching"
    one_of(caller, "method", method, METHODS)
    number = seed(caller, rng)
    known = {"blue_probability": blue_probability}
    p = in_words(caller, letters, known, {"p": "blue_probability"})["blue_probability"]
    p = real(caller, "blue_probability", p, 0.0, 1.0)
    if not 0.0 < p < 1.0:
        raise ValueError(
            f"{caller}: blue_probability must lie between 0 and 1, got {p:g}: "
            "one colour matches none"
        )
    weighted = flag(caller, "weighted", weighted)
    one_of(caller, "prefer", prefer, PREFER)
    if weighted and prefer != "random":
        raise ValueError(
            f"{caller}: prefer must be 'random' with weighted=True, which takes the heaviest "
            f"edges, got {shown(prefer)}"
        )
    call = calls.enter(A, caller, engine, threads)
    method = "proposal" if method == "auto" else method
    clock = Stopwatch()
    view = call.graph.undirected_weights(caller) if weighted else call.graph.undirected_pattern()
    clock.lap("prepare")
    mate, weight, matched = call.load(f"{__package__}.proposal").match(
        view, method, number, bit_barrier(p), prefer, threads=threads
    )
    if weighted:
        weight = settled_weight(caller, view, mate, weight)
    clock.lap("match")
    # a maximal matching meets every edge, so the largest has at most twice as many
    bound = None if weighted else min(2 * weight, float(call.given.n // 2))
    origin = Origin(call.given.watched() if weighted else None, bound, weighted, number)
    return Matching(
        call.back(mate), weight, len(matched), method, clock.seconds,
        matched_by_round=matched if method == "proposal" else None, _origin=origin,
    )  # fmt: skip
