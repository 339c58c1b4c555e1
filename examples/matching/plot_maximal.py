"""
Maximal matching: proposals in rounds
=====================================

In each round free vertices are coloured blue or red at random; blue ones propose to red
neighbours, red ones accept one proposal.  Most vertices are matched after two or three rounds.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood
from matchwood.matching import maximal_matching
from matchwood.matching.maximal import BEST_PROBABILITY
from matchwood.matching.proposal.check import check_maximal_matching

# %%
# A matching of a triangulation.  No grey edge joins two free points.

n = 400
points = matchwood.generators.random_points(n, rng=3)
A = matchwood.generators.delaunay(n, rng=3)
found = maximal_matching(A)
check_maximal_matching(A, found)

u, v = A.nonzero()
fig, ax = plt.subplots(figsize=(5.2, 5.2))
ax.add_collection(
    LineCollection(np.stack((points[u], points[v]), axis=1), colors="0.85", linewidths=0.7)
)
pairs = points[found.edges()]
ax.add_collection(LineCollection(pairs, colors="tab:blue", linewidths=2.5))
free = np.flatnonzero(found.mate < 0)
ax.plot(*points[free].T, "o", color="tab:red", markersize=4)
ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
ax.set_title(f"{found.cardinality} edges after {found.rounds} rounds, {free.size} free points")
fig.tight_layout()

# %%
# How many vertices are matched after each round, on four kinds of graphs.

graphs = {
    "grid": matchwood.generators.grid((150, 150)),
    "mesh": matchwood.generators.mesh((28, 28, 28)),
    "triangulation": matchwood.generators.delaunay(20_000, rng=1),
    "R-MAT": matchwood.generators.rmat(14, rng=1),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8))
for name, A in graphs.items():
    degrees = np.diff(A.indptr)
    shares = np.array(maximal_matching(A).matched_by_round) / np.count_nonzero(degrees)
    left.plot(np.arange(1, shares.size + 1), shares, "o-", markersize=4, label=name)
left.set(xlabel="round", ylabel="matched, of vertices with neighbours", ylim=(0, 1))
left.legend()

# %%
# The first round matches most vertices when a little more than half of them are blue.

A = matchwood.generators.erdos_renyi(20_000, 1_000_000, rng=1)
p = np.linspace(0.05, 0.95, 19)
first = [
    maximal_matching(A, blue_probability=each).matched_by_round[0] / A.shape[0]
    for each in p.tolist()
]
right.plot(p, first, "o", label="observed")
right.plot(p, 2 * (1 - p) * (1 - np.exp(-p / (1 - p))), "-", label="expected")
right.axvline(BEST_PROBABILITY, color="0.8", zorder=0)
right.set(xlabel="probability of blue", ylabel="matched in the first round")
right.legend()
fig.tight_layout()
plt.show()
