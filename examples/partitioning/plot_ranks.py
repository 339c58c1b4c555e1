"""
A mesh over ranks
=================

A simulation on 16 processes gives each a block of the mesh.  What a process must receive before
every step is its halo: the vertices of other blocks next to its own.  `partition` keeps blocks
equally heavy and halos small.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import matchwood

# %%
# Random points, joined when they are close, in 16 blocks.

n, ranks = 4000, 16
A = matchwood.generators.random_geometric(n, degree=12.0, rng=5)
points = matchwood.generators.random_points(n, rng=5)
P = matchwood.partition(A, ranks)
print(P)
print(f"blocks weigh {P.weights.min()} to {P.weights.max()}, limit {P.limits[0]}")

# %%
# The halo of a block: neighbours of its vertices that lie in other blocks.

u, v = A.nonzero()
across = P.labels[u] != P.labels[v]
halo = [np.unique(v[across & (P.labels[u] == block)]) for block in range(ranks)]
print("halo sizes:", [part.size for part in halo])
print("numbers sent in a step:", P.volume)

one = 5
fig, axes = plt.subplots(1, 2, figsize=(10, 5))
once = u < v
segments = np.stack((points[u[once]], points[v[once]]), axis=1)
palette = np.vstack((plt.cm.tab20.colors, (0.0, 0.0, 0.0)))
inside = P.labels[u[once]] == P.labels[v[once]]
colors = np.where(inside, P.labels[u[once]] % 20, 20)
axes[0].add_collection(LineCollection(segments, colors=palette[colors], linewidths=0.8))
axes[0].set_title(f"{ranks} blocks, {P.cut} edges between them")
axes[1].plot(*points.T, ".", color="0.85", markersize=3)
axes[1].plot(*points[P.labels == one].T, ".", color=palette[one], markersize=4)
axes[1].plot(*points[halo[one]].T, ".", color="black", markersize=4)
axes[1].set_title(f"block {one} and its halo of {halo[one].size}")
for ax in axes:
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
fig.tight_layout()

# %%
# The mesh has changed: weights of some vertices grew.  `refine_partition` begins with the blocks
# that are there, so that few vertices change their process.

weights = np.where(points[:, 0] < 0.3, 2, 1)
Q = matchwood.refine_partition(A, P.labels, k=ranks, vertex_weights=weights)
print(f"{int((Q.labels != P.labels).sum())} of {n} vertices move; excess {Q.excess}, cut {Q.cut}")
