"""
Maximal independent sets: whom can we take together?
====================================================

Transmitters too close to each other disturb each other.  Which of them can send at the same time?
A set without neighbours, to which none can be added.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# Random points, joined when they are close.  Members of the set are drawn with the circle that
# they keep free.

n, radius = 600, 0.06
points = matchwood.generators.random_points(n, rng=3)
A = matchwood.generators.random_geometric(n, radius, rng=3)
members = matchwood.maximal_independent_set(A)

u, v = A.nonzero()
fig, ax = plt.subplots(figsize=(6.4, 6.4))
ax.add_collection(LineCollection(np.stack((points[u], points[v]), axis=1), color="0.8", lw=0.5))
ax.scatter(*points[~members].T, s=6, color="0.5")
ax.scatter(*points[members].T, s=22, color="tab:blue", zorder=3)
for centre in points[members]:
    ax.add_patch(plt.Circle(centre, radius, color="tab:blue", alpha=0.08, lw=0))
ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
ax.set_title(f"{int(members.sum())} of {n} can send at the same time")
fig.tight_layout()

# %%
# What is left can send in a second turn, and so on: every vertex gets a turn of its own, different
# from those of its neighbours.  That is a colouring.

turn = np.full(n, -1)
left = np.arange(n)
while left.size:
    part = A[left][:, left]
    chosen = matchwood.maximal_independent_set(part)
    turn[left[chosen]] = turn.max() + 1
    left = left[~chosen]

fig, ax = plt.subplots(figsize=(6.4, 3.2))
ax.bar(np.arange(turn.max() + 1), np.bincount(turn))
ax.set(xlabel="turn", ylabel="vertices", title="every neighbour has another turn")
fig.tight_layout()
assert (turn[u] != turn[v]).all()

# %%
# How large the set is depends on the order.  Small degrees first is better than by index or by
# sampling, most of all where degrees differ.

kinds = {
    "R-MAT": matchwood.generators.rmat(13, rng=1),
    "Delaunay": matchwood.generators.delaunay(8192, rng=1),
    "grid": matchwood.generators.grid((90, 91)),
    "random": matchwood.generators.erdos_renyi(8192, 40_000, rng=1),
}
methods = ("luby", "lexicographic", "luby_sampling")
fig, ax = plt.subplots(figsize=(7.2, 3.4))
for k, method in enumerate(methods):
    share = [
        matchwood.maximal_independent_set(graph, method=method).mean() for graph in kinds.values()
    ]
    ax.bar(np.arange(len(kinds)) + 0.27 * (k - 1), share, width=0.25, label=method)
ax.set_xticks(range(len(kinds)), kinds)
ax.set(ylabel="share of the vertices")
ax.legend()
fig.tight_layout()

# %%
# Every answer can be checked: is it a set without neighbours, can none be added, and is it the one
# that the order gives?

matchwood.check.check_maximal_independent_set(A, members, method="luby")
plt.show()
