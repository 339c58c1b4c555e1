"""
Factors: at most n neighbours each
==================================

A [0,n]-factor keeps, of a weighted graph, a heavy set of edges in which no vertex has more than n.
With n = 1 it is a matching, with n = 2 it is made of paths and cycles.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood
from matchwood.factors import coverage_of_order, degree_factor

# %%
# Random points, joined when they are close; near ones have heavy edges.

n = 350
A = matchwood.generators.random_geometric(n, degree=9, rng=5)
points = matchwood.generators.random_points(n, rng=5)
u, v = A.nonzero()
A.data = 1 / (0.01 + np.linalg.norm(points[u] - points[v], axis=1))

fig, axes = plt.subplots(1, 3, figsize=(11, 4.1))
for ax, most in zip(axes, (1, 2, 3), strict=True):
    found = degree_factor(A, most, rounds=None)
    for ends, color, width in (
        (np.stack((u, v), axis=1), "0.85", 0.7),
        (found.edges(), "tab:red", 1.8),
    ):
        ax.add_collection(LineCollection(points[ends], colors=color, linewidths=width))
    ax.plot(*points.T, "k.", markersize=2)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"n = {most}: {found.coverage:.0%} of the weight")
fig.tight_layout()

# %%
# Equal weights are the hard case: each vertex proposes to a neighbour that looks the other way.
# Random charges, or ties broken by a hash, bring most of the edges in a few rounds.

grid = matchwood.generators.grid((100, 100))
rounds = np.arange(11)
ways = {
    "charges, ties by index": {"ties": "index"},
    "charges, ties by hash": {"ties": "hash"},
    "no charges, ties by index": {"period": 1, "ties": "index"},
    "no charges, ties by hash": {"period": 1, "ties": "hash"},
}
fig, ax = plt.subplots(figsize=(6.4, 3.6))
for name, options in ways.items():
    covered = [degree_factor(grid, 2, rounds=int(k), **options).coverage for k in rounds]
    ax.plot(rounds, covered, "o-", markersize=4, label=name)
ax.axhline(coverage_of_order(grid), color="0.6", linestyle=":", label="beside the diagonal")
ax.set(xlabel="rounds", ylabel="part of the weight")
ax.legend()
fig.tight_layout()

# %%
# Every answer can be checked against the definition.

found.check(A)
plt.show()
