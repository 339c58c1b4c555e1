"""Does a pair of records reach the threshold?  Bounds first, the exact matching if they differ.

In: two records (ids of their elements, ascending), the least weight of a pair that counts, and a
method.  Out: a verdict, and the weight of their matching in units of 2^-40.

    certified   bounds, then exact where they leave it open; the same pairs and scores as exact
    exact       the heaviest matching of every pair, by shortest augmenting paths in integers
    early       the exact solver, ended as soon as its bounds decide (TokenJoin's verification)
    greedy      the heaviest edge first: at least half of the heaviest matching
    dominant    edges that are the heaviest at both ends: the same matching, found in rounds
    streaming   each edge is seen once; no memory for all of them

The last three have two modes: `weight` takes what the matching weighs, so that every pair reported
is right; `bound` takes an upper bound, so that no pair is missing.

Equal elements are matched with each other first in every method, where the similarity allows it:
then all of them start from the same rest.

Read on in reference.py (matchings from their definitions), check.py (the heaviest one by SciPy),
cpu/ (the steps of one pair, and a list of pairs); the kernels of the GPU are in ../gpu.cu.
"""

from __future__ import annotations

METHODS = ("certified", "exact", "early", "greedy", "dominant", "streaming")
MODES = ("weight", "bound")
TOLERANCE = 1e-9  # a pair counts when its score is at least delta - TOLERANCE


def share_of(delta: float) -> float:
    """theta / (|R| + |S|) for this delta: what `least_weight` takes."""
    lowest = max(delta - TOLERANCE, 0.0)
    return lowest / (1.0 + lowest)
